// GET /runs/{run_id}/logs (pages) and /runs/{run_id}/logs/stream (live): what workers and the runtime have to say.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { eventType } from "../../engine/event.ts";
import { type LogFilter, logView, nameOfFilter } from "../../runs/history/log-filter.ts";
import { type LogPosition, readLogs, startOfLogs } from "../../runs/log-page.ts";
import { pathOf } from "../core/path-of.ts";
import { addRoutes, get } from "../core/route.ts";
import { frame } from "../core/sse.ts";
import type { Static } from "../core/type.ts";
import { findRun, logSourceOf, sendJson } from "./run-source.ts";
import { RESUMING, serveStream, streamAnswers } from "./run-streams.ts";
import { LastEventIdHeader } from "./schemas/evidence.ts";
import { LogPageSchema, LogStreamQuery, LogsQuery } from "./schemas/logs.ts";
import type { GatewayServices } from "./services.ts";

type LogsRoute = { Params: { run_id: string }; Querystring: Static<typeof LogsQuery> };

const WHAT =
  "What its workers print and report, and what the runtime says of attempts, agents and the run when something is not as it should be.";

export function runLogRoutes(api: FastifyInstance, services: GatewayServices): void {
  addRoutes(api, "runs", [
    get("/runs/:run_id/logs", {
      operationId: "listRunLogs",
      summary: "Read the logs of a run",
      description: `${WHAT} order=desc reads the newest records first, however long the log is.`,
      query: LogsQuery,
      answers: { 200: LogPageSchema },
      handle: (request, reply) => sendLogs(services, request, reply),
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
      handle: (request, reply) =>
        serveStream(services, request, reply, async (run) => {
          const filter = filterOf(request.query);
          const view = logView(run, filter);
          return {
            name: `logs ${nameOfFilter(filter)}`,
            render: (seq, line) => {
              const record = view(seq, line);
              return record === null ? null : frame(seq, eventType(line), JSON.stringify(record));
            },
            startSeq: await startOfLogs(logSourceOf(services, run), filter),
          };
        }),
    }),
  ]);
}

async function sendLogs(
  services: GatewayServices,
  request: FastifyRequest<LogsRoute>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { page_size: pageSize, page_token: pageToken, ...filters } = request.query;
  const { paging } = services;
  const { principal } = request;
  const page = paging.read({ principal, list: pathOf(request.url), filters, pageSize, pageToken });
  const run = await findRun(services, request.params.run_id);
  const { records, next, seenSeq } = await readLogs(logSourceOf(services, run), {
    filter: filterOf(filters),
    order: filters.order ?? "asc",
    limit: page.size,
    position: page.after === null ? null : positionOf(page.after),
  });
  const token = next === null ? null : paging.tokenBehind(page, [next.seq, next.seenSeq], records.length);
  return sendJson(
    reply,
    `{"items":[${records.join(",")}],"next_page_token":${JSON.stringify(token)},"last_event_id":${seenSeq}}`,
  );
}

/** What the token of the page before has (`tokenBehind`). */
function positionOf([seq, seenSeq]: readonly (string | number)[]): LogPosition {
  return { seq: Number(seq), seenSeq: Number(seenSeq) };
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
