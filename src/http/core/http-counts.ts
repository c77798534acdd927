// What a server has answered, for its metrics.
//
// - A request counts once its answer has been sent; one whose client has left does not.
// - Event streams, and requests that wait for a run (`Prefer: wait`), count as requests, but have no duration: they
//   last as long as a run.
// - Counting allocates nothing per request.

import type { FastifyInstance } from "fastify";
import { Histogram } from "../../observability/metrics/histogram.ts";
import { waitSeconds } from "./prefer.ts";

/** Upper bounds of the buckets of durations. */
const DURATION_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

const classes = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;
export type StatusClass = (typeof classes)[number];

export class HttpCounts {
  readonly durationSeconds = new Histogram(DURATION_SECONDS);
  readonly #byClass = [0, 0, 0, 0, 0];
  #connections = 0;

  get connections(): number {
    return this.#connections;
  }

  get requests(): Readonly<Record<StatusClass, number>> {
    return Object.fromEntries(classes.map((name, i) => [name, this.#byClass[i]!])) as Record<
      StatusClass,
      number
    >;
  }

  /** Counts what `app` answers from now on; to be called once, before its routes are registered. */
  watch(app: FastifyInstance): void {
    app.server.on("connection", (socket) => {
      this.#connections++;
      socket.once("close", () => {
        this.#connections--;
      });
    });
    app.addHook("onResponse", ({ headers }, reply, done) => {
      const isStream = reply.raw.getHeader("content-type")?.toString().startsWith("text/event-stream");
      const isOfARun = isStream === true || waitSeconds(headers.prefer as string | undefined) > 0;
      this.count(reply.statusCode, isOfARun ? null : reply.elapsedTime);
      done();
    });
  }

  /** @param durationMs null for what has no duration */
  count(status: number, durationMs: number | null): void {
    const index = Math.min(5, Math.max(1, Math.floor(status / 100))) - 1;
    this.#byClass[index] = this.#byClass[index]! + 1;
    if (durationMs !== null) this.durationSeconds.observe(durationMs / 1_000);
  }
}
