// Files and folders of a home that no row references: what a crash, a restored backup or an operator has left in runs/
// and evidence/, and unused files in tmp/.
//
// - What changed recently is no leftover: it may still be written.
// - Folders are read a bounded page at a time.

import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { bytesIn, isMissing } from "../lib/files.ts";

export interface LeftoverPlaces {
  /** SVC_HOME. */
  readonly home: string;
  readonly isRunThere: (runId: string) => Promise<boolean>;
  /** Removes a file, or a folder with all that is in it. */
  readonly remove: (path: string) => Promise<void>;
}

export interface Leftover {
  readonly path: string;
  /** Of all files in it. */
  readonly bytes: number;
  /** Whether it lay in tmp/, so that no run ever had it. */
  readonly isTemporary: boolean;
}

/** What the runtime makes in tmp/ and cleans up by itself. */
const IN_USE: ReadonlySet<string> = new Set(["pipes", "attempts"]);

export function homeLeftovers({ home, isRunThere, remove }: LeftoverPlaces) {
  return {
    /** @param beforeMs only what has not changed since; wall time in ms since 1970 */
    async *find(beforeMs: number): AsyncGenerator<Leftover> {
      for (const folder of ["runs", "evidence"]) {
        for await (const name of namesIn(join(home, folder))) {
          if (await isRunThere(name)) continue;
          const leftover = await look(join(home, folder, name), beforeMs);
          if (leftover !== null) yield { ...leftover, isTemporary: false };
        }
      }
      for await (const name of namesIn(join(home, "tmp"))) {
        const leftover = IN_USE.has(name) ? null : await look(join(home, "tmp", name), beforeMs);
        if (leftover !== null) yield { ...leftover, isTemporary: true };
      }
    },

    /** How many runs' folders and snapshots of bundles there are, whether or not they belong to anything. */
    async count(): Promise<number> {
      let count = 0;
      for (const folder of ["runs", "evidence", "bundles"]) {
        for await (const name of namesIn(join(home, folder))) if (name !== "incoming") count++;
      }
      return count;
    },

    remove: ({ path }: Leftover) => remove(path),
  };
}

async function* namesIn(folder: string): AsyncGenerator<string> {
  try {
    for await (const { name } of await opendir(folder)) yield name;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Null when it has changed since, or is not there any more. */
async function look(path: string, beforeMs: number): Promise<{ path: string; bytes: number } | null> {
  const found = await lstat(path).catch(() => null);
  if (found === null || found.mtimeMs >= beforeMs) return null;
  return { path, bytes: found.isDirectory() ? await bytesIn(path) : found.size };
}
