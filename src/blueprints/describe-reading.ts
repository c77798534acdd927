// How what a package declares is read: field by field, every mistake at once.
//
// - A known field that is wrong is a problem; an unknown one is a warning (unknown-fields.ts).
// - Reading never throws and is linear in what is read; lists have a bound.

import type { BundleProblemEntry } from "../bundles/problem.ts";
import type { JsonObject } from "../engine/json.ts";
import { Fields, kindOf, staysInside } from "../engine/manifest/fields.ts";
import { type ManifestProblem, Problems, quoted } from "../engine/manifest/problems.ts";

/** A place to look at, in one sentence: `path` is a JSON Pointer into the document that was read. */
export type Finding = ManifestProblem;

/** One document that is being read, with what was found in it. */
export class Reading {
  readonly fields: Fields;
  readonly #problems = new Problems();
  readonly #warnings = new Problems();

  constructor(document: JsonObject) {
    this.fields = Fields.root(document, this.#problems);
  }

  get problems(): readonly Finding[] {
    return this.#problems.list();
  }

  get warnings(): readonly Finding[] {
    return this.#warnings.list();
  }

  /** @param path names and indexes from the document's root */
  warn(path: readonly (string | number)[], code: string, clause: string): void {
    this.#warnings.add(path, code, clause);
  }
}

/** What was found in manifest.json, for a list that has other files' problems too. */
export const inManifestFile = (finding: Finding) => inFile("", "manifest.json: ", finding);

/** The same for the package's configuration, its two files laid over each other. */
export const inConfiguration = (finding: Finding) =>
  inFile("/config/default.json#", "the configuration: ", finding);

function inFile(place: string, file: string, { path, code, message }: Finding): BundleProblemEntry {
  return { path: `${place}${path}`, code, message: `${file}${message}` };
}

/**
 * A list of names, each once.
 *
 * @param wrong says what is wrong with a name; null when nothing is
 */
export function nameList(
  fields: Fields,
  name: string,
  max: number,
  wrong: (value: string) => string | null = () => null,
): readonly string[] {
  const found = new Set<string>();
  fields.list(name, max).forEach((value, i) => {
    const text = fields.checkedName([name, i], value);
    if (text === null) return;
    const clause = wrong(text) ?? (found.has(text) ? "the list has it twice" : null);
    if (clause === null) found.add(text);
    else fields.report([name, i], "invalid_value", `is ${quoted(text)}: ${clause}`);
  });
  return [...found];
}

/** A program and its arguments, started without a shell; null when it is absent or wrong. */
export function commandWords(fields: Fields, name: string): readonly string[] | null {
  if (fields.raw(name) === undefined) return null;
  const words = fields.list(name, 1_000);
  if (words.length === 0 && Array.isArray(fields.raw(name))) {
    fields.report(name, "empty", "names no program: it must be a list of the program and its arguments");
  }
  const found = words.flatMap((word, i) => {
    if (typeof word !== "string") {
      fields.report([name, i], "wrong_type", `must be a string, not ${kindOf(word)}`);
    } else if (word.includes("\0") || (i === 0 && word === "")) {
      fields.report(
        [name, i],
        "invalid_value",
        "cannot be passed to a program: it is empty or has a NUL character",
      );
    } else return [word];
    return [];
  });
  return found.length > 0 && found.length === words.length ? found : null;
}

/** File extensions, in lower case; null when the field is absent. */
export function extensionList(fields: Fields, name: string): readonly string[] | null {
  if (fields.raw(name) === undefined) return null;
  if (Array.isArray(fields.raw(name)) && fields.list(name).length === 0) {
    fields.report(name, "empty", "is empty, so no file would match: leave it out to take all files");
  }
  const found = nameList(fields, name, 100, (value) =>
    /^\.[^/\\]+$/.test(value) ? null : 'it must begin with a dot, such as ".csv"',
  );
  return [...new Set(found.map((value) => value.toLowerCase()))];
}

const PATH_PARTS_MAX = 64;

/** Says what is wrong with a dotted path into a configuration; null when nothing is. In a key, a dot is written "\.". */
export function dottedPathProblem(path: string): string | null {
  const parts = path.replace(/\\[.\\]/g, "_").split(".");
  if (parts.includes("")) return 'it must be keys with dots between them, such as "documents.folder"';
  if (parts.length > PATH_PARTS_MAX) return `it has more than ${PATH_PARTS_MAX} keys`;
  return parts.includes("__proto__") ? "__proto__ is not allowed as a key" : null;
}

/** A dotted path that must be there; null when it is not, or is wrong. */
export function requiredDottedPath(fields: Fields, name: string): string | null {
  const path = fields.requiredName(name);
  const clause = path === null ? null : dottedPathProblem(path);
  if (clause === null) return path;
  fields.report(name, "invalid_value", `is ${quoted(path ?? "")}: ${clause}`);
  return null;
}

/**
 * A relative path whose parts do not begin with a dot: nothing that leaves its folder, and nothing hidden (spec
 * "packaging" 3). Comes back without a slash at its end.
 */
export function plainPath(fields: Fields, name: string): string | null {
  if (!fields.isGiven(name, "a relative path")) return null;
  const path = fields.relativePath(name);
  if (path === null) return null;
  const parts = path.split("/").filter((part) => part !== "");
  const hidden = parts.find((part) => part.startsWith("."));
  if (hidden === undefined && staysInside(path) && parts.length > 0) return parts.join("/");
  const clause = `has the part ${quoted(hidden ?? "")}: no part may begin with a dot`;
  fields.report(name, "dot_prefixed", `is ${quoted(path)}, which ${clause}`);
  return null;
}
