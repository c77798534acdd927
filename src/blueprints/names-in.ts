// What is in a folder that need not be there.

import { readdir } from "node:fs/promises";

/** @returns the names in a folder, in no order; none when there is no such folder */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return [];
  }
}
