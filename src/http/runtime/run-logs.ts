// GET /runs/:run_id/logs: what workers and the runtime have to say, filtered and in either order. Without a limit all of
// it, made as it is sent.

import type { FastifyInstance } from "fastify";
import { logLevels } from "../../engine/event-types.ts";
import { type LogFilter, logTextCharsMax } from "../../runs/history/log-filter.ts";
import { logStreams } from "../../runs/history/logs.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import { type LogOrder, type LogPosition, type LogSource, logOrders, readLogs } from "../../runs/log-page.ts";
import { textStream } from "../core/text-stream.ts";
import { ApiError } from "./errors.ts";
import { type Query, readOneOf, readText, readTimeMs, readWholeNumber } from "./query.ts";
import { contextOf, findRun, type RunRequest } from "./run-source.ts";
import type { RuntimeServices } from "./services.ts";

const RECORDS_PER_PAGE = 500;

export function runLogRoutes(api: FastifyInstance, services: RuntimeServices): void {
  api.get<RunRequest>("/runs/:run_id/logs", async (request, reply) => {
    const asked = readLogsQuery(request.query);
    const job = await findRun(services, request.params.run_id);
    reply.type("application/json; charset=utf-8");
    return textStream(logs(sourceOf(services, job), asked));
  });
}

interface AskedLogs {
  readonly filter: LogFilter;
  readonly order: LogOrder;
  /** Most records; null for all. */
  readonly limit: number | null;
  readonly position: LogPosition | null;
}

function readLogsQuery(query: Query): AskedLogs {
  const text = readText(query, "text");
  if (text !== null && (text.length === 0 || text.length > logTextCharsMax)) {
    throw new ApiError(400, `text must have 1 to ${logTextCharsMax} characters`);
  }
  return {
    filter: {
      level: readOneOf(query, "level", logLevels),
      agentId: readText(query, "agent_id"),
      stream: readOneOf(query, "stream", logStreams),
      text,
      sinceMs: readTimeMs(query, "since"),
      untilMs: readTimeMs(query, "until"),
    },
    order: readOneOf(query, "order", logOrders) ?? "asc",
    limit: readWholeNumber(query, "limit"),
    position: readPosition(query),
  };
}

/** `next` of an answer before. */
function readPosition(query: Query): LogPosition | null {
  const text = readText(query, "next");
  if (text === null) return null;
  const [, seq, seenSeq] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (seq === undefined) throw new ApiError(400, "next must be the next of an answer before, as it came");
  return { seq: Number(seq), seenSeq: Number(seenSeq) };
}

function sourceOf({ records }: RuntimeServices, job: JobRecord): LogSource {
  const { jobId } = job;
  return {
    run: contextOf(job),
    after: (afterSeq) => records.events(jobId, afterSeq),
    before: (beforeSeq) => records.eventsBefore(jobId, beforeSeq ?? Number.MAX_SAFE_INTEGER),
    placeOfTime: (timeMs) => records.placeOfTime(jobId, timeMs),
  };
}

async function* logs(source: LogSource, { filter, order, limit, position: given }: AskedLogs) {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let position = given;
  let seenSeq = given?.seenSeq ?? 0;
  let separator = "";
  yield '{"data":[';
  while (left > 0) {
    const page = await readLogs(source, { filter, order, limit: Math.min(left, RECORDS_PER_PAGE), position });
    // Of a page without records a blank: between two writes it is noticed that the reader has left.
    yield page.records.length > 0 ? separator + page.records.join(",") : " ";
    if (page.records.length > 0) separator = ",";
    left -= page.records.length;
    ({ next: position, seenSeq } = page);
    if (position === null) break;
  }
  const next = position === null ? null : `${position.seq}-${position.seenSeq}`;
  yield `],"next":${JSON.stringify(next)},"last_event_id":${seenSeq}}`;
}
