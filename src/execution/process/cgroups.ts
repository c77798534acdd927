// Control groups (cgroup v2) below this process's own: inherited by whatever a process starts. An ordinary user may make
// them where the system hands the subtree over, as systemd does with `Delegate=yes`.

import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where systemd mounts cgroup v2: alone, or beside v1. */
const MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/** The folder of this process's cgroup, if cgroups can be made below it and entered; otherwise null. */
export function delegatedCgroup(): string | null {
  const own = ownCgroup();
  if (own === null) return null;
  return MOUNTS.map((mount) => join(mount, own)).find(takesCgroups) ?? null;
}

/** Makes a cgroup, as far as the system allows. */
export function makeCgroup(folder: string): void {
  quietly(() => mkdirSync(folder));
}

/** The names of what is below a cgroup, its files among them; none when it cannot be read. */
export function cgroupsBelow(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Removes a cgroup, unless processes are in it. */
export function removeCgroup(folder: string): void {
  quietly(() => rmdirSync(folder));
}

/**
 * Calls `start`, so that a process which it starts is in this cgroup: this process enters it, and goes back into the
 * one above. A start matters more than its cgroup: where that cannot be entered, the process is started all the same.
 */
export function inCgroup<Result>(folder: string | null, start: () => Result): Result {
  if (folder === null || !enter(folder)) return start();
  try {
    return start();
  } finally {
    enter(dirname(folder));
  }
}

function ownCgroup(): string | null {
  try {
    return /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? null;
  } catch {
    return null;
  }
}

function takesCgroups(folder: string): boolean {
  const probe = join(folder, `troupe-probe-${process.pid}`);
  makeCgroup(probe);
  try {
    return enter(probe) && enter(folder);
  } finally {
    removeCgroup(probe);
  }
}

function enter(folder: string): boolean {
  return quietly(() => writeFileSync(join(folder, "cgroup.procs"), "0", { flag: "r+" }));
}

/** @returns whether it could be done */
function quietly(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}
