// The live feed: tells whoever watches a job what has just been committed. It keeps nothing; a watcher that was
// away reads the history.

import type { Feed } from "../engine/ports.ts";
import type { EventPage } from "./job-records.ts";

export type FeedListener = (page: EventPage) => void;

export class EventFeed implements Feed {
  readonly #listeners = new Map<string, Set<FeedListener>>();

  /** @returns how to stop listening */
  subscribe(jobId: string, listener: FeedListener): () => void {
    let listeners = this.#listeners.get(jobId);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(jobId, listeners);
    }
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(jobId) === listeners) this.#listeners.delete(jobId);
    };
  }

  published(jobId: string, firstSeq: number, lines: readonly string[]): void {
    const listeners = this.#listeners.get(jobId);
    if (listeners !== undefined) for (const listener of listeners) listener({ firstSeq, lines });
  }
}
