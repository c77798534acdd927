// Waits of launches for the services that they require: after a restart the jobs that offer them are only being taken
// over, and no service is passing before it was reached again.
//
// W1. A wait holds neither a place among the preparations nor the run's turn, and costs a look in memory now and then.
// W2. It ends with the first look that finds nothing missing, or with the last one.

import type { Clock } from "../engine/ports.ts";

/** 60 looks in half a minute. */
const LOOK_EVERY_MS = 500;
const LOOKS_MAX = 60;

export class ServiceWaits {
  readonly #clock: Clock;
  /** How to take the next look back, by run. */
  readonly #cancels = new Map<string, () => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#cancels.size;
  }

  has(runId: string): boolean {
    return this.#cancels.has(runId);
  }

  /**
   * Lets a run wait.
   *
   * @param isMissing whether a service that it requires is not passing yet
   * @param onEnd called once, unless the wait is dropped
   */
  begin(runId: string, isMissing: () => boolean, onEnd: () => void): void {
    let looks = 0;
    const look = () => {
      if (++looks < LOOKS_MAX && isMissing()) {
        this.#cancels.set(runId, this.#clock.after(LOOK_EVERY_MS, look));
        return;
      }
      this.#cancels.delete(runId);
      onEnd();
    };
    this.#cancels.set(runId, this.#clock.after(LOOK_EVERY_MS, look));
  }

  drop(runId: string): void {
    this.#cancels.get(runId)?.();
    this.#cancels.delete(runId);
  }

  dropAll(): void {
    for (const runId of [...this.#cancels.keys()]) this.drop(runId);
  }
}

/** What a run is told that waits. @param names at least one */
export function waitLabel([first, ...others]: readonly string[]): string {
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `Waiting for service ${first}${more}`;
}
