// Live events of jobs that other nodes hold, for those who listen here. The stream of the owner's node makes them fast, and
// the database makes them complete.
//
// - Once a second, while somebody listens to a job that is not held here, one statement asks how far such jobs are; what is
//   behind that is read. So losing every stream costs a second, and nothing else.
// - A stream is opened to each job's owner, and another one when the owner changes. What it brings is taken if it continues
//   what was given; if it does not, the database is read (EventFeed.relay).
// - What nobody listens to costs nothing, and a job that is held here costs no statement.

import type { Clock, EngineLog } from "../engine/ports.ts";
import type { EventFeed, FeedFollower } from "../runs/feed.ts";
import type { EventPage } from "../runs/job-records.ts";
import type { Peers } from "./wire/peers.ts";
import { newsFromWire } from "./wire/watch.ts";

const LOOK_EVERY_MS = 1_000;
/** A job that is submitted here is held within this time, and needs no look at the database. */
const FIRST_LOOK_MS = 50;
/** Of one statement. */
const JOBS_PER_LOOK = 1_000;

/** How far a job is, or whatever else has events. */
export interface Head {
  /** The last event that is committed. */
  readonly seq: number;
  /** Whether it has ended with it. */
  readonly isEnd: boolean;
  /** Whose node may stream it; null when its owner is not alive, or nobody can. */
  readonly source: { readonly owner: string; readonly address: string } | null;
}

export interface FollowedRecords {
  /** Those that are not there, or have no events yet, are left out. @throws JournalUnavailable */
  heads(ids: readonly string[]): Promise<ReadonlyMap<string, Head>>;
  /** Events behind `afterSeq` in order, a bounded page; empty at the end. @throws JournalUnavailable */
  events(id: string, afterSeq: number): Promise<EventPage>;
}

export interface FollowerParts {
  readonly feed: EventFeed;
  readonly engine: { holds(jobId: string): boolean };
  readonly records: FollowedRecords;
  readonly peers: Pick<Peers, "stream">;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}

/** The stream of one job from its owner's node. */
interface Stream {
  readonly owner: string;
  readonly over: AbortController;
}

export class Follower implements FeedFollower {
  readonly #parts: FollowerParts;
  /** Who is listened to, and their streams. */
  readonly #jobs = new Map<string, Stream | null>();
  /** Jobs of which something is known to be missing. */
  readonly #missed = new Set<string>();
  #cancelLook: (() => void) | null = null;
  #isFirstLookDue = false;
  #isLooking = false;
  #isFailing = false;
  #isStopped = false;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  listened(jobId: string): void {
    if (this.#isStopped) return;
    this.#jobs.set(jobId, null);
    if (!this.#isFirstLookDue) {
      this.#isFirstLookDue = true;
      this.#lookIn(FIRST_LOOK_MS);
    }
  }

  forgotten(jobId: string): void {
    this.#jobs.get(jobId)?.over.abort();
    this.#jobs.delete(jobId);
    this.#missed.delete(jobId);
    if (this.#jobs.size > 0) return;
    this.#cancelLook?.();
    this.#cancelLook = null;
    this.#isFirstLookDue = false;
  }

  stop(): void {
    this.#isStopped = true;
    for (const jobId of [...this.#jobs.keys()]) this.forgotten(jobId);
  }

  #lookIn(delayMs: number): void {
    this.#cancelLook?.();
    this.#cancelLook = this.#parts.clock.after(delayMs, () => void this.#look());
  }

  /** Something is missing of a job: it is read at once, together with what else is found to be missing by then. */
  #lookSoon(jobId: string): void {
    this.#missed.add(jobId);
    if (!this.#isLooking) this.#lookIn(0);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#isFirstLookDue = false;
    this.#missed.clear();
    try {
      const followed = [...this.#jobs.keys()].filter((jobId) => this.#isToBeFollowed(jobId));
      for (let from = 0; from < followed.length; from += JOBS_PER_LOOK) {
        await this.#lookAt(followed.slice(from, from + JOBS_PER_LOOK));
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        const text = "events of jobs on other nodes cannot be read; those who listen get them later";
        this.#parts.log.warn({ reason: String(error) }, text);
      }
      this.#isFailing = true;
    }
    this.#isLooking = false;
    if (this.#jobs.size === 0) return;
    const isMore = this.#missed.size > 0 && !this.#isFailing;
    this.#lookIn(isMore ? 0 : this.#isFirstLookDue ? FIRST_LOOK_MS : LOOK_EVERY_MS);
  }

  /** A job that has come here is published by the engine of this node. */
  #isToBeFollowed(jobId: string): boolean {
    const { engine, feed } = this.#parts;
    const isOthers = !engine.holds(jobId) && !feed.hasEnded(jobId);
    if (!isOthers) this.#endStream(jobId);
    return isOthers;
  }

  async #lookAt(jobIds: readonly string[]): Promise<void> {
    const heads = await this.#parts.records.heads(jobIds);
    for (const jobId of jobIds) {
      const head = heads.get(jobId);
      if (head === undefined) this.#endStream(jobId);
      else await this.#bring(jobId, head);
    }
  }

  async #bring(jobId: string, head: Head): Promise<void> {
    const { feed, records } = this.#parts;
    // Who has just begun to listen may have read the history up to a moment ago: the last event tells them how far it goes.
    let seq = feed.positionOf(jobId) ?? Math.max(0, head.seq - 1);
    while (seq < head.seq && this.#isWanted(jobId)) {
      const { firstSeq, lines } = await records.events(jobId, seq);
      const known = lines.slice(0, head.seq - seq);
      if (known.length === 0) break;
      if (!this.#isWanted(jobId)) return;
      const throughSeq = seq + known.length;
      feed.relay(jobId, { firstSeq, lines: known }, head.isEnd && throughSeq === head.seq);
      // A stream may have brought more meanwhile.
      seq = Math.max(throughSeq, feed.positionOf(jobId) ?? 0);
    }
    if (this.#isWanted(jobId)) this.#streamFrom(jobId, head.source);
  }

  #isWanted(jobId: string): boolean {
    const { engine, feed } = this.#parts;
    return this.#jobs.has(jobId) && !engine.holds(jobId) && !feed.hasEnded(jobId);
  }

  #streamFrom(jobId: string, source: Head["source"]): void {
    const stream = this.#jobs.get(jobId) ?? null;
    if (stream !== null && stream.owner === source?.owner) return;
    this.#endStream(jobId);
    if (source === null) return;
    const begun = { owner: source.owner, over: new AbortController() };
    this.#jobs.set(jobId, begun);
    void this.#follow(jobId, source, begun);
  }

  #endStream(jobId: string): void {
    const stream = this.#jobs.get(jobId) ?? null;
    if (stream === null) return;
    this.#jobs.set(jobId, null);
    stream.over.abort();
  }

  async #follow(
    jobId: string,
    { owner, address }: { readonly owner: string; readonly address: string },
    stream: Stream,
  ): Promise<void> {
    const { peers, feed } = this.#parts;
    const { signal } = stream.over;
    const isCurrent = () => this.#jobs.get(jobId) === stream;
    try {
      const messages = peers.stream(address, signal, (client, options) =>
        client.watch({ owner, jobId }, options),
      );
      for await (const message of messages) {
        if (!isCurrent() || !this.#isWanted(jobId)) break;
        const news = newsFromWire(message);
        // What was committed before the stream began is in the database.
        const isTaken = news !== null && news.lines.length > 0 && feed.relay(jobId, news, news.isEnd);
        if (!isTaken) this.#lookSoon(jobId);
      }
    } catch {
      // The node is gone, or has given the job up: the next look finds its new owner, or opens the stream again.
    }
    if (isCurrent()) this.#jobs.set(jobId, null);
  }
}
