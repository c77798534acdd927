// Timers of all jobs in one binary heap. Entries are not removed one by one: the callee checks whether the
// timer still applies, and stale ones are swept out now and then.

export interface Timer {
  /** On the steady clock. */
  readonly dueAtMs: number;
  readonly jobId: string;
  readonly what: TimerWhat;
}

export type TimerWhat =
  | { readonly kind: "deadline" }
  | { readonly kind: "retry"; readonly taskSeq: number }
  | { readonly kind: "sensor"; readonly agentIndex: number }
  | { readonly kind: "human"; readonly requestId: string };

/** Below this many, stale timers are not swept. */
const PRUNE_AT_MIN = 10_000;

export class TimerQueue {
  #heap: Timer[] = [];
  #pruneAt = PRUNE_AT_MIN;
  readonly #isLive: (timer: Timer) => boolean;

  /** @param isLive whether a timer is not stale */
  constructor(isLive: (timer: Timer) => boolean) {
    this.#isLive = isLive;
  }

  get size(): number {
    return this.#heap.length;
  }

  get nextDueMs(): number | null {
    return this.#heap[0]?.dueAtMs ?? null;
  }

  push(timer: Timer): void {
    if (this.#heap.length >= this.#pruneAt) this.#prune();
    this.#up(timer);
  }

  /** Drops stale timers whenever the heap has doubled: a constant cost per timer. */
  #prune(): void {
    const live = this.#heap.filter(this.#isLive);
    this.#heap = [];
    for (const timer of live) this.#up(timer);
    this.#pruneAt = Math.max(PRUNE_AT_MIN, 2 * live.length);
  }

  #up(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.dueAtMs <= timer.dueAtMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = timer;
  }

  /** Takes the earliest timer that is due at `steadyMs`; undefined when none is. */
  popDue(steadyMs: number): Timer | undefined {
    const heap = this.#heap;
    const top = heap[0];
    if (top === undefined || top.dueAtMs > steadyMs) return undefined;
    const last = heap.pop()!;
    if (heap.length > 0) this.#sink(last);
    return top;
  }

  #sink(timer: Timer): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.dueAtMs < heap[child]!.dueAtMs) child++;
      if (heap[child]!.dueAtMs >= timer.dueAtMs) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = timer;
  }
}
