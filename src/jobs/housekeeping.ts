// What the gateway's records need from time to time: promised answers that have expired go, and what deleted jobs have
// left is removed.

import type { Clock, EngineLog } from "../engine/ports.ts";
import type { Definitions } from "./definitions.ts";
import type { GatewayRecords } from "./records.ts";

const EVERY_MS = 10 * 60 * 1_000;
const RECORDS_PER_STEP = 1_000;

export interface HousekeepingParts {
  readonly records: GatewayRecords;
  readonly definitions: Definitions;
  readonly clock: Clock;
  readonly log: EngineLog;
  /** How long an idempotency record is good. */
  readonly idempotencyMs: number;
}

export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #cancelTimer: (() => void) | null = null;
  #round: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  /** One round now, and one ten minutes after the end of each: rounds never overlap. */
  start(): void {
    this.#parts.definitions.purge();
    this.#round = this.#forgetAnswers()
      .catch((error: unknown) => {
        this.#parts.log.warn(
          { error: String(error) },
          "expired idempotency records could not be removed yet",
        );
      })
      .then(() => {
        if (!this.#isStopped) this.#cancelTimer = this.#parts.clock.after(EVERY_MS, () => this.start());
      });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    await this.#round;
    await this.#parts.definitions.stop();
  }

  async #forgetAnswers(): Promise<void> {
    const { records, clock, idempotencyMs } = this.#parts;
    const beforeMs = clock.nowMs() - idempotencyMs;
    while (!this.#isStopped && (await records.forgetIdempotency(beforeMs, RECORDS_PER_STEP)) > 0) {
      // In small steps, so that others write in between.
    }
  }
}
