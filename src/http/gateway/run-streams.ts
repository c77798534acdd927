// Live streams of a run (src/http/core/sse.ts): what all of them take, answer and promise.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { RunRecord } from "../../launch/records.ts";
import { conventionHeaders } from "../core/conventions.ts";
import { invalidParameters, oneMistake } from "../core/problem.ts";
import type { EventView } from "../core/sse.ts";
import type { Render } from "../core/sse-chunk.ts";
import { findRun, hasAll, liveHistoryOf } from "./run-source.ts";
import { nothing } from "./schemas/common.ts";
import { streamOf } from "./schemas/evidence.ts";
import type { GatewayServices } from "./services.ts";

/** What every stream's description says. */
export const RESUMING =
  "Each event's id is its place in the history. Keep the id of each event that you have applied and send it as Last-Event-ID: the stream goes on right behind it. It closes after the terminal event; a reader that already has that one gets 204.";

export function streamAnswers(example: string) {
  return {
    200: streamOf("Open until the terminal event has been sent.", example),
    204: nothing("The reader has the terminal event already, and need not come back."),
  };
}

export interface StreamView {
  /** Readers of one run and one name share what is rendered. */
  readonly name: string;
  readonly render: Render;
  /** The event behind which it begins for a reader that has nothing yet; 0 when absent. */
  readonly startSeq?: number | undefined;
}

/**
 * Serves a live stream of the run that the request names, in a view of its history.
 *
 * @throws DomainError `run_not_found`, Problem `invalid_parameter` for a Last-Event-ID that is no event of the run
 */
export async function serveStream(
  services: GatewayServices,
  request: FastifyRequest<{ Params: { run_id: string } }>,
  reply: FastifyReply,
  viewOf: (run: RunRecord) => StreamView | Promise<StreamView>,
): Promise<FastifyReply> {
  const run = await findRun(services, request.params.run_id);
  const afterSeq = readLastEventId(request.headers["last-event-id"], run.progress.eventCount);
  return openStream(services, request, reply, {
    hasAll: hasAll(run, afterSeq),
    view: async () => {
      const { runId, runtimeJobId } = run;
      const { name, render, startSeq = 0 } = await viewOf(run);
      const view = {
        key: `${runId} ${name}`,
        jobId: runtimeJobId,
        read: liveHistoryOf(services, run),
        exists: async () => (await services.records.run(runId)) !== null,
        render,
      };
      return { view, afterSeq: Math.max(afterSeq, startSeq) };
    },
  });
}

export interface StreamToOpen {
  /** Whether the reader has the terminal event: then there is nothing to stream. */
  readonly hasAll: boolean;
  /** Asked for when there is something to stream. */
  readonly view: () => Promise<{ readonly view: EventView; readonly afterSeq: number }>;
}

/** Answers with a stream of events, or with 204 to a reader who has them all. */
export async function openStream(
  services: Pick<GatewayServices, "streams">,
  request: FastifyRequest,
  reply: FastifyReply,
  stream: StreamToOpen,
): Promise<FastifyReply> {
  if (stream.hasAll) return reply.code(204).send();
  if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
  const { view, afterSeq } = await stream.view();
  reply.hijack();
  for (const [header, value] of Object.entries(conventionHeaders(reply))) reply.raw.setHeader(header, value);
  services.streams.serve(reply.raw, view, afterSeq);
  return reply;
}

/** @returns the number of the last event that the reader has; 0 without one */
export function readLastEventId(
  header: string | string[] | undefined,
  eventCount: number,
  what: "run" | "operation" = "run",
): number {
  if (header === undefined || header === "") return 0;
  const seq = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (seq <= eventCount) return seq;
  const message = `must be the id of an event of this ${what}: a whole number, at most ${eventCount}`;
  throw invalidParameters(oneMistake("last-event-id", "out_of_range", message));
}
