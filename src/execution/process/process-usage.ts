// What processes have used so far, as /proc shows it. CPU times are in clock ticks, of which Linux shows 100 a second
// everywhere. For the process that starts workers: it reads synchronously, which takes microseconds.

import { existsSync, readdirSync } from "node:fs";
import { readProcFile } from "./proc-file.ts";

export const MS_PER_TICK = 10;

/** Bounds of one look at a tree, so that a worker with thousands of processes does not slow the others. */
const PROCESSES_MAX = 64;
const THREADS_MAX = 16;
const BYTES_PER_KB = 1_024;

/** A process that cannot be mistaken for a later one with the same id. */
export interface SeenProcess {
  readonly pid: number;
  readonly start: string;
}

/** What a process tree has used, as far as it can be seen. */
export interface TreeUsage {
  /** Of its processes, and of what they had started and waited for. */
  readonly ticks: number;
  /** The most memory that one of its processes held at a time; null when none of them has any left. */
  readonly rssBytesMax: number | null;
  /** The processes below the root. */
  readonly below: readonly SeenProcess[];
}

/** Looks at a process and at what lives below it. The process must not have been waited for yet. */
export function usageOfTree(rootPid: number): TreeUsage {
  let ticks = 0;
  let rssBytesMax: number | null = null;
  const below: SeenProcess[] = [];
  const pids = [rootPid];
  for (let i = 0; i < pids.length && i < PROCESSES_MAX; i++) {
    const pid = pids[i] ?? rootPid;
    const stat = statOf(pid);
    if (stat === null) continue;
    ticks += stat.ownTicks + stat.reapedTicks;
    rssBytesMax = larger(rssBytesMax, rssBytesMaxOf(pid));
    if (pid !== rootPid) below.push({ pid, start: stat.start });
    pids.push(...childrenOf(pid, stat.threads));
  }
  return { ticks, rssBytesMax, below };
}

/** What those of the processes that still live have used. */
export function usageOf(processes: readonly SeenProcess[]): Omit<TreeUsage, "below"> {
  let ticks = 0;
  let rssBytesMax: number | null = null;
  for (const { pid, start } of processes) {
    // Most are gone by now, and asking costs less than failing to open.
    if (!existsSync(`/proc/${pid}`)) continue;
    const stat = statOf(pid);
    if (stat?.start !== start) continue;
    ticks += stat.ownTicks + stat.reapedTicks;
    rssBytesMax = larger(rssBytesMax, rssBytesMaxOf(pid));
  }
  return { ticks, rssBytesMax };
}

/** What all children of this process that were waited for have used; null where there is no /proc. */
export function reapedTicks(): number | null {
  return statOf("self")?.reapedTicks ?? null;
}

/** The larger of two numbers of which either may be unknown. */
export function larger(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}

interface Stat {
  readonly ownTicks: number;
  /** Of children that it has waited for, and of theirs. */
  readonly reapedTicks: number;
  readonly threads: number;
  readonly start: string;
}

/** The name in parentheses may hold anything, so fields are counted from the last parenthesis. */
function statOf(pid: number | "self"): Stat | null {
  const text = readProcFile(`/proc/${pid}/stat`);
  if (text === null) return null;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const number = (index: number) => Number(fields[index] ?? 0);
  return {
    ownTicks: number(11) + number(12),
    reapedTicks: number(13) + number(14),
    threads: number(17),
    start: fields[19] ?? "",
  };
}

/** The most memory that the process has held since it runs its program; null for one that is ending. */
function rssBytesMaxOf(pid: number): number | null {
  const kb = /^VmHWM:\s+(\d+) kB$/m.exec(readProcFile(`/proc/${pid}/status`) ?? "")?.[1];
  return kb === undefined ? null : Number(kb) * BYTES_PER_KB;
}

/** Children belong to the thread that started them. Empty where the system does not list them. */
function childrenOf(pid: number, threads: number): number[] {
  const threadIds = threads <= 1 ? [String(pid)] : threadsOf(pid);
  return threadIds.flatMap((id) => {
    const text = readProcFile(`/proc/${pid}/task/${id}/children`);
    return text === null ? [] : text.split(" ").filter(Boolean).map(Number);
  });
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).slice(0, THREADS_MAX);
  } catch {
    return [];
  }
}
