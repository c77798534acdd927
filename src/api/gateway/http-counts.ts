// What the gateway answers, counted: requests by class of status and how long they took, and open connections.
//
// C1. A request counts once, when its answer has been handed over whole; one whose client left earlier does not.
// C2. Event streams count as requests, but have no duration: they last as long as a run.
// C3. Counting allocates nothing per request.

import type { FastifyInstance } from "fastify";

/** Upper bounds of the buckets of durations. */
export const DURATION_BUCKETS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000] as const;

const classes = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;
export type StatusClass = (typeof classes)[number];

export interface HttpSnapshot {
  readonly requests: Readonly<Record<StatusClass, number>>;
  readonly connections: number;
  readonly durations: {
    readonly count: number;
    readonly sumMs: number;
    /** How many took no longer than the bound of the same place in DURATION_BUCKETS_MS. */
    readonly cumulative: readonly number[];
  };
}

export class HttpCounts {
  readonly #byClass = [0, 0, 0, 0, 0];
  /** Each bucket's own, the last one for what is longer than all bounds. */
  readonly #buckets = new Array<number>(DURATION_BUCKETS_MS.length + 1).fill(0);
  #sumMs = 0;
  #connections = 0;

  /** Counts what `app` answers from now on; to be called once, before its routes are registered. */
  watch(app: FastifyInstance): void {
    app.server.on("connection", (socket) => {
      this.#connections++;
      socket.once("close", () => {
        this.#connections--;
      });
    });
    app.addHook("onResponse", (_request, reply, done) => {
      const isStream = reply.raw.getHeader("content-type")?.toString().startsWith("text/event-stream");
      this.count(reply.statusCode, isStream === true ? null : reply.elapsedTime);
      done();
    });
  }

  /** @param durationMs null for what has no duration */
  count(status: number, durationMs: number | null): void {
    const index = Math.min(5, Math.max(1, Math.floor(status / 100))) - 1;
    this.#byClass[index] = this.#byClass[index]! + 1;
    if (durationMs === null) return;
    this.#sumMs += durationMs;
    let bucket = 0;
    while (bucket < DURATION_BUCKETS_MS.length && durationMs > DURATION_BUCKETS_MS[bucket]!) bucket++;
    this.#buckets[bucket] = this.#buckets[bucket]! + 1;
  }

  snapshot(): HttpSnapshot {
    const requests = Object.fromEntries(classes.map((name, i) => [name, this.#byClass[i]!]));
    let count = 0;
    const upTo = this.#buckets.map((own) => {
      count += own;
      return count;
    });
    return {
      requests: requests as Record<StatusClass, number>,
      connections: this.#connections,
      durations: { count, sumMs: this.#sumMs, cumulative: upTo.slice(0, -1) },
    };
  }
}
