// What the gateway's records need from time to time: it removes expired idempotency responses, old operations and events,
// what deleted jobs have left, and nodes that are gone for good. Of several programs that share the records one does it at a
// time; each removes what was prepared in its own home for runs that have ended elsewhere.

import type { Clock, EngineLog } from "../engine/ports.ts";
import type { OperationRecords } from "../operations/records.ts";
import type { Definitions } from "./definitions.ts";
import type { GatewayRecords } from "./records.ts";

const EVERY_MS = 10 * 60 * 1_000;
/** Over before the next round of its holder. */
const ON_DUTY_MS = EVERY_MS - 30_000;
const RECORDS_PER_STEP = 1_000;
/** Each may have a few thousand events. */
const OPERATIONS_PER_STEP = 10;
/** Events, and the period in which an event_id is known again; of more, the newest. */
const EVENT_DAYS = 7;
const EVENTS_MAX = 1_000_000;
/** Each may have 256 KiB. */
const EVENTS_PER_STEP = 100;
const DAY_MS = 24 * 60 * 60 * 1_000;

export interface HousekeepingParts {
  readonly records: GatewayRecords;
  readonly definitions: Definitions;
  readonly clock: Clock;
  readonly log: EngineLog;
  /** How long an idempotency record is good. */
  readonly idempotencyMs: number;
  readonly operations: Pick<OperationRecords, "forgetOperations">;
  /** SVC_RETENTION_DAYS; 0: operations are kept. */
  readonly retentionDays: number;
  /** Removes the rows of nodes that are gone for good. */
  readonly forgetNodes: () => Promise<void>;
  /** Whether this program is to do it, for so long from now on. */
  readonly takeDuty: (forMs: number) => Promise<boolean>;
  /** Removes what only this program's home has. */
  readonly sweepHome: () => Promise<void>;
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
    this.#round = this.#clean()
      .catch((error: unknown) => {
        this.#parts.log.warn(
          { error: String(error) },
          "expired idempotency records, old operations and events could not all be removed yet",
        );
      })
      .then(() => {
        if (!this.#isStopped) this.#cancelTimer = this.#parts.clock.after(EVERY_MS, () => this.start());
      });
  }

  async #clean(): Promise<void> {
    const { definitions, takeDuty, forgetNodes, sweepHome } = this.#parts;
    if (await takeDuty(ON_DUTY_MS)) {
      definitions.purge();
      await this.#forgetAnswers();
      await this.#forgetOperations();
      await this.#forgetEvents();
      await forgetNodes();
    }
    await sweepHome();
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
    await this.#inSteps(() => records.forgetIdempotency(beforeMs, RECORDS_PER_STEP));
  }

  async #forgetOperations(): Promise<void> {
    const { operations, clock, retentionDays } = this.#parts;
    if (retentionDays === 0) return;
    const beforeMs = clock.nowMs() - retentionDays * DAY_MS;
    await this.#inSteps(() => operations.forgetOperations(beforeMs, OPERATIONS_PER_STEP));
  }

  async #forgetEvents(): Promise<void> {
    const { records, clock } = this.#parts;
    const beforeMs = clock.nowMs() - EVENT_DAYS * DAY_MS;
    await this.#inSteps(() => records.events.forgetEvents(beforeMs, EVENTS_MAX, EVENTS_PER_STEP));
  }

  /** Small ones, so that others write in between. */
  async #inSteps(forgetSome: () => Promise<number>): Promise<void> {
    while (!this.#isStopped && (await forgetSome()) > 0);
  }
}
