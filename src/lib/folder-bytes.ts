// How much a folder holds.

import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

/** Bytes of the files in a folder; what cannot be read counts as nothing. Symlinks are not followed. */
export async function bytesIn(root: string): Promise<number> {
  let bytes = 0;
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    try {
      for await (const entry of await opendir(folder)) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) folders.push(path);
        else bytes += (await lstat(path).catch(() => null))?.size ?? 0;
      }
    } catch {
      // Gone meanwhile, or closed to us.
    }
  }
  return bytes;
}
