// A new name in a folder survives a power cut only once the folder itself is synced.

import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Puts a folder's entries on disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
