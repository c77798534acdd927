// Puts a folder with everything below it on disk, so that it may be given the name that says that it is whole: a power
// cut afterwards leaves no file half.

import { constants } from "node:fs";
import { open, opendir } from "node:fs/promises";
import { join } from "node:path";
import { forEachOf } from "./several.ts";
import { syncFolder } from "./sync-folder.ts";

/** The threads that wait for the disk are four, and serve others too. */
const FILES_AT_ONCE = 3;

/**
 * Links are not followed. A file that may not be opened, or is gone by now, is passed over: nobody will read it either.
 *
 * @throws the signal's reason when it is aborted; the system's errors
 */
export async function syncTree(root: string, signal: AbortSignal): Promise<void> {
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const files: string[] = [];
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) files.push(path);
    }
    await forEachOf(files, FILES_AT_ONCE, async (file) => {
      signal.throwIfAborted();
      await syncFile(file);
    });
    await syncFolder(folder);
  }
}

async function syncFile(path: string): Promise<void> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    await file.sync();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "ENOENT") throw error;
  }
}
