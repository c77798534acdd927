// A folder for temporary files that lies in memory. The suite makes and removes very many files: with all of them on a
// disk it took 834 s of processor time, and 712 s so. Nothing that the tests check depends on it: they kill processes,
// not machines.

import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

/** Linux keeps a file system in memory here. */
const MEMORY = "/dev/shm";
const PREFIX = "troupe-tests-";
/** What must be free, of the file system and of memory: several times what the suite has been seen to need. */
const FREE_BYTES_MIN = 4 * 1024 ** 3;

/** @returns the folder, to be removed by the caller; null where there is no room in memory, or nothing may be run from there */
export function memoryFolder(): string | null {
  if (!existsSync(MEMORY) || freemem() < FREE_BYTES_MIN) return null;
  const { bavail, bsize } = statfsSync(MEMORY);
  if (bavail * bsize < FREE_BYTES_MIN) return null;
  removeLeftOver();
  const folder = mkdtempSync(join(MEMORY, `${PREFIX}${process.pid}-`));
  if (mayRunFrom(folder)) return folder;
  rmSync(folder, { recursive: true });
  return null;
}

/** What runs that were killed have left would take up memory until the next start of the machine. */
function removeLeftOver(): void {
  for (const name of readdirSync(MEMORY)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    const folder = join(MEMORY, name);
    // Those of other users are theirs to remove.
    if (lstatSync(folder, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}

function mayRunFrom(folder: string): boolean {
  const script = join(folder, "script");
  writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
  const { status } = spawnSync(script);
  rmSync(script);
  return status === 0;
}
