// The live feed: publishes what has just been committed to the subscribers of a job. It keeps nothing but how far each
// job's subscribers are; one that was away reads the history.
//
// With many nodes, jobs of others are followed (src/cluster/follower.ts): of what they relay, a subscriber gets every event
// once, in order and without a gap, and the end once.

import type { Feed } from "../engine/ports.ts";
import type { EventPage } from "./job-records.ts";

/** @param isEnd whether the last event of the page is the job's last one */
export type FeedListener = (page: EventPage, isEnd: boolean) => void;
/** Told of every job of this node. */
export type FeedObserver = (
  jobId: string,
  firstSeq: number,
  lines: readonly string[],
  isEnd?: boolean,
) => void;

/** Told which jobs have subscribers. */
export interface FeedFollower {
  listened(jobId: string): void;
  forgotten(jobId: string): void;
}

/** The subscribers of one job. */
interface Audience {
  readonly listeners: Set<FeedListener>;
  /** The last event that they were given; null before the first one. */
  lastSeq: number | null;
  hasEnded: boolean;
}

export class EventFeed implements Feed {
  /** How often anything was published, of any job: runs make progress while this grows. */
  publications = 0;
  readonly #audiences = new Map<string, Audience>();
  readonly #observers = new Set<FeedObserver>();
  #follower: FeedFollower | null = null;

  /** @returns how to stop listening */
  subscribe(jobId: string, listener: FeedListener): () => void {
    const audience = this.#audiences.get(jobId) ?? this.#newAudience(jobId);
    const { listeners } = audience;
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#audiences.get(jobId) !== audience) return;
      this.#audiences.delete(jobId);
      this.#follower?.forgotten(jobId);
    };
  }

  #newAudience(jobId: string): Audience {
    const audience = { listeners: new Set<FeedListener>(), lastSeq: null, hasEnded: false };
    this.#audiences.set(jobId, audience);
    this.#follower?.listened(jobId);
    return audience;
  }

  /**
   * Listens to all jobs of this node.
   * @returns how to stop listening
   */
  subscribeAll(observer: FeedObserver): () => void {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  published(jobId: string, firstSeq: number, lines: readonly string[], isEnd = false): void {
    this.publications++;
    for (const observer of this.#observers) observer(jobId, firstSeq, lines, isEnd);
    const audience = this.#audiences.get(jobId);
    if (audience !== undefined) tell(audience, { firstSeq, lines }, isEnd);
  }

  // ------------------------------------------------------------------------------------- jobs of other nodes

  /** From now on the follower learns whom somebody listens to. */
  followWith(follower: FeedFollower): void {
    this.#follower = follower;
  }

  isListened(jobId: string): boolean {
    return this.#audiences.has(jobId);
  }

  /** How far the subscribers of a job are; null when they have been given nothing, or nobody listens. */
  positionOf(jobId: string): number | null {
    return this.#audiences.get(jobId)?.lastSeq ?? null;
  }

  hasEnded(jobId: string): boolean {
    return this.#audiences.get(jobId)?.hasEnded ?? false;
  }

  /**
   * Gives the subscribers what they do not have yet of what another node has committed. The first page of all says where
   * they begin.
   *
   * @returns whether it was all given, or they had it; false when events before it are missing
   */
  relay(jobId: string, { firstSeq, lines }: EventPage, isEnd: boolean): boolean {
    const audience = this.#audiences.get(jobId);
    if (audience === undefined || audience.hasEnded) return true;
    const wanted = audience.lastSeq === null ? firstSeq : audience.lastSeq + 1;
    if (firstSeq > wanted) return false;
    const news = lines.slice(wanted - firstSeq);
    if (news.length > 0) tell(audience, { firstSeq: wanted, lines: news }, isEnd);
    return true;
  }
}

function tell(audience: Audience, page: EventPage, isEnd: boolean): void {
  audience.lastSeq = page.firstSeq + page.lines.length - 1;
  audience.hasEnded ||= isEnd;
  for (const listener of audience.listeners) listener(page, isEnd);
}
