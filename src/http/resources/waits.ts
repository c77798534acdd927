// Requests that start something and wait for its end: `Prefer: wait=N`, for both APIs.
//
// - A waiting request costs its connection, a timer and an entry for each job. Nothing polls: the feed reports an end
//   after its commit.
// - Waiting is over when the last job has ended, the time is up, the client has left or the program stops. What has
//   ended by then is answered as ended, everything else as without waiting.
// - The time counts from the arrival of the request.

import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { Clock } from "../../engine/ports.ts";
import type { EventFeed } from "../../runs/feed.ts";
import { endWithClient } from "../core/half-closed.ts";
import { waitSeconds } from "../core/prefer.ts";

export interface WaitsParts {
  readonly feed: EventFeed;
  readonly clock: Pick<Clock, "after">;
  /** Aborted when the program stops. */
  readonly stopping: AbortSignal;
}

/** All waiting requests of the process. */
export class Waits {
  readonly #parts: WaitsParts;
  readonly #open = new Set<Watch>();
  /** Responses of requests that wait, or have waited, and are not sent yet. */
  readonly #unsent = new Set<ServerResponse>();
  #allSent = () => {};

  constructor(parts: WaitsParts) {
    this.#parts = parts;
    parts.stopping.addEventListener("abort", () => {
      for (const watch of this.#open) watch.stop();
    });
  }

  /** How many requests wait now. */
  get open(): number {
    return this.#open.size;
  }

  /** Once the program stops: resolves when what waited has been answered, or after `limitMs`. */
  async answered(limitMs: number): Promise<void> {
    if (this.#unsent.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#parts.clock.after(limitMs, resolve);
      this.#allSent = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Whether a request asks to wait. To be called by every route that can: it sets Vary. */
  isAsked(reply: FastifyReply): boolean {
    const vary = reply.getHeader("vary");
    reply.header("vary", vary === undefined ? "Prefer" : `${vary}, Prefer`);
    return waitMs(reply) > 0;
  }

  /**
   * Begins to wait for the ends of runtime jobs, for as long as the request asks to. Ends that were published before
   * this call are the caller's to report with `ended`.
   */
  watch(reply: FastifyReply, jobIds: Iterable<string>): Watch {
    const { feed, clock, stopping } = this.#parts;
    const watch = new Watch(feed, jobIds);
    endWithClient(reply.raw);
    if (stopping.aborted || reply.raw.closed || reply.raw.destroyed) watch.stop();
    if (watch.isOver) return watch;
    this.#unsent.add(reply.raw);
    reply.raw.once("close", () => {
      this.#unsent.delete(reply.raw);
      if (this.#unsent.size === 0) this.#allSent();
    });
    this.#open.add(watch);
    const stop = () => watch.stop();
    const cancel = clock.after(Math.max(0, waitMs(reply) - reply.elapsedTime), stop);
    reply.raw.once("close", stop);
    void watch.over.then(() => {
      cancel();
      reply.raw.off("close", stop);
      this.#open.delete(watch);
    });
    return watch;
  }
}

const waitMs = ({ request }: FastifyReply) =>
  waitSeconds(request.headers.prefer as string | undefined) * 1_000;

/** One request's waiting. */
export class Watch {
  /** Resolves when the waiting is over. */
  readonly over: Promise<void>;
  isOver = false;
  /** How to stop listening to each job that has not ended. */
  readonly #open = new Map<string, () => void>();
  #resolve = () => {};

  constructor(feed: EventFeed, jobIds: Iterable<string>) {
    this.over = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    for (const jobId of jobIds) {
      const unsubscribe = feed.subscribe(jobId, (_page, isEnd) => {
        if (isEnd) this.ended(jobId);
      });
      this.#open.set(jobId, unsubscribe);
    }
    if (this.#open.size === 0) this.stop();
  }

  /** Whether every job has ended. */
  get isComplete(): boolean {
    return this.#open.size === 0;
  }

  ended(jobId: string): void {
    this.#open.get(jobId)?.();
    this.#open.delete(jobId);
    if (this.isComplete) this.stop();
  }

  /** Waits no longer. */
  stop(): void {
    this.isOver = true;
    for (const unsubscribe of this.#open.values()) unsubscribe();
    this.#resolve();
  }
}
