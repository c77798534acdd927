// So many requests to a model at a time, and so many more that wait for their turn, in order of arrival.

import { LlmError } from "./llm-error.ts";

/** When a client that found the queue full may try again. */
const RETRY_SECONDS = 2;

interface Waiting {
  enter(): void;
}

export class RequestQueue {
  readonly #modelId: string;
  readonly #concurrency: number;
  readonly #waitingMax: number;
  readonly #waiting: Waiting[] = [];
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(modelId: string, concurrency: number, waitingMax: number) {
    this.#modelId = modelId;
    this.#concurrency = concurrency;
    this.#waitingMax = waitingMax;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when nobody has a turn, or waits for one. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#tellIdle();
    });
  }

  /**
   * Waits for a turn.
   *
   * @returns what ends it; to be called once
   * @throws LlmError `queue_full`; the signal's reason
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#running >= this.#concurrency) {
      if (this.#waiting.length >= this.#waitingMax) throw this.#full();
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
          this.#tellIdle();
          reject(signal.reason as Error);
        };
        const waiting = {
          enter: () => {
            signal.removeEventListener("abort", leave);
            resolve();
          },
        };
        this.#waiting.push(waiting);
        signal.addEventListener("abort", leave, { once: true });
      });
    } else this.#running++;
    return () => {
      this.#running--;
      this.#admit();
      this.#tellIdle();
    };
  }

  #tellIdle(): void {
    if (this.#running + this.#waiting.length === 0) this.#onIdle();
  }

  /** A turn is given away with its place, so that nobody who comes in between takes it. */
  #admit(): void {
    while (this.#running < this.#concurrency) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#running++;
      next.enter();
    }
  }

  #full(): LlmError {
    return new LlmError(
      429,
      "queue_full",
      `Model "${this.#modelId}" answers ${this.#concurrency} request(s) at a time, and ${this.#waitingMax} more wait. ` +
        "Try again in a moment, or serve it with a larger concurrency or queue.",
      { retryAfterSeconds: RETRY_SECONDS },
    );
  }
}
