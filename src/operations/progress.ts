// One operation under way: its record as it is on disk, and the changes that its handler makes to it.
//
// - Changes are written one after the other, each in a transaction of its own, and published after their commit.
// - Progress is written at most every PROGRESS_EVERY_MS, and less often the longer the operation takes, so that its
//   history stays a few thousand events long; of what comes faster the latest counts.
// - Progress that cannot be written is forgotten; any other change that cannot be written stops the handler.

import { JournalUnavailable } from "../engine/journal.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { Semaphore } from "../lib/async.ts";
import { OperationLost } from "./failures.ts";
import { entered, eventLine, type OperationChange, progressed, skipped } from "./operation-change.ts";
import type { Operation, OperationWrites } from "./records.ts";
import { Throttle } from "./throttle.ts";

const PROGRESS_EVERY_MS = 250;
/** The share of its age that an operation waits between two reports. */
const AGE_SHARE = 1 / 400;

/** What a handler needs of an operation under way. */
export type OperationContext = Omit<OperationProgress, "change" | "close">;

export interface ProgressParts {
  readonly write: <T>(work: (writes: { readonly operations: OperationWrites }) => Promise<T>) => Promise<T>;
  readonly published: (operation: Operation, line: string) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export class OperationProgress {
  readonly #parts: ProgressParts;
  #operation: Operation;
  /** Changes are made one after the other. */
  readonly #turns = new Semaphore(1);
  readonly #throttle: Throttle<{ readonly fraction: number; readonly label: string }>;

  constructor(operation: Operation, parts: ProgressParts) {
    this.#operation = operation;
    this.#parts = parts;
    const { clock } = parts;
    const beganAtMs = clock.steadyMs();
    this.#throttle = new Throttle({
      clock,
      everyMs: () => Math.max(PROGRESS_EVERY_MS, (clock.steadyMs() - beganAtMs) * AGE_SHARE),
      write: async ({ fraction, label }) => {
        try {
          await this.change((before, nowMs) => progressed(before, fraction, label, nowMs));
        } catch (error) {
          if (!(error instanceof JournalUnavailable || error instanceof OperationLost)) throw error;
        }
      },
    });
  }

  /** As it is on disk. */
  get operation(): Operation {
    return this.#operation;
  }

  /** Aborted when the program stops: the handler ends as soon as it can, and is called again by the next start. */
  get signal(): AbortSignal {
    return this.#parts.signal;
  }

  /**
   * Enters a step; the one before it is completed.
   * @throws JournalUnavailable, OperationLost
   */
  async step(name: string): Promise<void> {
    this.#throttle.drop();
    await this.change((before, nowMs) => entered(before, name, nowMs));
  }

  /**
   * There is nothing to do in this step.
   * @throws JournalUnavailable, OperationLost
   */
  async skip(name: string): Promise<void> {
    this.#throttle.drop();
    await this.change((before, nowMs) => skipped(before, name, nowMs));
  }

  /** Tells how far the step under way has come, 0 to 1; as often as is convenient. */
  progress(fraction: number, label: string): void {
    this.#throttle.report({ fraction, label });
  }

  /**
   * Keeps what a handler that is called again must know, as `operation.result`; readers see it with the end only.
   * @throws JournalUnavailable, OperationLost
   */
  remember(result: JsonObject): Promise<void> {
    return this.#turns.run(async () => {
      const operation = { ...this.#operation, result };
      await this.#parts.write((writes) => saveOwn(writes, operation, null));
      this.#operation = operation;
    });
  }

  /**
   * Makes a change, and publishes its event.
   *
   * @param make null: there is nothing to change
   * @throws JournalUnavailable, OperationLost
   */
  change(make: (before: Operation, nowMs: number) => OperationChange | null): Promise<void> {
    return this.#turns.run(async () => {
      const change = make(this.#operation, this.#parts.clock.nowMs());
      if (change === null) return;
      const line = eventLine(change);
      await this.#parts.write((writes) => saveOwn(writes, change.operation, line));
      this.#operation = change.operation;
      this.#parts.published(change.operation, line);
    });
  }

  /** No report comes after this; resolves when none is under way. */
  async close(): Promise<void> {
    await this.#throttle.close();
    await this.#turns.run(async () => {});
  }
}

/** @throws OperationLost */
export async function saveOwn(
  { operations }: { readonly operations: OperationWrites },
  operation: Operation,
  eventLine: string | null,
): Promise<void> {
  if (await operations.save(operation, eventLine)) return;
  throw new OperationLost(`Operation ${operation.operationId} is another program's, or has ended.`);
}
