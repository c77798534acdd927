// Programs that a machine may have or not.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** @returns the path of the first of these names that is in a folder of PATH */
export function findProgram(names: readonly string[]): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
