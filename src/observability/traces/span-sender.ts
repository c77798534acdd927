// Finished spans on their way out: a bounded queue, sent in batches, one at a time.
//
// Q1. Adding never waits and never throws. A span that finds no room is dropped, and counted.
// Q2. Trouble is logged once when it begins, and once, with the number of spans lost, when it is over.
// Q3. Closing sends what waits, for as long as it is given; not at all while the collector does not answer.

import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { FinishedSpan } from "./span.ts";

/** Where spans go. */
export interface SpanOutlet {
  /** Resolves when the collector has taken them. One call at a time. @throws Error when they are lost */
  send(spans: readonly FinishedSpan[]): Promise<void>;
  /** Gives up what is being sent. May be called twice. */
  close(): Promise<void>;
}

export interface SpanSenderParts {
  readonly outlet: SpanOutlet;
  readonly clock: Clock;
  readonly log: EngineLog;
  /** Where the spans go, for the log. */
  readonly shownUrl: string;
  readonly queueMax: number;
  readonly batchMax: number;
  /** How long a span may wait for company. */
  readonly delayMs: number;
}

export class SpanSender {
  readonly #parts: SpanSenderParts;
  #queue: FinishedSpan[] = [];
  #cancelTimer: (() => void) | null = null;
  #sending: Promise<void> | null = null;
  #isClosing = false;
  /** Whether the last batch was lost: the next ones wait their time. */
  #isFailing = false;
  /** Lost since the trouble began; 0 while there is none. */
  #lost = 0;
  #lostInAll = 0;

  constructor(parts: SpanSenderParts) {
    this.#parts = parts;
  }

  /** Spans that were lost so far. */
  get lost(): number {
    return this.#lostInAll;
  }

  readonly add = (span: FinishedSpan): void => {
    if (this.#isClosing) return;
    if (this.#queue.length >= this.#parts.queueMax) {
      this.#lose(1, "more spans end than can be sent");
      return;
    }
    this.#queue.push(span);
    this.#next();
  };

  /** Sends what waits (Q3), and closes the outlet. May be called twice. */
  async close(limitMs: number): Promise<void> {
    if (this.#isClosing) return this.#parts.outlet.close();
    this.#cancelTimer?.();
    let cancel = () => {};
    const isLate = new Promise<void>((resolve) => {
      cancel = this.#parts.clock.after(limitMs, resolve);
    });
    await Promise.race([this.#flush(), isLate]);
    cancel();
    this.#isClosing = true;
    await this.#parts.outlet.close();
    await this.#sending;
    const lost = this.#lost + this.#queue.length;
    this.#lostInAll += this.#queue.length;
    this.#queue = [];
    if (lost > 0) this.#parts.log.warn({ spans: lost }, `spans were not sent to ${this.#parts.shownUrl}`);
  }

  async #flush(): Promise<void> {
    do {
      await this.#sending;
      // A collector that does not answer is not waited for.
      if (this.#isFailing) return;
      this.#send();
    } while (this.#sending !== null);
  }

  /** Has the next batch sent: at once when it is full, else when it has waited for company. */
  #next(): void {
    if (this.#isClosing || this.#sending !== null || this.#queue.length === 0) return;
    if (this.#queue.length >= this.#parts.batchMax && !this.#isFailing) this.#send();
    else this.#cancelTimer ??= this.#parts.clock.after(this.#parts.delayMs, () => this.#send());
  }

  #send(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#sending !== null || this.#queue.length === 0) return;
    this.#sending = this.#sendBatch().finally(() => {
      this.#sending = null;
      this.#next();
    });
  }

  async #sendBatch(): Promise<void> {
    const batch = this.#queue.splice(0, this.#parts.batchMax);
    try {
      await this.#parts.outlet.send(batch);
      this.#isFailing = false;
    } catch (error) {
      this.#isFailing = true;
      this.#lose(batch.length, error instanceof Error ? error.message : String(error));
      return;
    }
    if (this.#lost === 0 || this.#queue.length >= this.#parts.queueMax / 2) return;
    const { log, shownUrl } = this.#parts;
    log.warn({ spans: this.#lost }, `traces are sent to ${shownUrl} again; spans were lost`);
    this.#lost = 0;
  }

  #lose(spans: number, reason: string): void {
    this.#lostInAll += spans;
    if (this.#lost === 0 && !this.#isClosing) {
      const { log, shownUrl } = this.#parts;
      log.warn({ reason }, `traces cannot be sent to ${shownUrl}: spans are dropped until they can`);
    }
    this.#lost += spans;
  }
}
