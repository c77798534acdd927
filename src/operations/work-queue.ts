// A queue of durable work: what operations, launches of runs and preparations of launches have in common.
//
// The queue knows keys alone. What is to be done for a key is in the records, and `work` finds out what is left of
// it: so a restart loses nothing, and a key may be added as often as one likes.
//
// - At most `atOnceMax` keys are worked on at the same time, in the order in which they came, and no key twice at once:
//   one that is added meanwhile is worked on again afterwards.
// - Work that fails is done again after RETRY_MS, and so is work that waits for something else and throws
//   OperationInterrupted. While the store or the engine takes nothing, the whole queue waits; after any other error
//   the key waits alone.
// - Keys beyond KEYS_MAX are read from the records, once the queue is empty.
// - A key that is dropped is not worked on; what is under way is aborted, and not tried again.

import { EngineUnavailable } from "../engine/batch.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { OperationInterrupted } from "./failures.ts";

const KEYS_MAX = 2_000;
const RETRY_MS = 1_000;

export interface WorkQueueParts {
  /** What is done for a key, such as "the launch of a run". */
  readonly what: string;
  /** The log's field for a key, such as "run_id". */
  readonly keyName: string;
  readonly atOnceMax: number;
  /** Does what is left to do for a key. @param errors how many unexpected errors it has met in a row before */
  readonly work: (key: string, signal: AbortSignal, errors: number) => Promise<void>;
  /** All keys with something to do, oldest first, page by page; absent where callers keep their number small. */
  readonly recorded?: () => AsyncIterable<readonly string[]>;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class WorkQueue {
  readonly #parts: WorkQueueParts;
  #waiting = new Set<string>();
  readonly #underWay = new Map<string, { readonly abort: AbortController; readonly ended: Promise<void> }>();
  /** Waits for the retry. */
  readonly #failed = new Set<string>();
  /** Unexpected errors in a row. */
  readonly #errors = new Map<string, number>();
  #cancelRetry: (() => void) | null = null;
  /** Whether nothing is begun before the retry. */
  #isBlocked = false;
  /** Whether the records have more than the queue. */
  #hasMore = false;
  #reading: Promise<void> | null = null;
  #isStopped = false;

  constructor(parts: WorkQueueParts) {
    this.#parts = parts;
  }

  /** Keys that wait or are under way. */
  get size(): number {
    const again = [...this.#underWay.keys()].filter((key) => this.#waiting.has(key)).length;
    return this.#waiting.size + this.#failed.size + this.#underWay.size - again;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  has(key: string): boolean {
    return this.#waiting.has(key) || this.#failed.has(key) || this.#underWay.has(key);
  }

  /** To be called once the records say that there is something to do for the key. */
  add(key: string): void {
    if (this.#isStopped) return;
    this.#take(key);
    this.#fill();
  }

  /** There is nothing to do for the key any more. */
  drop(key: string): void {
    this.#waiting.delete(key);
    this.#failed.delete(key);
    this.#errors.delete(key);
    this.#underWay.get(key)?.abort.abort();
  }

  /** Reads the records again, after a while. */
  readLater(): void {
    this.#hasMore = true;
    this.#retryLater();
  }

  /** Begins nothing more, and aborts what is under way; resolves when nothing is. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry?.();
    this.#waiting.clear();
    this.#failed.clear();
    for (const { abort } of this.#underWay.values()) abort.abort();
    await Promise.all([this.#reading, ...[...this.#underWay.values()].map(({ ended }) => ended)]);
  }

  #take(key: string): void {
    if (this.#failed.has(key)) return;
    if (this.#parts.recorded !== undefined && (this.#hasMore || this.#waiting.size >= KEYS_MAX)) {
      this.#hasMore = true;
    } else this.#waiting.add(key);
  }

  #fill(): void {
    if (this.#isStopped || this.#isBlocked) return;
    for (const key of this.#waiting) {
      if (this.#underWay.size >= this.#parts.atOnceMax) return;
      if (this.#underWay.has(key)) continue;
      this.#waiting.delete(key);
      const abort = new AbortController();
      const ended = this.#work(key, abort.signal).finally(() => {
        this.#underWay.delete(key);
        this.#fill();
      });
      this.#underWay.set(key, { abort, ended });
    }
    // Not while some wait for the retry: those would be found, and tried again at once.
    if (this.#hasMore && this.#waiting.size === 0 && this.#cancelRetry === null) this.#readMore();
  }

  /** Never rejects. */
  async #work(key: string, signal: AbortSignal): Promise<void> {
    const { work, what, keyName, log } = this.#parts;
    const errors = this.#errors.get(key) ?? 0;
    try {
      await work(key, signal, errors);
      this.#errors.delete(key);
    } catch (error) {
      if (signal.aborted) return;
      if (isUnavailable(error)) this.#isBlocked = true;
      else if (!(error instanceof OperationInterrupted)) {
        this.#errors.set(key, errors + 1);
        log.error(
          { [keyName]: key, error: traceOf(error) },
          `${what} met an unexpected error; it is tried again`,
        );
      }
      if (this.#failed.size < KEYS_MAX || this.#parts.recorded === undefined) this.#failed.add(key);
      else this.#hasMore = true;
      this.#retryLater();
    }
  }

  #readMore(): void {
    this.#reading ??= this.#readRecords()
      .catch((error: unknown) => {
        this.#parts.log.warn(
          { error: String(error) },
          `more work for ${this.#parts.what} could not be read yet`,
        );
        this.readLater();
      })
      .finally(() => {
        this.#reading = null;
        this.#fill();
      });
  }

  async #readRecords(): Promise<void> {
    this.#hasMore = false;
    for await (const keys of this.#parts.recorded?.() ?? []) {
      for (const key of keys) this.#take(key);
      if (this.#hasMore || this.#isStopped) return;
    }
  }

  #retryLater(): void {
    if (this.#isStopped) return;
    this.#cancelRetry ??= this.#parts.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null;
      this.#isBlocked = false;
      this.#waiting = new Set([...this.#failed, ...this.#waiting]);
      this.#failed.clear();
      this.#fill();
    });
  }
}

/** Whether the store or the engine takes nothing at the moment. */
export function isUnavailable(error: unknown): error is EngineUnavailable | JournalUnavailable {
  return error instanceof EngineUnavailable || error instanceof JournalUnavailable;
}

/** An error for the log. */
export function traceOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
