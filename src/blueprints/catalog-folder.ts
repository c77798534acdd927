// One folder of SVC_BLUEPRINT_CATALOG: which folders in it may be blueprints. All that hold a manifest.json are; or, with
// an index.json, those that it names, in its order.
//
// - Nothing outside the catalog folder is taken: a link, and a path of the index, leads to a place inside it.
// - What is wrong with the folder or its index is told, and takes nothing from the other folders.

import { opendir, readFile, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { isObject, type JsonValue, parseJson } from "../engine/json.ts";
import { staysInside } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { isInside, joinInside } from "../lib/paths.ts";
import { type Candidate, isGone, placeName } from "./catalog-entry.ts";

export interface CatalogProblem {
  /** The catalog folder's own name. */
  readonly catalog: string;
  readonly code: string;
  /** A whole sentence with what to do. */
  readonly message: string;
}

export interface CatalogFolder {
  readonly candidates: readonly Candidate[];
  readonly problems: readonly CatalogProblem[];
}

const INDEX_FILE = "index.json";
const FOLDERS_MAX = 1_000;
const NAMES_MAX = 20_000;
const INDEX_BYTES_MAX = 1024 * 1024;
const INDEX_DEPTH_MAX = 10;
const PROBLEMS_MAX = 100;

interface Look {
  readonly root: string;
  readonly catalog: string;
  readonly problems: CatalogProblem[];
}

/** @param path absolute, as SVC_BLUEPRINT_CATALOG names it */
export async function lookInto(path: string): Promise<CatalogFolder> {
  const look: Look = { root: path, catalog: basename(path), problems: [] };
  try {
    const inside: Look = { ...look, root: await realpath(path) };
    const index = await readIndex(inside);
    return { candidates: index ?? (await foldersIn(inside)), problems: look.problems };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const [kind, clause] = isGone(error)
      ? ["missing", "is not there"]
      : ["unreadable", `cannot be read (${code})`];
    add(
      look,
      kind,
      `the folder ${quoted(look.catalog)} of SVC_BLUEPRINT_CATALOG ${clause}: make it, or leave it out`,
    );
    return { candidates: [], problems: look.problems };
  }
}

function add({ catalog, problems }: Look, code: string, message: string): void {
  if (problems.length < PROBLEMS_MAX) problems.push({ catalog, code, message });
}

async function foldersIn(look: Look): Promise<readonly Candidate[]> {
  const names: { readonly name: string; readonly isLink: boolean }[] = [];
  let seen = 0;
  for await (const entry of await opendir(look.root)) {
    if (++seen > NAMES_MAX) break;
    const isFolder = entry.isDirectory() || entry.isSymbolicLink();
    if (!isFolder || entry.name.startsWith(".") || entry.name === "node_modules") continue;
    names.push({ name: entry.name, isLink: entry.isSymbolicLink() });
  }
  if (names.length > FOLDERS_MAX || seen > NAMES_MAX) {
    const clause = `holds more than ${FOLDERS_MAX} folders, of which the rest is left out: divide it`;
    add(
      look,
      "too_many",
      `the catalog folder ${quoted(look.catalog)} ${clause}, or name them in an ${INDEX_FILE}`,
    );
  }
  names.sort((a, b) => (a.name < b.name ? -1 : 1));
  const candidates: Candidate[] = [];
  for (const { name, isLink } of names.slice(0, FOLDERS_MAX)) {
    const folder = isLink ? await linkedFolder(look, name) : join(look.root, name);
    if (folder !== null) candidates.push(candidate(look, name, folder, false));
  }
  return candidates;
}

function candidate(look: Look, path: string, folder: string, isNamed: boolean): Candidate {
  return { folder, folderName: basename(path), place: placeName(look.catalog, path), isNamed };
}

/** Where a link leads, when that is a folder inside the catalog; the link to somewhere else is told. */
async function linkedFolder(look: Look, name: string): Promise<string | null> {
  try {
    const folder = await realpath(join(look.root, name));
    if (!(await stat(folder)).isDirectory()) return null;
    if (isInside(look.root, folder)) return folder;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    if (isGone(error) || code === "ELOOP") return null;
    const clause = `is a link that cannot be followed (${code}), and is left out: fix or remove it`;
    add(look, "unreadable", `${quoted(name)} in the catalog folder ${quoted(look.catalog)} ${clause}`);
    return null;
  }
  const clause = `is a link that leads out of the catalog folder ${quoted(look.catalog)}, and is left out`;
  add(look, "link_outside", `${quoted(name)} ${clause}: add the folder it leads to to SVC_BLUEPRINT_CATALOG`);
  return null;
}

/** The folders that index.json names; null without one, none when it is wrong as a whole. */
async function readIndex(look: Look): Promise<readonly Candidate[] | null> {
  const items = await indexItems(look);
  if (items === null || items === "wrong") return items === null ? null : [];
  if (items.length > FOLDERS_MAX) {
    add(
      look,
      "too_many",
      `${inIndex(look)} names ${items.length} blueprints: the first ${FOLDERS_MAX} are taken`,
    );
  }
  const candidates: Candidate[] = [];
  const taken = new Set<string>();
  for (const [i, item] of items.slice(0, FOLDERS_MAX).entries()) {
    const found = await indexed(look, i, item);
    if (found !== null && !taken.has(found.folder)) candidates.push(found);
    if (found !== null) taken.add(found.folder);
  }
  return candidates;
}

const inIndex = ({ catalog }: Look) => `${INDEX_FILE} of the catalog folder ${quoted(catalog)}`;

async function indexItems(look: Look): Promise<readonly JsonValue[] | "wrong" | null> {
  const file = join(look.root, INDEX_FILE);
  const wrong = (code: string, clause: string): "wrong" => {
    add(look, code, `${inIndex(look)} ${clause}`);
    return "wrong";
  };
  try {
    const real = await realpath(file);
    const found = await stat(real);
    if (!isInside(look.root, real) || !found.isFile())
      return wrong("not_a_file", "is no file of that folder");
    if (found.size > INDEX_BYTES_MAX) return wrong("too_large", `is larger than ${INDEX_BYTES_MAX} bytes`);
    const parsed = parseJson(await readFile(real, "utf8"), INDEX_DEPTH_MAX);
    if (parsed === null) return wrong("invalid_json", "is no JSON");
    const list = isObject(parsed.value) ? parsed.value.blueprints : parsed.value;
    if (Array.isArray(list)) return list;
    return wrong("wrong_type", 'must be a list of folders, or an object with one: {"blueprints": ["name"]}');
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

async function indexed(look: Look, position: number, item: JsonValue): Promise<Candidate | null> {
  const path = isObject(item) ? item.path : item;
  const place = `${inIndex(look)}: blueprints[${position}]`;
  const folder = typeof path === "string" && staysInside(path) ? joinInside(look.root, path) : null;
  if (typeof path !== "string" || path === "" || folder === null || folder === look.root) {
    const allowed = 'the relative path of a folder in it, or {"path": that}';
    add(look, "invalid_path", `${place} must be ${allowed}`);
    return null;
  }
  try {
    const real = await realpath(folder);
    if (isInside(look.root, real)) return candidate(look, path, real, true);
    add(look, "link_outside", `${place} is ${quoted(path)}, a link that leads out of the catalog folder`);
    return null;
  } catch (error) {
    // It is named, so it is shown: as a blueprint without a manifest.
    if (isGone(error)) return candidate(look, path, folder, true);
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const clause = `cannot be reached (${code}), and is left out: fix the path, or what lies there`;
    add(look, "unreadable", `${place} is ${quoted(path)}, which ${clause}`);
    return null;
  }
}
