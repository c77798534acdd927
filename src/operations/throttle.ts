// A throttle: of values that come as fast as they like, the latest is written, and only so often.

import type { Clock } from "../engine/ports.ts";

export interface ThrottleParts<Value> {
  readonly clock: Pick<Clock, "steadyMs" | "after">;
  /** The least time from one write to the next, at this moment. */
  readonly everyMs: () => number;
  /** Never rejects; one write begins when the one before has ended. */
  readonly write: (value: Value) => Promise<void>;
}

export class Throttle<Value> {
  readonly #parts: ThrottleParts<Value>;
  #latest: { readonly value: Value } | null = null;
  #cancelTimer: (() => void) | null = null;
  #wroteAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: ThrottleParts<Value>) {
    this.#parts = parts;
  }

  /** Costs next to nothing, however often it is called. */
  report(value: Value): void {
    this.#latest = { value };
    if (this.#cancelTimer !== null) return;
    const { clock, everyMs } = this.#parts;
    const waitMs = Math.max(0, this.#wroteAtMs + everyMs() - clock.steadyMs());
    this.#cancelTimer = clock.after(waitMs, () => this.#writeLatest());
  }

  /** Drops what was reported and is not being written yet. */
  drop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#latest = null;
  }

  /** The same; resolves when nothing is being written. */
  async close(): Promise<void> {
    this.drop();
    await this.#writing;
  }

  #writeLatest(): void {
    const latest = this.#latest;
    this.drop();
    if (latest === null) return;
    this.#wroteAtMs = this.#parts.clock.steadyMs();
    this.#writing = this.#writing.then(() => this.#parts.write(latest.value));
  }
}
