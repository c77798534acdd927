// Removes what a worker has left, whatever modes it has given to its folders.

import { chmod, lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes a file or folder with all that is in it; nothing happens when it is not there.
 *
 * @throws the system's error when something cannot be removed even by its owner
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    await openFolders(path);
    await rm(path, { recursive: true, force: true });
  }
}

/** Gives the owner all rights to a folder and the folders below it, without following links. */
async function openFolders(root: string): Promise<void> {
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (!(await lstat(folder)).isDirectory()) continue;
    await chmod(folder, 0o700);
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) folders.push(join(folder, entry.name));
    }
  }
}
