// The licences of libraries whose code is shipped.

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The folder of a library, in the path of one of its files. */
const LIBRARY_FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)/i;
/** A comment that asks to be kept. */
const NOTICE = /\/\*!.*?\*\/|\/\*(?:(?!\*\/).)*?@(?:license|preserve)\b.*?\*\//gis;
/** The head of a file that says whose it is, and under which terms. */
const HEAD = /^(?:\/\/.*\n)*\/\/.*Copyright.*\n(?:\/\/.*\n)*/;
const LINE = "-".repeat(80);

interface Library {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly author?: string | { readonly name: string };
}

/**
 * The text to ship with code of libraries: each one's name, version, licence files, and the notices in the code itself.
 *
 * @param files paths of the files that the code comes from; those outside of node_modules do not count
 * @throws Error when the licence of a library is not known
 */
export function licencesOf(files: readonly string[]): string {
  const paths = files.map((file) => resolve(file));
  const folders = new Set(paths.flatMap((path) => LIBRARY_FOLDER.exec(path)?.[0] ?? []));
  const parts = [...folders].sort().map((folder) => {
    const library: Library = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const notices = paths
      .filter((path) => LIBRARY_FOLDER.exec(path)?.[0] === folder)
      .map((path) => readFileSync(path, "utf8"))
      .flatMap((text) => [...(HEAD.exec(text) ?? []), ...(text.match(NOTICE) ?? [])]);
    const { name, version, license } = library;
    return [`${name} ${version} (${license})`, ...licenceTexts(folder, library), ...new Set(notices)].join(
      "\n\n",
    );
  });
  return `The program contains code of these libraries.\n\n${parts.join(`\n\n${LINE}\n\n`)}\n`;
}

function licenceTexts(folder: string, { name, license, author }: Library): readonly string[] {
  const found = readdirSync(folder).filter((file) => LICENCE_FILE.test(file));
  if (found.length > 0) return found.map((file) => readFileSync(join(folder, file), "utf8").trim());
  const holder = typeof author === "object" ? author.name : author;
  // The terms of files under another licence are at their heads.
  if (/\bApache-2\.0\b/.test(license)) return [APACHE()];
  // Some state in their package.json alone that they are under this licence; its text is the same for everybody.
  if (license !== "MIT" || holder === undefined) throw new Error(`the licence of ${name} is not known`);
  return [`Copyright (c) ${holder}\n\n${MIT}`];
}

/** It is the program's own. */
const APACHE = () => readFileSync(join(import.meta.dirname, "../LICENSE"), "utf8").trim();

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
