// What a manifest names as secret beyond what names tell: `"secrets": ["smtp.host", "accounts.pin"]`, dotted paths into
// the configuration and into the bodies that a run's inputs are.
//
// A path leads through the items of a list without naming them: "accounts.pin" is the pin of each account.

import type { JsonObject, JsonValue } from "../engine/json.ts";
import { partsOf } from "../lib/text.ts";

/** By key; null: the value under that key is a secret, whole. */
export interface SecretPaths extends ReadonlyMap<string, SecretPaths | null> {}

export const noPaths: SecretPaths = new Map();

/** How many paths a manifest may name. */
export const SECRET_PATHS_MAX = 1_000;

/** @returns what a manifest names; what is wrong in it is left out here, and reported where packages are read */
export function secretPathsIn({ secrets }: JsonObject): SecretPaths {
  if (!Array.isArray(secrets) || secrets.length === 0) return noPaths;
  const root: PathTree = new Map();
  for (const path of secrets.slice(0, SECRET_PATHS_MAX) as JsonValue[]) {
    const parts = typeof path === "string" ? partsOf(path) : null;
    if (parts !== null) add(root, parts);
  }
  return root;
}

interface PathTree extends Map<string, PathTree | null> {}

function add(root: PathTree, parts: readonly string[]): void {
  let tree = root;
  for (const part of parts.slice(0, -1)) {
    const below = tree.get(part);
    // What leads through a secret names nothing more: it is one whole.
    if (below === null) return;
    const next: PathTree = below ?? new Map();
    tree.set(part, next);
    tree = next;
  }
  tree.set(parts.at(-1)!, null);
}

/** The same paths below each key of an object. */
export function ofEach(object: JsonObject, paths: SecretPaths): SecretPaths {
  return new Map(Object.keys(object).map((key) => [key, paths]));
}
