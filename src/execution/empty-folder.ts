// Most attempts leave nothing behind. Seeing that takes two system calls at once, and a tenth of the time that a
// round through the thread pool takes.

import { opendirSync } from "node:fs";

/** Whether a folder is there and has no entry; false as well when it cannot be read. Never reads more than one batch. */
export function isEmptyFolder(path: string): boolean {
  try {
    using folder = opendirSync(path);
    return folder.readSync() === null;
  } catch {
    return false;
  }
}
