// GET /jobs/:job_id/events (the whole history) and /jobs/:job_id/events/stream (live).

import type { FastifyInstance } from "fastify";
import { eventType } from "../../engine/event.ts";
import { isTerminal } from "../../engine/journal.ts";
import { withoutNullAgent } from "../../runs/history/public-event.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import { type EventView, frame } from "../core/sse.ts";
import { textStream } from "../core/text-stream.ts";
import { ApiError, jobNotFound } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

type JobParams = { Params: { job_id: string } };

export function jobEventRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { records, streams } = services;

  api.get<JobParams>("/jobs/:job_id/events", async (request, reply) => {
    const jobId = request.params.job_id;
    if ((await records.find(jobId)) === null) throw jobNotFound(jobId);
    reply.type("application/json; charset=utf-8");
    return textStream(history(records, jobId));
  });

  api.get<JobParams>("/jobs/:job_id/events/stream", async (request, reply) => {
    const jobId = request.params.job_id;
    const job = await records.find(jobId);
    if (job === null) throw jobNotFound(jobId);
    const after = readLastEventId(request.headers["last-event-id"], job.eventCount);
    if (isTerminal(job.status) && after === job.eventCount) return reply.code(204).send();
    if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
    reply.hijack();
    streams.serve(reply.raw, eventView(records, jobId), after);
    return reply;
  });
}

/** The events as they are kept, those of the whole job without `agent_id`. */
function eventView(records: JobRecords, jobId: string): EventView {
  return {
    key: `runtime ${jobId}`,
    jobId,
    read: (afterSeq) => records.events(jobId, afterSeq),
    exists: async () => (await records.find(jobId)) !== null,
    render: (seq, line) => frame(seq, eventType(line), withoutNullAgent(line)),
  };
}

/** @returns the number of the last event the reader has; 0 without one */
export function readLastEventId(header: string | string[] | undefined, eventCount: number): number {
  if (header === undefined || header === "") return 0;
  const seq = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (!(seq <= eventCount)) {
    throw new ApiError(400, `Last-Event-ID must be the id of an event of this run, at most ${eventCount}`);
  }
  return seq;
}

/** The history as one JSON answer, read page by page. */
async function* history(records: JobRecords, jobId: string) {
  let seq = 0;
  yield '{"data":[';
  for (;;) {
    const page = await records.events(jobId, seq);
    if (page.lines.length === 0) break;
    yield (seq === 0 ? "" : ",") + page.lines.map(withoutNullAgent).join(",");
    seq += page.lines.length;
  }
  yield "]}";
}
