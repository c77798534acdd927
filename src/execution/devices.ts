// The device files of this machine, by their paths.

import { type Dirent, readdirSync, statSync } from "node:fs";
import type { Clock } from "../engine/ports.ts";
import { type Demand, deviceClaims } from "../engine/resources.ts";

/** Of one machine: all are told with each heartbeat. */
const TOLD_MAX = 512;
const DEPTH_MAX = 3;
const READ_EVERY_MS = 5_000;
/** What is there in numbers, and no command's own. */
const UNTOLD = /^(tty\d+|vcs[au]?\d*|loop\d+|ram\d+|pts|shm|mqueue|hugepages|fd|char|block|std(in|out|err))$/;

/** Whether there is a device file at a path. */
export function isDevice(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.isCharacterDevice() || found.isBlockDevice());
}

/** @param isThere by the path of a device */
export function hasDevices(demand: Demand, isThere: (path: string) => boolean): boolean {
  return deviceClaims(demand).every(({ name }) => isThere(name));
}

/** Those of a folder and its folders, as others are told of them: links, too, by which devices keep their names. */
function readDevices(folder: string, depth = 1): readonly string[] {
  const isTold = (entry: Dirent) =>
    entry.isCharacterDevice() || entry.isBlockDevice() || entry.isSymbolicLink();
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries
    .filter(({ name }) => !UNTOLD.test(name))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return depth < DEPTH_MAX ? readDevices(path, depth + 1) : [];
      return isTold(entry) ? [path] : [];
    });
}

/** The devices that others are told of, a few seconds old at most. */
export class Devices {
  readonly #clock: Pick<Clock, "steadyMs">;
  #known: { readonly atMs: number; readonly paths: readonly string[] } | null = null;

  constructor(clock: Pick<Clock, "steadyMs">) {
    this.#clock = clock;
  }

  get told(): readonly string[] {
    const atMs = this.#clock.steadyMs();
    if (this.#known === null || atMs - this.#known.atMs >= READ_EVERY_MS)
      this.#known = { atMs, paths: readDevices("/dev").slice(0, TOLD_MAX) };
    return this.#known.paths;
  }
}
