// Most attempts leave little or nothing behind. Seeing that takes two quick system calls, and a fraction of the
// time that a round through the thread pool takes.

import { type Dirent, readdirSync, statSync } from "node:fs";

/** A folder of this size has a few hundred entries, on some file systems a few thousand. */
const SIZE_BYTES_MAX = 4_096;

/**
 * The entries of a folder that can be read without holding up the event loop.
 *
 * @returns null when it cannot be read, or is so large that it has, or once had, many entries
 */
export function entriesOfSmall(folder: string): readonly Dirent[] | null {
  try {
    return statSync(folder).size > SIZE_BYTES_MAX ? null : readdirSync(folder, { withFileTypes: true });
  } catch {
    return null;
  }
}

/** Whether a folder is there and has no entry; false as well when that cannot be seen at once. */
export function isEmptyFolder(path: string): boolean {
  return entriesOfSmall(path)?.length === 0;
}
