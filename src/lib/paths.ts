// Paths from outside, and folder names made from ids.

import { createHash } from "node:crypto";
import { isAbsolute, join, normalize, relative, sep } from "node:path";

const PLAIN_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const SLUG_CHARS_MAX = 40;
const HASH_CHARS = 24;

/**
 * A folder name for any id: short plain ids as they are, others readable and with a hash. It is safe on every file system,
 * and no two ids share one.
 */
export function folderName(id: string): string {
  if (PLAIN_NAME.test(id)) return id;
  const slug = id.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const hash = createHash("sha256").update(id).digest("hex");
  return `${slug.replace(/^-/, "").slice(0, SLUG_CHARS_MAX)}~${hash.slice(0, HASH_CHARS)}`;
}

/** Joins a path from outside to a root; null when it is absolute, has a NUL, or leaves the root by its words. */
export function joinInside(root: string, path: string): string | null {
  if (isAbsolute(path) || path.includes("\0")) return null;
  const inside = normalize(path);
  if (inside === ".." || inside.startsWith(`..${sep}`)) return null;
  const joined = join(root, inside);
  return joined.endsWith(sep) ? joined.slice(0, -1) : joined;
}

/** Whether `path` is `root` or lies below it; both absolute and resolved. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
