// The guard of workers: ends them when the lease is over under which their runtime works, also while that is stopped, or gone.
// It is a part of the program that starts workers, so it needs nobody else.
//
// - Without a lease nothing is ended, and no timer is set.
// - What it ends carries the mark of a worker that was started here, or is in its group: nothing that another program of
//   the same home starts meanwhile.

import { machineSource, type ProcessSource } from "./process-table.ts";
import { signalGroup, signalProcess } from "./process-trees.ts";

const LOOK_AGAIN_MS_FIRST = 20;
const LOOK_AGAIN_MS_MAX = 1_000;
/** Below this many, marks of which nothing is left are kept. */
const MARKS_MIN = 1_000;
const NS_PER_MS = 1_000_000;

export class LeaseGuard {
  /** On the machine's monotonic clock; null: for ever. */
  #untilNs: bigint | null = null;
  #cancel = () => {};
  readonly #marks = new Set<string>();
  readonly #groups = new Set<number>();
  #pruneAt = MARKS_MIN;
  readonly #runtimePid = process.ppid;
  readonly #onOver: () => void;
  readonly #source: ProcessSource;

  /** @param onOver called before anything is ended */
  constructor(onOver: () => void, source: ProcessSource = machineSource) {
    this.#onOver = onOver;
    this.#source = source;
  }

  /** Whether workers may run only for a time. */
  get isSet(): boolean {
    return this.#untilNs !== null;
  }

  /** Whether no worker may run, nor be started. */
  get isOver(): boolean {
    return this.#untilNs !== null && process.hrtime.bigint() >= this.#untilNs;
  }

  /** Workers may run until then. */
  extend(untilNs: bigint): void {
    this.#untilNs = untilNs;
    this.#wait();
  }

  started(mark: string, pid: number): void {
    if (!this.isSet) return;
    this.#marks.add(mark);
    this.#groups.add(pid);
  }

  /** @param isTreeGone whether nothing is left of it for sure */
  ended(mark: string, pid: number, isTreeGone: boolean): void {
    this.#groups.delete(pid);
    if (isTreeGone) this.#marks.delete(mark);
    if (this.#marks.size >= this.#pruneAt) {
      this.#pruneAt = Number.POSITIVE_INFINITY;
      void this.#prune();
    }
  }

  /** Forgets marks that no process has any more. */
  async #prune(): Promise<void> {
    const before = [...this.#marks];
    const seen = new Set((await this.#source.read().catch(() => null))?.map(({ mark }) => mark) ?? before);
    for (const mark of before) if (!seen.has(mark)) this.#marks.delete(mark);
    this.#pruneAt = Math.max(MARKS_MIN, 2 * this.#marks.size);
  }

  /** Ends every worker, and looks again until none is left. */
  async endAll(): Promise<void> {
    // Under the next lease others may be started meanwhile.
    const marks = new Set(this.#marks);
    const groups = new Set(this.#groups);
    for (let waitMs = LOOK_AGAIN_MS_FIRST; ; waitMs = Math.min(2 * waitMs, LOOK_AGAIN_MS_MAX)) {
      for (const pid of groups) if (this.#groups.has(pid)) signalGroup(pid, "SIGKILL");
      // A table that cannot be read (too many open files) says nothing of what is left.
      const processes = await this.#source.read().catch(() => null);
      const left = processes?.filter(
        ({ pid, mark, groupId, zombie }) =>
          !zombie &&
          pid !== process.pid &&
          pid !== this.#runtimePid &&
          ((mark !== null && marks.has(mark)) || (groups.has(groupId) && this.#groups.has(groupId))),
      );
      if (left?.length === 0) return;
      for (const { pid, start } of left ?? []) {
        if ((this.#source.startOf(pid) ?? start) === start) signalProcess(pid, "SIGKILL");
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  #wait(): void {
    this.#cancel();
    const leftMs = Number(this.#untilNs! - process.hrtime.bigint()) / NS_PER_MS;
    const timer = setTimeout(() => this.#look(), Math.max(0, Math.ceil(leftMs)));
    this.#cancel = () => clearTimeout(timer);
  }

  #look(): void {
    if (!this.isOver) {
      this.#wait();
      return;
    }
    this.#onOver();
    void this.endAll();
  }
}
