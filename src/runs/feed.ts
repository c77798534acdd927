// The live feed: tells whoever watches a job what has just been committed. It keeps nothing; a watcher that was
// away reads the history.

import type { Feed } from "../engine/ports.ts";
import type { EventPage } from "./job-records.ts";

export type FeedListener = (page: EventPage) => void;

export class EventFeed implements Feed {
  /** How often anything was published, of any job: runs make progress while this grows. */
  publications = 0;
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
    this.publications++;
    const listeners = this.#listeners.get(jobId);
    if (listeners === undefined) return;
    const page = { firstSeq, lines };
    for (const listener of listeners) listener(page);
  }
}
