// What a program has resident, as the kernel tells it.

import { readFileSync } from "node:fs";

/** In MB. `pid` may be a launcher that waits for the program: the larger of the two is the program. */
export const residentMb = (pid: number): number => statusMb(pid, "VmRSS");

/** The most it had so far. */
export const peakMb = (pid: number): number => statusMb(pid, "VmHWM");

function statusMb(pid: number, field: string): number {
  const pids = [pid, ...childrenOf(pid)];
  return Math.max(...pids.map((one) => read(one, field)));
}

function read(pid: number, field: string): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1_024);
}

/** The processes that this one has started, and that have not been waited for. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}
