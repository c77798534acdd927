// The live feed: publishes what has just been committed to the subscribers of a job. It keeps nothing; one that was
// away reads the history.

import type { Feed } from "../engine/ports.ts";
import type { EventPage } from "./job-records.ts";

/** @param isEnd whether the last event of the page is the job's last one */
export type FeedListener = (page: EventPage, isEnd: boolean) => void;
/** Told of every job. */
export type FeedObserver = (jobId: string, firstSeq: number, lines: readonly string[]) => void;

export class EventFeed implements Feed {
  /** How often anything was published, of any job: runs make progress while this grows. */
  publications = 0;
  readonly #listeners = new Map<string, Set<FeedListener>>();
  readonly #observers = new Set<FeedObserver>();

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

  /**
   * Listens to all jobs.
   * @returns how to stop listening
   */
  subscribeAll(observer: FeedObserver): () => void {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  published(jobId: string, firstSeq: number, lines: readonly string[], isEnd = false): void {
    this.publications++;
    for (const observer of this.#observers) observer(jobId, firstSeq, lines);
    const listeners = this.#listeners.get(jobId);
    if (listeners === undefined) return;
    const page = { firstSeq, lines };
    for (const listener of listeners) listener(page, isEnd);
  }
}
