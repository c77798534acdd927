// The memory of commands that no control group keeps within their own, watched by the process that starts them.
//
// - What counts is what the system could not take back: anonymous and shared memory, also in swap, of a command's whole tree.
//   That is a worker, all below it, and orphans with its mark, which are children of this process.
// - Memory that processes share is counted once: before a tree is killed, their proportional shares are added up. A process
//   that has its parent's memory until its own program begins (vfork) has no share of it, and counts for nothing.
// - A burst between two looks is stopped by a limit of each process (RLIMIT_DATA). It also counts what is reserved and not
//   used, such as the stacks of threads, so it is far off; and programs may raise it.
// - Looking takes at most a twentieth of one processor, however many commands are watched.

import { availableParallelism } from "node:os";
import type { NativeSpawn } from "./native-spawn.ts";
import { markIn } from "./process-marks.ts";
import { childrenOf, readProcFile, statOf } from "./process-table.ts";
import { signalGroup, signalProcess } from "./process-trees.ts";

const LOOK_EVERY_MS = 250;
/** After looking, this many times the processor time of it without. */
const REST_FACTOR = 19;
const MICROSECONDS_PER_MS = 1_000;
/** Workers are started in between. */
const LOOKING_MS_MAX = 5;
/** Of one tree, which is looked at in one go. */
const PROCESSES_MAX = 1_000;
const THREADS_MAX = 256;
const BYTES_PER_KB = 1_024;
const GiB = 1_024 ** 3;

/** Of a command whose memory was watched. */
export interface WatchedMemory {
  /** What it held when that was found to be more than its own; null when it never was. */
  readonly exceededBytes: number | null;
}

interface Watched {
  readonly pid: number;
  readonly mark: string;
  readonly bytes: number;
  /** What the last look has found. */
  known: ReadonlyMap<number, unknown>;
  exceededBytes: number | null;
}

export class MemoryWatch {
  readonly #native: NativeSpawn;
  readonly #watched = new Map<number, Watched>();
  /** Those that this round of looks has not come to. */
  #due: Watched[] = [];
  #timer: NodeJS.Timeout | null = null;

  private constructor(native: NativeSpawn) {
    this.#native = native;
  }

  /** @returns null where this process does not get the orphans, or the system shows no shares */
  static open(native: NativeSpawn | null): MemoryWatch | null {
    return native === null || native.orphans() === null || shareOf("self") === null
      ? null
      : new MemoryWatch(native);
  }

  /** To be called while the worker cannot have been waited for: right after it was started. */
  started(pid: number, mark: string, bytes: number): void {
    this.#native.limitData(pid, stopOf(bytes));
    this.#watched.set(pid, { pid, mark, bytes, known: new Map([[pid, null]]), exceededBytes: null });
    this.#timer ??= setTimeout(() => this.#look(), LOOK_EVERY_MS);
  }

  /**
   * To be called when the worker has been waited for.
   *
   * @param rssBytesMax the most that one of its processes held
   * @returns null for one that was not watched
   */
  ended(pid: number, rssBytesMax: number): WatchedMemory | null {
    const watched = this.#watched.get(pid);
    if (watched === undefined) return null;
    this.#watched.delete(pid);
    // With so much it may have come to the stop before anybody looked.
    const burstBytes = rssBytesMax >= stopOf(watched.bytes) / 2 ? rssBytesMax : null;
    return { exceededBytes: watched.exceededBytes ?? burstBytes };
  }

  #look(): void {
    const fromCpu = process.threadCpuUsage();
    const untilMs = performance.now() + LOOKING_MS_MAX;
    if (this.#due.length === 0) this.#due = [...this.#watched.values()];
    const orphans = this.#native.orphans() ?? [];
    do {
      const watched = this.#due.pop();
      if (watched !== undefined && this.#watched.get(watched.pid) === watched) lookAt(watched, orphans);
    } while (this.#due.length > 0 && performance.now() < untilMs);
    const { user, system } = process.threadCpuUsage(fromCpu);
    const restMs = (REST_FACTOR * (user + system)) / MICROSECONDS_PER_MS;
    const afterMs = this.#due.length > 0 ? restMs : Math.max(LOOK_EVERY_MS, restMs);
    this.#timer = this.#watched.size === 0 ? null : setTimeout(() => this.#look(), afterMs);
  }
}

/** The limit of one process: libraries reserve stacks and buffers for each core. */
function stopOf(bytes: number): number {
  return 4 * bytes + GiB + (availableParallelism() * GiB) / 16;
}

function lookAt(watched: Watched, orphans: readonly number[]): void {
  const { pid, mark, bytes } = watched;
  const marked = orphans.filter((orphan) => markIn(readProcFile(`/proc/${orphan}/limits`) ?? "") === mark);
  const held = heldBelow([pid, ...marked]);
  if (watched.exceededBytes === null) {
    // What was not there yet may have its parent's memory, which changes while it is compared.
    for (const one of held.keys()) if (!watched.known.has(one)) held.set(one, 0);
    watched.known = held;
    if (sumOf(held) <= bytes) return;
    // Of a process that hides its share, or has just ended, all counts.
    for (const [one, all] of held) if (all > 0) held.set(one, shareOf(one) ?? all);
    const bytesNow = sumOf(held);
    if (bytesNow <= bytes) return;
    watched.exceededBytes = bytesNow;
  }
  // The ids of this process's own children are theirs until it has waited for them.
  signalGroup(pid, "SIGKILL");
  for (const one of held.keys()) {
    const parent = statOf(one)?.parentPid ?? 0;
    if (parent === process.pid || held.has(parent)) signalProcess(one, "SIGKILL");
  }
}

/** What processes and all below them hold. */
function heldBelow(roots: readonly number[]): Map<number, number> {
  const held = new Map<number, number>();
  const parents = new Map<number, string>(roots.map((pid) => [pid, ""]));
  // What is added meanwhile is visited as well.
  for (const [pid, parentMemory] of parents) {
    if (held.size === PROCESSES_MAX) break;
    const status = readProcFile(`/proc/${pid}/status`);
    if (status === null) continue;
    const memory = status.match(/^(?:Vm|Rss)\w+:.+$/gm)?.join() ?? "";
    const isOwn = memory !== parentMemory;
    held.set(pid, isOwn ? bytesIn(status, /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm) : 0);
    const threads = Number(/^Threads:\s+(\d+)$/m.exec(status)?.[1] ?? 1);
    for (const child of childrenOf(pid, threads, THREADS_MAX))
      if (!parents.has(child)) parents.set(child, memory);
  }
  return held;
}

/** What of a process's memory is its own, when each page that it shares is divided; null when it cannot be seen. */
function shareOf(pid: number | "self"): number | null {
  const text = readProcFile(`/proc/${pid}/smaps_rollup`);
  if (text === null || !text.includes("Pss_Anon:")) return null;
  return bytesIn(text, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm);
}

function bytesIn(text: string, lines: RegExp): number {
  return [...text.matchAll(lines)].reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * BYTES_PER_KB, 0);
}

function sumOf(held: ReadonlyMap<number, number>): number {
  return [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
}
