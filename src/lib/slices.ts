// Long work on the one thread, in slices: between two of them, everything else has its turn.
//
// It measures real time and takes no clock: how the work is cut changes nothing of what comes out of it.

import { scheduler } from "node:timers/promises";

const SLICE_MS = 2;

/**
 * The slices of one piece of work. The first one begins when this is made.
 *
 * @example
 * const slices = new Slices();
 * for (const line of lines) {
 *   if (slices.isOver) await slices.breathe();
 *   project(line);
 * }
 */
export class Slices {
  #endMs = performance.now() + SLICE_MS;

  /** Whether it is time to breathe. Costs a reading of the clock: for steps of a microsecond, ask at every few. */
  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }

  /** Lets everything else have its turn; then the next slice begins. */
  async breathe(): Promise<void> {
    await scheduler.yield();
    this.#endMs = performance.now() + SLICE_MS;
  }
}

/** Does work that comes in short steps, without a pause. @returns what the work returns */
export function atOnce<Result>(steps: Iterator<void, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Does work that comes in short steps, in slices. @returns what the work returns */
export async function inSlices<Result>(steps: Iterator<void, Result>): Promise<Result> {
  const slices = new Slices();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (slices.isOver) await slices.breathe();
  }
}
