// Runs the checks of all instances periodically.
//
// - A check runs at its interval, and never twice at the same time.
// - The number of concurrent checks is limited; the others wait their turn, and slow checks of one job do not delay
//   those of another (concurrency-limit.ts).
// - Intervals have a random jitter, so that checks do not stay in step.
// - A check of an instance that is over is aborted, and its result is ignored.

import { type CheckParts, makeCheck } from "./check.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { type CheckState, delayMsAfter, type ServiceInstance } from "./instance.ts";

const CHECKS_AT_ONCE_MAX = 32;
/** Programs cost more than connections. */
const SCRIPTS_AT_ONCE_MAX = 4;
/** Checks come earlier by at most this part of the interval. */
const JITTER = 0.1;

export interface RoundsParts extends CheckParts {
  /** From 0 up to, not including, 1. */
  readonly fraction: () => number;
  /** Called after every check. */
  readonly onChecked: (instance: ServiceInstance) => void;
}

export class CheckRounds {
  readonly #parts: RoundsParts;
  readonly #connections = new ConcurrencyLimit(CHECKS_AT_ONCE_MAX);
  readonly #scripts = new ConcurrencyLimit(SCRIPTS_AT_ONCE_MAX);

  constructor(parts: RoundsParts) {
    this.#parts = parts;
  }

  /** Begins the checks of an instance, soon; they go on until it is over. */
  begin(instance: ServiceInstance): void {
    instance.spec.checks.forEach((_check, index) => {
      this.#later(instance, index, 0);
    });
  }

  /** Makes the checks of an instance that wait for their time now. Resolves once there is a new result of each. */
  async now(instance: ServiceInstance): Promise<void> {
    const results = instance.spec.checks.map((_check, index) => instance.nextResult(index));
    for (const [index, cancel] of [...instance.timers]) {
      cancel();
      this.#later(instance, index, 0);
    }
    await Promise.all(results);
  }

  #later(instance: ServiceInstance, index: number, delayMs: number): void {
    const check = instance.spec.checks[index]!;
    const limit = check.kind === "script" ? this.#scripts : this.#connections;
    const cancel = this.#parts.clock.after(delayMs, () => {
      instance.timers.delete(index);
      limit.add(instance.job.jobId, () => this.#make(instance, index));
    });
    instance.timers.set(index, cancel);
  }

  async #make(instance: ServiceInstance, index: number): Promise<void> {
    if (instance.isOver) return;
    const { clock, fraction, onChecked } = this.#parts;
    const check = instance.spec.checks[index]!;
    const fromMs = clock.steadyMs();
    const result = await makeCheck(this.#parts, instance, check, instance.over);
    if (instance.isOver) return;
    const state: CheckState = instance.checked(index, result, clock.nowMs());
    onChecked(instance);
    // From the check's beginning.
    const tookMs = clock.steadyMs() - fromMs;
    const delayMs = delayMsAfter(state, check) * (1 - JITTER * fraction());
    this.#later(instance, index, Math.max(0, delayMs - tookMs));
  }
}
