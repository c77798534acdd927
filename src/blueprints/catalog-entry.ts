// One blueprint of the catalog, as its folder says it: read whole, or broken with everything that is wrong.
//
// - Nothing outside the folder is read, and only regular files: a JSON file that is a link to elsewhere, a pipe or a
//   device is a problem.
// - A broken one has an id and a name all the same, so that a person sees which one it is.

import { readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { type Definition, readDefinition } from "../bundles/definition.ts";
import { CONFIG_FILES, MANIFEST_FILE } from "../bundles/layout.ts";
import { merged } from "../bundles/merge.ts";
import { refuseWrongPolicies } from "../bundles/policies.ts";
import { BundleProblem, type BundleProblemEntry } from "../bundles/problem.ts";
import { isObject, type JsonObject, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import { isInside } from "../lib/paths.ts";
import { inSlices } from "../lib/slices.ts";
import {
  type DescribedPackage,
  describePackage,
  descriptionOf,
  descriptionSteps,
} from "./describe-package.ts";
import type { PackageDescription, PackageIdentity } from "./package-description.ts";

interface ReadEntry {
  readonly blueprintId: string;
  /** Absolute, without symlinks. */
  readonly folder: string;
  /** The folder's name, with that of the catalog folder before it: what a person is shown of where it lies. */
  readonly place: string;
  readonly identity: PackageIdentity;
  readonly warnings: readonly BundleProblemEntry[];
}

export type CatalogEntry = ReadEntry &
  (
    | {
        readonly kind: "whole";
        readonly problems: readonly [];
        readonly description: PackageDescription;
        readonly definition: Definition;
      }
    | {
        readonly kind: "broken";
        readonly problems: readonly BundleProblemEntry[];
        readonly description: null;
        readonly definition: null;
      }
  );

/** A folder that may be a blueprint's. */
export interface Candidate {
  /** Absolute, without symlinks; it may be missing when an index names it. */
  readonly folder: string;
  readonly folderName: string;
  readonly place: string;
  /** Whether an index.json names it: then it is a blueprint, or a broken one. */
  readonly isNamed: boolean;
}

/** Of a broken package, a larger file is not read. */
const BYTES_MAX = 1024 * 1024;
const JSON_FILES = [MANIFEST_FILE, ...CONFIG_FILES] as const;

/** What changes whenever one of the folder's JSON files does; null when it holds no manifest. */
export async function versionOf(folder: string): Promise<string | null> {
  const [manifest, ...configs] = await Promise.all(JSON_FILES.map((name) => fileVersion(join(folder, name))));
  return manifest === null ? null : [manifest, ...configs].join(" ");
}

async function fileVersion(file: string): Promise<string | null> {
  try {
    // Of the two times the one that users cannot set; it changes with the permissions too.
    const { ino, size, ctimeMs } = await stat(file);
    return `${ino}:${size}:${ctimeMs}`;
  } catch (error) {
    // What cannot even be looked at counts as there: reading it says why.
    return isGone(error) ? null : String((error as NodeJS.ErrnoException).code);
  }
}

/** Reads a blueprint's folder; whatever is wrong with it makes a broken entry. */
export async function readEntry(candidate: Candidate): Promise<CatalogEntry> {
  const { folder, folderName, place } = candidate;
  const unsafe = await unsafeFiles(folder);
  if (unsafe.length > 0) {
    const { identity } = describePackage({ manifest: {}, configuration: null, graph: null }, folderName);
    return broken(candidate, { identity, problems: unsafe, warnings: [] });
  }
  try {
    const definition = await readDefinition(folder);
    await refuseWrongPolicies(folder, definition.graph);
    const described = await descriptionOf(definition, folderName);
    const { identity, description, warnings } = described;
    if (description === null) return broken(candidate, described);
    const read = { blueprintId: identity.blueprintId, folder, place, identity, warnings };
    return { ...read, kind: "whole", problems: [], description, definition };
  } catch (error) {
    return broken(candidate, await describeBroken(folder, folderName, problemsOf(error)));
  }
}

function problemsOf(error: unknown): readonly BundleProblemEntry[] {
  if (error instanceof BundleProblem) return error.problems;
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return [unreadable("", "the folder", code)];
}

function broken(
  { folder, place }: Candidate,
  { identity, problems, warnings }: Pick<DescribedPackage, "identity" | "problems" | "warnings">,
): CatalogEntry {
  const read = { blueprintId: identity.blueprintId, folder, place, identity, warnings };
  return { ...read, kind: "broken", problems, description: null, definition: null };
}

/** What of the JSON files must not be opened. */
async function unsafeFiles(folder: string): Promise<readonly BundleProblemEntry[]> {
  const found = await Promise.all(JSON_FILES.map((name) => unsafeFile(folder, name)));
  return found.filter((problem) => problem !== null);
}

async function unsafeFile(folder: string, name: string): Promise<BundleProblemEntry | null> {
  const path = `/${name}`;
  try {
    const file = await realpath(join(folder, name));
    if (!isInside(folder, file)) {
      const message = `${name} is a link that leads out of the blueprint's folder: put the file itself there`;
      return { path, code: "link_outside", message };
    }
    if ((await stat(file)).isFile()) return null;
    return { path, code: "not_a_file", message: `${name} is not a regular file` };
  } catch (error) {
    if (isGone(error)) return null;
    return unreadable(path, name, String((error as NodeJS.ErrnoException).code));
  }
}

function unreadable(path: string, what: string, code: string): BundleProblemEntry {
  const message = `${what} cannot be read (${code}): let the user that Troupe runs as read it`;
  return { path, code: "unreadable", message };
}

export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** A place below the catalog folder, as a person is shown it. */
export const placeName = (catalogName: string, path: string) => [catalogName, ...path.split(sep)].join("/");

/**
 * The description of a package whose JSON files are not what they must be: who it is, and what else is wrong with it, so
 * that a person sees every mistake at once. Files that cannot be read add nothing.
 *
 * @param folder its files have been looked at: they are regular ones, inside it
 * @param refused the problems that readDefinition found
 * @returns a package without a description, with these problems and its own
 */
export async function describeBroken(
  folder: string,
  folderName: string,
  refused: readonly BundleProblemEntry[],
): Promise<DescribedPackage> {
  const files = JSON_FILES.map((name) => readable(join(folder, name)));
  const [manifest = {}, ...configs] = await Promise.all(files);
  const configuration = configs.reduce<JsonObject>(merged, {});
  const described = await inSlices(descriptionSteps({ manifest, configuration, graph: null }, folderName));
  return { ...described, problems: eachOnce([...refused, ...described.problems]) };
}

/** A few fields are checked by both. */
function eachOnce(problems: readonly BundleProblemEntry[]): readonly BundleProblemEntry[] {
  return [
    ...new Map(problems.toReversed().map((one) => [`${one.path} ${one.code}`, one])).values(),
  ].reverse();
}

/** Nothing, when the file holds no JSON object. */
async function readable(file: string): Promise<JsonObject> {
  try {
    if ((await stat(file)).size > BYTES_MAX) return {};
    const parsed = parseJson(await readFile(file, "utf8"), limits.jsonDepthMax);
    return isObject(parsed?.value) ? parsed.value : {};
  } catch {
    return {};
  }
}
