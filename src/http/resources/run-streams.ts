// Live streams of events (src/http/core/sse.ts): what all of them take and answer.

import type { FastifyReply, FastifyRequest } from "fastify";
import { isTerminal } from "../../engine/journal.ts";
import { invalidParameters, oneMistake } from "../core/problem.ts";
import { ApiError } from "../core/runtime-errors.ts";
import type { EventStreams } from "../core/sse.ts";
import type { Render } from "../core/sse-chunk.ts";
import { Type } from "../core/type.ts";
import type { FoundRun } from "./find-run.ts";

/** What every stream's description says. */
export const RESUMING =
  "Each event's id is its place in the history. Keep the id of each event that you have applied and send it as Last-Event-ID: the stream goes on right behind it. It closes after the terminal event; a reader that already has that one gets 204.";

export const LastEventIdHeader = Type.Object({
  "last-event-id": Type.Optional(
    Type.String("The id of the last event that was applied: the stream goes on right behind it.", {
      examples: ["41"],
    }),
  ),
});

export function streamAnswers(example: string) {
  return {
    200: {
      description: "Open until the terminal event has been sent.",
      content: { "text/event-stream": { schema: Type.String({ examples: [example] }) } },
    },
    204: Type.Null("The reader has the terminal event already, and need not come back."),
  };
}

export interface StreamView {
  /** Readers of one run and one name share what is rendered. */
  readonly name: string;
  readonly render: Render;
  /** The event behind which it begins for a reader that has nothing yet; 0 when absent. */
  readonly startSeq?: number | undefined;
}

export interface StreamParts {
  readonly streams: EventStreams;
}

/** Serves a live stream of a run, in a view of its history. */
export async function serveRunStream(
  { streams }: StreamParts,
  request: FastifyRequest,
  reply: FastifyReply,
  run: FoundRun,
  viewOf: () => StreamView | Promise<StreamView>,
  wrongId: WrongId = wrongIdOf("run"),
): Promise<FastifyReply> {
  return openStream(request, reply, {
    wrongId,
    isEnded: isTerminal(run.status),
    eventCount: run.eventCount,
    async serve(afterSeq) {
      const { name, render, startSeq = 0 } = await viewOf();
      const { jobId, runId, live: read, exists } = run;
      const view = { key: `${runId} ${name}`, jobId, read, exists, render };
      return () => streams.serve(reply.raw, view, Math.max(afterSeq, startSeq));
    },
  });
}

export interface StreamToOpen {
  readonly wrongId: WrongId;
  readonly isEnded: boolean;
  /** As it was read; a reader that has as many, of what has ended, has them all. */
  readonly eventCount: number;
  /** Prepares the stream. @returns what begins it, once the reply is the stream's */
  readonly serve: (afterSeq: number) => Promise<() => void>;
}

/** Answers with a stream of events, or with 204 to a reader who has them all. */
export async function openStream(
  request: FastifyRequest,
  reply: FastifyReply,
  { wrongId, isEnded, eventCount, serve }: StreamToOpen,
): Promise<FastifyReply> {
  const afterSeq = readLastEventId(request.headers["last-event-id"], eventCount, wrongId);
  if (isEnded && afterSeq === eventCount) return reply.code(204).send();
  if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
  const begin = await serve(afterSeq);
  reply.hijack();
  for (const [header, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(header, value);
  }
  begin();
  return reply;
}

/** @returns the number of the last event that the reader has; 0 without one */
function readLastEventId(
  header: string | string[] | undefined,
  eventCount: number,
  wrongId: WrongId,
): number {
  if (header === undefined || header === "") return 0;
  const seq = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (!(seq <= eventCount)) throw wrongId(eventCount);
  return seq;
}

/** What a reader is told whose Last-Event-ID is the id of no event. */
export type WrongId = (eventCount: number) => Error;

export function wrongIdOf(what: "run" | "operation"): WrongId {
  return (eventCount) => {
    const message = `must be the id of an event of this ${what}: a whole number, at most ${eventCount}`;
    return invalidParameters(oneMistake("last-event-id", "out_of_range", message));
  };
}

/** In the runtime API. */
export const wrongRuntimeId: WrongId = (eventCount) =>
  new ApiError(400, `Last-Event-ID must be the id of an event of this run, at most ${eventCount}`);
