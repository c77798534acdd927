// Limits the CPU time of live streams. Thousands of readers could use the whole thread; the runs come first.
//
// - Work is done in slices of about SLICE_MS, with the loop's other work between them. Only the first slice after
//   news comes at once: a busy loop may take tens of milliseconds to come round.
// - Time is earned before it is used: SHARE of all time and, while no run makes progress, QUIET_SHARE of the time
//   in which the thread has nothing to do. Up to BURST_MS are kept, so that a few readers never wait. An idle
//   thread alone says little: the runs' commands need the machine, not the thread.
// - What a slice took too long, or was done for the streams outside of slices, is earned before the next slice.
//   Measured is time, not work: of what a collection of garbage or another process took, little is charged.

/** The thread's clocks and timers; tests replace them. */
export interface Thread {
  /** Never goes back. */
  nowMs(): number;
  /** How long the thread has worked, not waited, since some moment. */
  busyMs(): number;
  /** Calls `run` once what is under way has been handled. */
  soon(run: () => void): void;
  /** Calls `run` after `delayMs`; the returned function takes it back. */
  after(delayMs: number, run: () => void): () => void;
}

const SLICE_MS = 2;
const SHARE = 0.03;
const QUIET_SHARE = 0.5;
/** Without progress for this long, no run is slowed by much. */
const QUIET_MS = 100;
const BURST_MS = 20;
/** One piece of work takes less; what seems to take more was held up. */
const CHARGE_MS_MAX = 5;

export const realThread: Thread = {
  nowMs: () => performance.now(),
  busyMs: () => performance.eventLoopUtilization().active,
  soon: (run) => {
    setImmediate(run);
  },
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

export class Pacer {
  readonly #thread: Thread;
  readonly #work: () => boolean;
  readonly #progress: () => number;
  #earnedMs = BURST_MS;
  #countedAtMs: number;
  #busyCountedAtMs: number;
  /** Up to here on the busy clock, the streams' work has been charged: what overlaps is paid once. */
  #chargedToMs = 0;
  #isAwake = false;
  #progressSeen = -1;
  #quietFromMs = 0;

  /**
   * @param options.work does a little, and tells whether more is to do; called until it says no or the slice is over
   * @param options.progress changes whenever a run makes progress
   */
  constructor(options: { thread: Thread; work: () => boolean; progress: () => number }) {
    const { thread } = options;
    this.#thread = thread;
    this.#work = options.work;
    this.#progress = options.progress;
    this.#countedAtMs = thread.nowMs();
    this.#busyCountedAtMs = thread.busyMs();
  }

  /** There is work; it begins as soon as its time is earned. */
  wake(): void {
    if (this.#isAwake) return;
    this.#isAwake = true;
    this.#thread.soon(this.#slice);
  }

  /** There are new events: a slice is done in this turn of the event loop, if its time is earned. */
  wakeAtOnce(): void {
    if (this.#isAwake) return;
    this.#isAwake = true;
    queueMicrotask(this.#slice);
  }

  /** Charges what the thread worked since it had worked `fromBusyMs`, as far as that was not charged before. */
  charge(fromBusyMs: number): void {
    const busyMs = this.#thread.busyMs();
    const usedMs = busyMs - Math.max(fromBusyMs, this.#chargedToMs);
    this.#earnedMs -= Math.min(CHARGE_MS_MAX, Math.max(0, usedMs));
    this.#chargedToMs = busyMs;
  }

  readonly #slice = (): void => {
    this.#earn();
    if (this.#earnedMs < 0) {
      // While runs make progress it takes longer than this; then the wait goes on.
      this.#thread.after(Math.max(1, -this.#earnedMs / QUIET_SHARE), this.#slice);
      return;
    }
    const fromBusyMs = this.#thread.busyMs();
    const endMs = this.#thread.nowMs() + SLICE_MS;
    let hasMore = true;
    while (hasMore && this.#thread.nowMs() < endMs) hasMore = this.#work();
    this.charge(fromBusyMs);
    // What the work set off within this turn of the loop, such as the callbacks of its writes, is its own too.
    queueMicrotask(() => this.charge(fromBusyMs));
    this.#isAwake = false;
    if (hasMore) this.wake();
  };

  #earn(): void {
    const nowMs = this.#thread.nowMs();
    const busyMs = this.#thread.busyMs();
    const progress = this.#progress();
    if (progress !== this.#progressSeen) {
      this.#progressSeen = progress;
      this.#quietFromMs = nowMs + QUIET_MS;
    }
    const passedMs = nowMs - this.#countedAtMs;
    this.#earnedMs += passedMs * SHARE;
    if (this.#countedAtMs >= this.#quietFromMs) {
      const idleMs = Math.max(0, passedMs - (busyMs - this.#busyCountedAtMs));
      this.#earnedMs += idleMs * (QUIET_SHARE - SHARE);
    }
    this.#earnedMs = Math.min(BURST_MS, this.#earnedMs);
    this.#countedAtMs = nowMs;
    this.#busyCountedAtMs = busyMs;
  }
}
