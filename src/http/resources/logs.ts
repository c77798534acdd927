// The log of a run, what its workers print and report and what the runtime says: GET /runs/{run_id}/logs in both APIs,
// filtered and in either order; in the gateway also …/logs/stream, live, and …/logs/histogram, its numbers over time.

import type { FastifyInstance } from "fastify";
import { eventType } from "../../engine/event.ts";
import { type LogLevel, logLevels } from "../../engine/event-types.ts";
import { type LogFilter, logTextCharsMax, logView, nameOfFilter } from "../../runs/history/log-filter.ts";
import { logStreams } from "../../runs/history/logs.ts";
import {
  bucketsMax,
  bucketsMin,
  type CountPosition,
  countLogs,
  type LogCounts,
} from "../../runs/log-histogram.ts";
import {
  type LogOrder,
  type LogPosition,
  type LogSource,
  logOrders,
  readLogs,
  startOfLogs,
} from "../../runs/log-page.ts";
import type { Position } from "../core/page-token.ts";
import { addRoutes, get } from "../core/route.ts";
import { ApiError } from "../core/runtime-errors.ts";
import { type Query, readQuery } from "../core/runtime-query.ts";
import { frame } from "../core/sse-chunk.ts";
import { type Static, Type } from "../core/type.ts";
import { gatewayRuns, type RunParts, type RuntimeRunParts, runtimeRuns } from "./find-run.ts";
import { type PageParts, readPage, sendLogPage, sendText } from "./lists.ts";
import {
  LastEventIdHeader,
  RESUMING,
  type StreamParts,
  serveRunStream,
  streamAnswers,
} from "./run-streams.ts";
import { AgentFilter, AgentId, pageOf, pageQuery, RunId, SpanId, TraceId } from "./schemas.ts";

const LogSchema = Type.Object({
  id: Type.Integer("Of its event: its place in the run's history, from 1."),
  ts: Type.Time("When it was logged."),
  level: Type.OneOf(logLevels, "From the least to the most urgent."),
  run_id: RunId,
  agent_id: AgentId,
  attempt: Type.Nullable(Type.Integer("Of the task, from 1.")),
  stream: Type.OneOf(
    logStreams,
    "worker: reported by the worker as an event. runtime: logged by the runtime itself.",
  ),
  message: Type.String(),
  fields: Type.JsonObject("What was logged beside the message.", { rows: 42 }),
  trace_id: TraceId,
  span_id: SpanId,
});

const LogPageSchema = Type.Object(
  {
    ...pageOf(LogSchema, "log records").properties,
    last_event_id: Type.Integer(
      "The event up to which this page and those before it have seen the log. With order=desc, and on the last page, a stream that is opened with it as Last-Event-ID goes on without a gap and without repetition.",
      { examples: [412] },
    ),
  },
  "A page of log records, in the order asked for; it may be short, or empty, and still not be the last one.",
);

const chosen = {
  level: Type.OneOf(logLevels, "The least urgent level to show."),
  agent_id: AgentFilter,
  stream: Type.OneOf(logStreams, "Of this stream only."),
  text: Type.String("Records whose message has this text in it; upper and lower case are the same.", {
    minLength: 1,
    maxLength: logTextCharsMax,
    examples: ["connection refused"],
  }),
  since: Type.Time("Records of this time or later."),
  until: Type.Time("Records before this time."),
};

const part = {
  since_id: Type.Integer("Records of this event or later.", { minimum: 1, examples: [412] }),
  until_id: Type.Integer("Records before this event.", { minimum: 1, examples: [412] }),
};

const LogsQuery = Type.Input({
  ...chosen,
  ...part,
  order: Type.OneOf(
    logOrders,
    "asc, the default: oldest first. desc: newest first, and later pages go on to older ones.",
  ),
  ...pageQuery,
});

const LogStreamQuery = Type.Input(chosen);

const BUCKETS_DEFAULT = 60;

const { page_token: pageToken } = pageQuery;

const HistogramQuery = Type.Input({
  ...chosen,
  ...part,
  buckets: Type.Integer("Most buckets of the whole count.", {
    minimum: bucketsMin,
    maximum: bucketsMax,
    default: BUCKETS_DEFAULT,
  }),
  page_token: pageToken,
});

const HistogramSchema = Type.Object(
  {
    bucket_ms: Type.Integer(
      "How long each bucket is, in milliseconds: a whole multiple of every shorter length that an answer can have, so counts of shorter buckets fit into longer ones.",
      { examples: [1_000] },
    ),
    from: Type.Nullable(
      Type.Time("Of the first event that belongs to the times asked for; null without any."),
    ),
    to: Type.Nullable(Type.Time("Of the last one by now.")),
    buckets: Type.Array(
      Type.Object({
        start: Type.Time("A whole multiple of bucket_ms since 1970."),
        counts: Type.Object(
          Object.fromEntries(logLevels.map((level) => [level, Type.Integer()])) as Record<
            LogLevel,
            ReturnType<typeof Type.Integer>
          >,
          "Records of each level.",
        ),
      }),
      "In the order of time; those without a record are left out.",
    ),
    next_page_token: Type.Nullable(
      Type.String("Counts on; null when all is counted. Add what comes to the buckets of the same start."),
    ),
    last_event_id: Type.Integer("The event up to which this page and those before it have counted.", {
      examples: [412],
    }),
  },
  "How many records there are over time, as far as they are counted.",
);

/** By the names that clients see. */
export const schemas = { LogRecord: LogSchema, LogPage: LogPageSchema, LogHistogram: HistogramSchema };

// --------------------------------------------------------------------------------------------- gateway

const WHAT =
  "What its workers print and report, and what the runtime says of attempts, agents and the run when something is not as it should be.";

export function gatewayRoutes(api: FastifyInstance, parts: RunParts & PageParts & StreamParts): void {
  const find = gatewayRuns(parts);
  addRoutes(api, "runs", [
    get("/runs/:run_id/logs", {
      operationId: "listRunLogs",
      summary: "Read the logs of a run",
      description: `${WHAT} order=desc reads the newest records first, however long the log is.`,
      query: LogsQuery,
      answers: { 200: LogPageSchema },
      handle: async (request, reply) => {
        const { order = "asc", since_id: sinceSeq, until_id: untilSeq } = request.query;
        const filter = filterOf(request.query);
        return sendLogPage(parts, request, reply, async (limit, position) => {
          const { history } = await find(request.params.run_id);
          return readLogs(history, { filter, sinceSeq, untilSeq, order, limit, position });
        });
      },
    }),
    get("/runs/:run_id/logs/histogram", {
      operationId: "countRunLogs",
      summary: "Count the logs of a run over time",
      description:
        "By level, in buckets of one length. An answer counts a bounded part of the log, some ten thousand events, oldest first; next_page_token counts on. To count what came since, ask with since_id behind last_event_id: the buckets are as if all was counted.",
      query: HistogramQuery,
      answers: { 200: HistogramSchema },
      handle: async (request, reply) => {
        const { buckets = BUCKETS_DEFAULT, since_id: sinceSeq, until_id: untilSeq } = request.query;
        const page = readPage(parts, request);
        const { history } = await find(request.params.run_id);
        const position = page.after === null ? null : countPosition(page.after);
        const filter = filterOf(request.query);
        const counted = await countLogs(history, { filter, sinceSeq, untilSeq, buckets, position });
        return reply.send(histogramOf(counted, (next) => parts.paging.tokenBehind(page, next, 0)));
      },
    }),
    get("/runs/:run_id/logs/stream", {
      operationId: "streamRunLogs",
      summary: "Follow the logs of a run",
      description: `Server-sent events, each a log record under the type of its event; records that the filters leave out are not sent. ${RESUMING} Where the terminal event has no record that is shown, its id comes alone.`,
      query: LogStreamQuery,
      headers: LastEventIdHeader,
      answers: streamAnswers(
        'id: 31\nevent: log\ndata: {"ts":"2026-11-21T09:30:00.000Z","level":"warn","agent_id":"writer","message":"slow answer"}\n\n',
      ),
      handle: async (request, reply) => {
        const run = await find(request.params.run_id);
        return serveRunStream(parts, request, reply, run, {
          async view() {
            const filter = filterOf(request.query);
            const view = logView(run, filter);
            return {
              name: `logs ${nameOfFilter(filter)}`,
              render: (seq, line) => {
                const record = view(seq, line);
                return record === null ? null : frame(seq, eventType(line), JSON.stringify(record));
              },
              startSeq: await startOfLogs(run.history, filter),
            };
          },
        });
      },
    }),
  ]);
}

function filterOf(query: Static<typeof LogStreamQuery>): LogFilter {
  return {
    level: query.level ?? null,
    agentId: query.agent_id ?? null,
    stream: query.stream ?? null,
    text: query.text ?? null,
    sinceMs: query.since === undefined ? null : Date.parse(query.since),
    untilMs: query.until === undefined ? null : Date.parse(query.until),
  };
}

const countPosition = ([seq, bucketMs, fromMs, toMs]: Position): CountPosition => ({
  seq: Number(seq),
  bucketMs: Number(bucketMs),
  fromMs: Number(fromMs),
  toMs: Number(toMs),
});

function histogramOf({ span, buckets, next, seenSeq }: LogCounts, tokenAt: (next: Position) => string) {
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    bucket_ms: span?.bucketMs ?? 1,
    from: span === null ? null : time(span.fromMs),
    to: span === null ? null : time(span.toMs),
    buckets: [...buckets]
      .sort(([a], [b]) => a - b)
      .map(([startMs, counts]) => ({ start: time(startMs), counts })),
    next_page_token: next === null ? null : tokenAt([next.seq, next.bucketMs, next.fromMs, next.toMs]),
    last_event_id: seenSeq,
  };
}

// ----------------------------------------------------------------------------------------- runtime API

const RECORDS_PER_PAGE = 500;

interface RuntimeRequest {
  Params: { run_id: string };
  Querystring: Query;
}

const RuntimeLogsQuery = Type.Input({
  ...chosen,
  order: Type.OneOf(logOrders),
  limit: Type.Integer(),
  next: Type.String(),
});

export function runtimeRoutes(app: FastifyInstance, parts: RuntimeRunParts): void {
  const find = runtimeRuns(parts);
  app.get<RuntimeRequest>("/runs/:run_id/logs", async ({ params, query }, reply) => {
    const { order = "asc", limit = null, next, ...filters } = readQuery(RuntimeLogsQuery, query);
    const { text } = filters;
    if (text !== undefined && (text.length === 0 || text.length > logTextCharsMax)) {
      throw new ApiError(400, `text must have 1 to ${logTextCharsMax} characters`);
    }
    const asked = { filter: filterOf(filters), order, limit, position: readPosition(next) };
    return sendText(reply, logText((await find(params.run_id)).history, asked));
  });
}

interface AskedLogs {
  readonly filter: LogFilter;
  readonly order: LogOrder;
  /** Most records; null for all. */
  readonly limit: number | null;
  readonly position: LogPosition | null;
}

/** `next` of an answer before. */
function readPosition(text: string | undefined): LogPosition | null {
  if (text === undefined) return null;
  const [, seq, seenSeq] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (seq === undefined) throw new ApiError(400, "next must be the next of an answer before, as it came");
  return { seq: Number(seq), seenSeq: Number(seenSeq) };
}

/** Without a limit all of it, made as it is sent. */
async function* logText(source: LogSource, { filter, order, limit, position: given }: AskedLogs) {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let position = given;
  let seenSeq = given?.seenSeq ?? 0;
  let separator = "";
  yield '{"data":[';
  while (left > 0) {
    const page = await readLogs(source, { filter, order, limit: Math.min(left, RECORDS_PER_PAGE), position });
    // For a page without records a blank, to notice a reader that has left.
    yield page.records.length > 0 ? separator + page.records.join(",") : " ";
    if (page.records.length > 0) separator = ",";
    left -= page.records.length;
    ({ next: position, seenSeq } = page);
    if (position === null) break;
  }
  const next = position === null ? null : `${position.seq}-${position.seenSeq}`;
  yield `],"next":${JSON.stringify(next)},"last_event_id":${seenSeq}}`;
}
