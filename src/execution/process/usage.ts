// What workers use of the machine: measured by the process that starts them.
//
// The system tells what a worker has used when it is waited for (native-spawn.ts). Node does not pass that on: where Node
// starts workers, it is what the CPU time of all children that were waited for has grown by. Memory is looked at while
// workers run, soon after their start and then less and less often; what is allocated and gone between two looks is not
// seen.
//
// - CPU times add up: each tick of a worker, and of what it waited for, is reported once. Workers that are found to
//   have ended at the same moment get what was seen of them, and share the rest by how long nobody had looked.
// - What a worker left running counts as far as it was seen; and no worker is reported with less than was seen.
// - Looking takes at most a hundredth of one processor, however many workers run.

import { existsSync } from "node:fs";
import type { ResourceUsage } from "../../engine/task-port.ts";
import { childrenOf, readProcFile, statOf } from "./process-table.ts";

/**
 * From a worker's start to the first look, from that to the second, …; the last one goes on. A look at a command that
 * is over sooner than the first would cost a noticeable part of it.
 */
const LOOK_AFTER_MS = [40, 160, 300, 500, 1_000] as const;
/** After looking, this many times the processor time of it without. */
const REST_FACTOR = 99;
const MICROSECONDS_PER_MS = 1_000;
/** Workers are started in between. */
const LOOKING_MS_MAX = 5;

interface Watched {
  readonly pid: number;
  looks: number;
  dueAtMs: number;
  lookedAtMs: number;
  seenTicks: number;
  rssBytesMax: number | null;
  memoryBytesMax: number;
  processesMax: number;
  below: readonly SeenProcess[];
}

/** The most that looks at a running worker, with all that it has started, have seen. */
export interface Peaks {
  /** Of all its processes together, without what they have of files. */
  readonly memoryBytes: number;
  readonly processes: number;
  readonly cpuMs: number;
}

type Report = (usage: ResourceUsage | null) => void;

export class UsageMeter {
  readonly #running = new Map<number, Watched>();
  /** Workers that were found to have ended since the event loop came round last. */
  #ended: { readonly worker: Watched; readonly report: Report }[] = [];
  #reapedTicks = reapedTicksOfThis();
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #restUntilMs = 0;

  /** To be called while the worker cannot have been waited for: right after it was started. */
  started(pid: number): void {
    if (this.#reapedTicks === null) return;
    const nowMs = performance.now();
    this.#running.set(pid, {
      pid,
      looks: 0,
      dueAtMs: nowMs + LOOK_AFTER_MS[0],
      lookedAtMs: nowMs,
      seenTicks: 0,
      rssBytesMax: null,
      memoryBytesMax: 0,
      processesMax: 0,
      below: [],
    });
    this.#wakeAt(nowMs + LOOK_AFTER_MS[0]);
  }

  /** @returns null for one that nobody has looked at, or that does not run */
  peaksOf(pid: number): Peaks | null {
    const worker = this.#running.get(pid);
    if (worker === undefined || worker.looks === 0) return null;
    const { memoryBytesMax: memoryBytes, processesMax: processes, seenTicks } = worker;
    return { memoryBytes, processes, cpuMs: seenTicks * MS_PER_TICK };
  }

  /**
   * To be called when the worker has been waited for.
   *
   * @param report gets its usage, at once or soon
   * @param cpuMs what it and all that it has waited for used; null when the system has not told
   */
  ended(pid: number, report: Report, cpuMs: number | null): void {
    const worker = this.#running.get(pid);
    if (worker === undefined) {
      report(null);
      return;
    }
    this.#running.delete(pid);
    if (cpuMs !== null) {
      report(usageOfEnded(worker, cpuMs));
      return;
    }
    // Others may have been waited for as well, and their turn to be told comes now.
    if (this.#ended.length === 0) setImmediate(() => this.#settle());
    this.#ended.push({ worker, report });
  }

  #settle(): void {
    const ended = this.#ended;
    this.#ended = [];
    const reaped = reapedTicksOfThis() ?? 0;
    const ticks = reaped - (this.#reapedTicks ?? 0);
    this.#reapedTicks = reaped;
    const nowMs = performance.now();
    const all = ended.map(({ worker, report }) => {
      const left = usageOf(worker.below);
      // Of what was seen, the part that is in the sum now; and how long nobody has looked since.
      const seenTicks = Math.max(0, worker.seenTicks - left.ticks);
      return { worker, report, left, seenTicks, unseenMs: nowMs - worker.lookedAtMs };
    });
    const unseenTicks = Math.max(0, ticks - sumOf(all, ({ seenTicks }) => seenTicks));
    const unseenMsOfAll = sumOf(all, ({ unseenMs }) => unseenMs) || 1;
    for (const { worker, report, left, seenTicks, unseenMs } of all) {
      const share = seenTicks + unseenTicks * (unseenMs / unseenMsOfAll);
      report({
        cpuMs: Math.round(Math.max(share + left.ticks, worker.seenTicks) * MS_PER_TICK),
        rssBytesMax: larger(worker.rssBytesMax, left.rssBytesMax),
      });
    }
  }

  #wakeAt(atMs: number): void {
    const notBeforeMs = Math.max(atMs, this.#restUntilMs);
    if (notBeforeMs >= this.#timerAtMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerAtMs = notBeforeMs;
    this.#timer = setTimeout(() => this.#look(), Math.max(0, notBeforeMs - performance.now()));
  }

  /** Looks at the workers that are due, those that have waited longest first. */
  #look(): void {
    this.#timer = null;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    const fromCpu = process.threadCpuUsage();
    const fromMs = performance.now();
    const due = [...this.#running.values()].filter(({ dueAtMs }) => dueAtMs <= fromMs);
    due.sort((a, b) => a.dueAtMs - b.dueAtMs);
    let nowMs = fromMs;
    for (const worker of due) {
      if (nowMs - fromMs > LOOKING_MS_MAX) break;
      lookAt(worker, nowMs);
      nowMs = performance.now();
    }
    const { user, system } = process.threadCpuUsage(fromCpu);
    this.#restUntilMs = nowMs + (REST_FACTOR * (user + system)) / MICROSECONDS_PER_MS;
    let nextAtMs = Number.POSITIVE_INFINITY;
    for (const { dueAtMs } of this.#running.values()) nextAtMs = Math.min(nextAtMs, dueAtMs);
    if (this.#running.size > 0) this.#wakeAt(nextAtMs);
  }
}

/** The usage of a worker of which the system told what it used itself. */
function usageOfEnded({ below, seenTicks, rssBytesMax }: Watched, cpuMs: number): ResourceUsage {
  const left = usageOf(below);
  return {
    cpuMs: Math.round(Math.max(cpuMs + left.ticks * MS_PER_TICK, seenTicks * MS_PER_TICK)),
    rssBytesMax: larger(rssBytesMax, left.rssBytesMax),
  };
}

function sumOf<T>(items: readonly T[], termOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + termOf(item), 0);
}

function lookAt(worker: Watched, nowMs: number): void {
  const { ticks, rssBytesMax, memoryBytes, processes, below } = usageOfTree(worker.pid, worker.below);
  worker.looks++;
  worker.dueAtMs = nowMs + (LOOK_AFTER_MS[worker.looks] ?? LOOK_AFTER_MS.at(-1) ?? 0);
  worker.lookedAtMs = nowMs;
  worker.seenTicks = Math.max(worker.seenTicks, ticks);
  worker.rssBytesMax = larger(worker.rssBytesMax, rssBytesMax);
  worker.memoryBytesMax = Math.max(worker.memoryBytesMax, memoryBytes);
  worker.processesMax = Math.max(worker.processesMax, processes);
  worker.below = below;
}

/** What all children of this process that were waited for have used; null where there is no /proc. */
function reapedTicksOfThis(): number | null {
  return statOf("self")?.reapedTicks ?? null;
}

/** Linux shows 100 a second everywhere. */
const MS_PER_TICK = 10;

/** Bounds of one look at a tree, so that a worker with thousands of processes does not slow the others. */
const PROCESSES_MAX = 64;
const THREADS_MAX = 16;
const BYTES_PER_KB = 1_024;

/** A process that cannot be mistaken for a later one with the same id. */
interface SeenProcess {
  readonly pid: number;
  readonly start: string;
}

/** What a process tree has used, as far as it can be seen. */
interface TreeUsage {
  /** Of its processes, and of what they had started and waited for. */
  readonly ticks: number;
  /** The most memory that one of its processes held at a time; null when none of them has any left. */
  readonly rssBytesMax: number | null;
  /** What all of them hold now. */
  readonly memoryBytes: number;
  /** How many there are, without those that only hold a sandbox. */
  readonly processes: number;
  /** The processes below the root. */
  readonly below: readonly SeenProcess[];
}

/**
 * Looks at a process and at what lives below it. The process must not have been waited for yet.
 *
 * @param known what an earlier look found below it. The children of a process that has ended since, be it the root, are no
 *   longer below it.
 */
function usageOfTree(rootPid: number, known: readonly SeenProcess[]): TreeUsage {
  let ticks = 0;
  let rssBytesMax: number | null = null;
  let memoryBytes = 0;
  let others = 0;
  const below: SeenProcess[] = [];
  const starts = new Map(known.map(({ pid, start }) => [pid, start]));
  // What is added meanwhile is visited as well.
  const pids = new Set([rootPid, ...starts.keys()]);
  let visited = 0;
  for (const pid of pids) {
    if (++visited > PROCESSES_MAX) break;
    const stat = statOf(pid);
    if (stat === null || (starts.get(pid) ?? stat.start) !== stat.start) {
      others++;
      continue;
    }
    ticks += stat.ownTicks + stat.reapedTicks;
    const status = statusOf(pid);
    rssBytesMax = larger(rssBytesMax, rssBytesMaxIn(status));
    memoryBytes += memoryBytesIn(status);
    if (status.startsWith(SANDBOX_HOLDER)) others++;
    if (pid !== rootPid) below.push({ pid, start: stat.start });
    for (const child of childrenOf(pid, stat.threads, THREADS_MAX)) pids.add(child);
  }
  // More of them than are visited count as well.
  return { ticks, rssBytesMax, memoryBytes, processes: pids.size - others, below };
}

/** What those of the processes that still live have used. */
function usageOf(processes: readonly SeenProcess[]): Pick<TreeUsage, "ticks" | "rssBytesMax"> {
  let ticks = 0;
  let rssBytesMax: number | null = null;
  for (const { pid, start } of processes) {
    // Most are gone by now, and asking costs less than failing to open.
    if (!existsSync(`/proc/${pid}`)) continue;
    const stat = statOf(pid);
    if (stat?.start !== start) continue;
    ticks += stat.ownTicks + stat.reapedTicks;
    rssBytesMax = larger(rssBytesMax, rssBytesMaxIn(statusOf(pid)));
  }
  return { ticks, rssBytesMax };
}

/** The larger of two numbers of which either may be unknown. */
function larger(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}

/** The first line of what the system says of a process that holds a sandbox. */
const SANDBOX_HOLDER = "Name:\tbwrap\n";

/** Empty for a process that is gone. */
function statusOf(pid: number): string {
  return readProcFile(`/proc/${pid}/status`) ?? "";
}

/** The most memory that the process has held since it runs its program; null for one that is ending. */
function rssBytesMaxIn(status: string): number | null {
  const kb = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  return kb === undefined ? null : Number(kb) * BYTES_PER_KB;
}

function memoryBytesIn(status: string): number {
  const lines = [...status.matchAll(/^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm)];
  return sumOf(lines, ([, kb]) => Number(kb) * BYTES_PER_KB);
}
