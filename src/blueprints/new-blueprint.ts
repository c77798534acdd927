// A new blueprint, written from one of the templates in the folder `templates` beside this file.
//
// - Nothing is overwritten: the folder must not exist, or be empty; and every file is created or not at all.
// - {{blueprint_id}}, {{name}} and {{schemas}} stand for what was asked for, in every text of the template's files.

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isGone } from "./catalog-entry.ts";
import { idOfFolder } from "./describe-package.ts";

export const templateNames = ["hello", "folder", "service"] as const;
export type TemplateName = (typeof templateNames)[number];

/** Characters of a name for people. */
export const NAME_CHARS_MAX = 200;

const TEMPLATES = fileURLToPath(new URL("./templates", import.meta.url));

export interface NewBlueprint {
  /** Absolute; its name becomes the blueprint's id, made to fit. */
  readonly folder: string;
  readonly template: TemplateName;
  /** For people; null: made of the folder's name. */
  readonly name: string | null;
  /** Where the JSON Schemas are served, for editors: "http://127.0.0.1:54001/schemas". */
  readonly schemasUrl: string;
}

export interface WrittenBlueprint {
  readonly blueprintId: string;
  readonly name: string;
  /** Names inside the folder, in order. */
  readonly files: readonly string[];
}

/** The folder exists and holds something. */
export class FolderInUse extends Error {
  override readonly name = "FolderInUse";
}

/**
 * Writes a small complete blueprint that runs as it is.
 *
 * @throws FolderInUse, and errors of the system as they come
 */
export async function writeBlueprint(wanted: NewBlueprint): Promise<WrittenBlueprint> {
  const { folder, template } = wanted;
  if (!(await isFree(folder))) {
    throw new FolderInUse(`${folder} exists already; give a folder that does not, or an empty one.`);
  }
  const blueprintId = idOfFolder(basename(folder));
  const name = wanted.name ?? nameOf(blueprintId);
  const fill = (text: string) =>
    text
      .replaceAll("{{blueprint_id}}", blueprintId)
      .replaceAll("{{name}}", () => name)
      .replaceAll("{{schemas}}", () => wanted.schemasUrl);
  const source = join(TEMPLATES, template);
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(source.length + 1))
    .sort();
  for (const file of files) {
    const text = await readFile(join(source, file), "utf8");
    const content = file.endsWith(".json") ? filledJson(text, fill) : fill(text);
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content, { flag: "wx" });
  }
  return { blueprintId, name, files };
}

async function isFree(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).length === 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return false;
    if (isGone(error)) return true;
    throw error;
  }
}

/** "word-count" is the Word count. */
function nameOf(blueprintId: string): string {
  const words = blueprintId.replaceAll(/[-_]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A name may hold what JSON has to escape. The layout of the file stays: a text is put in its place as JSON. */
function filledJson(text: string, fill: (text: string) => string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) =>
    string.includes("{{") ? JSON.stringify(fill(JSON.parse(string) as string)) : string,
  );
}
