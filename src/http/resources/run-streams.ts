// Live streams of events (src/http/core/sse.ts): what is common to all of them.

import type { FastifyReply, FastifyRequest } from "fastify";
import { isTerminal } from "../../engine/journal.ts";
import type { EventStreams } from "../core/sse.ts";
import type { Render } from "../core/sse-chunk.ts";
import { Type } from "../core/type.ts";
import { gatewayParameterError, type ParameterError } from "./api.ts";
import type { FoundRun } from "./find-run.ts";

/** Part of every stream's description. */
export const RESUMING =
  "Each event's id is its place in the history. Keep the id of each event that you have applied and send it as Last-Event-ID: the stream goes on right behind it. It closes after the terminal event; a reader that already has that one gets 204.";

export const LastEventIdHeader = Type.Input({
  "last-event-id": Type.String(
    "The id of the last event that was applied: the stream goes on right behind it.",
    { examples: ["41"] },
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

/**
 * Serves a live stream of a run.
 *
 * @param stream.view of its history; made once the reader's id is known to be right
 */
export async function serveRunStream(
  { streams }: StreamParts,
  request: FastifyRequest,
  reply: FastifyReply,
  run: FoundRun,
  stream: {
    readonly view: () => StreamView | Promise<StreamView>;
    readonly parameterError?: ParameterError;
  },
): Promise<FastifyReply> {
  return openStream(request, reply, {
    ...stream,
    isEnded: isTerminal(run.status),
    eventCount: run.eventCount,
    async serve(afterSeq) {
      const { name, render, startSeq = 0 } = await stream.view();
      const { jobId, runId, live: read, exists } = run;
      const view = { key: `${runId} ${name}`, jobId, read, exists, render };
      return () => streams.serve(reply.raw, view, Math.max(afterSeq, startSeq));
    },
  });
}

export interface StreamToOpen {
  /** How a Last-Event-ID that is the id of no event is answered; as in the gateway when absent. */
  readonly parameterError?: ParameterError;
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
  { parameterError = gatewayParameterError, isEnded, eventCount, serve }: StreamToOpen,
): Promise<FastifyReply> {
  const afterSeq = readLastEventId(request.headers["last-event-id"], eventCount);
  if (afterSeq === null) {
    const message = `must be the id of an event of this stream: a whole number, at most ${eventCount}`;
    throw parameterError("Last-Event-ID", "out_of_range", message);
  }
  if (isEnded && afterSeq === eventCount) return reply.code(204).send();
  if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
  const begin = await serve(afterSeq);
  hijack(request, reply);
  begin();
  return reply;
}

/** Gives the response to a stream, with the headers that all answers have. */
export function hijack(request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack();
  for (const [header, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(header, value);
  }
  request.onStream?.(reply.raw);
}

/** @returns the number of the last event that the reader has, 0 without one; null for the id of no event */
function readLastEventId(header: string | string[] | undefined, eventCount: number): number | null {
  if (header === undefined || header === "") return 0;
  const seq = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  return seq <= eventCount ? seq : null;
}
