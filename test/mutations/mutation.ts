// What a mutation is: one deliberate fault in the program, and the tests that have to notice it.

import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";

export interface Mutation {
  /** What the faulty program does, as a sentence. */
  readonly fault: string;
  /** The file to break, from the root of the project. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly search: string;
  readonly replacement: string;
  /** Test files of which at least one fails. */
  readonly tests: readonly string[];
}

/** Makes mutations of one file that the same tests have to notice. */
export const mutationsOf =
  (file: string, tests: readonly string[]) =>
  (fault: string, search: string, replacement: string): Mutation => ({
    fault,
    file,
    search,
    replacement,
    tests,
  });

/**
 * The file's text with the fault in it.
 *
 * @param root folder of the project
 * @throws when the search text does not occur exactly once, or what comes out is no program
 */
export function mutated(root: string, { file, search, replacement }: Mutation): string {
  const [before, after, ...more] = readFileSync(join(root, file), "utf8").split(search);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error(`${file} contains ${more.length > 0 ? "more than once" : "no longer"}: ${search}`);
  }
  const text = before + replacement + after;
  // A syntax error would make every test fail, whatever it tests.
  if (file.endsWith(".ts")) stripTypeScriptTypes(text);
  return text;
}
