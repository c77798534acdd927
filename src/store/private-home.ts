// A home is private to its user: nobody else may enter it, whatever mode its folders were made with.

import { chmodSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { CONTENT_FOLDERS } from "./home-state.ts";

const FILES = ["troupe.db", "troupe.db-wal", "troupe.db-shm", "lock.db", "lock.db-journal", "secret.key"];
const OTHERS = 0o077;
const STICKY = 0o1000;

/**
 * Whether others may enter a home, or read what lies in it.
 *
 * @param isMended takes the permission away where the home is this user's own; a folder that is shared by all, such as
 *   /tmp, stays as it is, and so do files that are not of a home
 * @returns the paths that others may still read or enter
 */
export function pathsOpenToOthers(
  home: string,
  { isMended }: { readonly isMended: boolean },
): readonly string[] {
  const names = ["", ...CONTENT_FOLDERS, "processes", "tmp", ...FILES];
  return names.map((name) => join(home, name)).filter((path) => isOpen(path, isMended));
}

function isOpen(path: string, isMended: boolean): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isSymbolicLink() || (found.mode & OTHERS) === 0) return false;
  if (!isMended || (found.mode & STICKY) !== 0 || found.uid !== process.geteuid?.()) return true;
  try {
    chmodSync(path, found.mode & 0o700);
    return false;
  } catch {
    return true;
  }
}
