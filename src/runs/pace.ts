// A throttle for background work: after each step it rests for as long as the step took, so
// that it has half of the thread at most, and others write to the store in between.

import type { Clock } from "../engine/ports.ts";

const REST_MS_MIN = 1;
const REST_MS_MAX = 100;

export class Pace {
  readonly #clock: Pick<Clock, "steadyMs" | "after">;
  readonly #rests = new Set<() => void>();
  #isStopped = false;

  constructor(clock: Pick<Clock, "steadyMs" | "after">) {
    this.#clock = clock;
  }

  /** Does one step, which should take a few milliseconds, and rests. */
  async step<Result>(work: () => Promise<Result>): Promise<Result> {
    const startedAtMs = this.#clock.steadyMs();
    const result = await work();
    const tookMs = this.#clock.steadyMs() - startedAtMs;
    await this.#rest(Math.min(REST_MS_MAX, Math.max(REST_MS_MIN, tookMs)));
    return result;
  }

  #rest(ms: number): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        this.#rests.delete(end);
        resolve();
      };
      const cancel = this.#clock.after(ms, end);
      this.#rests.add(end);
    });
  }

  /** No rest from now on; those that continue end at once. */
  stop(): void {
    this.#isStopped = true;
    for (const end of this.#rests) end();
  }
}
