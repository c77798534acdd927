// Removes what a worker has left, whatever modes it has given to its folders, and however much it is.

import { chmod, lstat, opendir, readdir, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { forEachOf } from "../several.ts";

/** The threads that wait for the disk are four, and serve others too. */
const FILES_AT_ONCE = 3;
const ENTRIES_AT_ONCE = 256;

/**
 * Removes a file or folder with all that is in it; nothing happens when it is not there.
 *
 * @throws the system's error when something cannot be removed even by its owner
 */
export async function removeTree(path: string): Promise<void> {
  if (await removeFiles(path)) return;
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    await openFolders(path);
    await rm(path, { recursive: true, force: true });
  }
}

/**
 * Removes what can be removed, a few files at a time: `rm` begins with everything at once, and with 100,000 files the
 * program does nothing else for a second.
 *
 * @returns whether that was all; false for what is no folder
 */
async function removeFiles(root: string): Promise<boolean> {
  const found = await lstat(root).catch(() => null);
  // What a link leads to is somebody else's.
  if (found === null || !found.isDirectory()) return false;
  // It grows on the way.
  const folders = [root];
  for (const folder of folders) {
    const files: string[] = [];
    try {
      for await (const entry of await opendir(folder, { bufferSize: ENTRIES_AT_ONCE })) {
        (entry.isDirectory() ? folders : files).push(join(folder, entry.name));
      }
    } catch {
      // What may not be read is left to the removal of the whole.
    }
    await forEachOf(files, FILES_AT_ONCE, (file) => unlink(file).catch(() => {}));
  }
  for (const folder of folders.slice(1).reverse()) await rmdir(folder).catch(() => {});
  return rmdir(root).then(
    () => true,
    () => false,
  );
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
