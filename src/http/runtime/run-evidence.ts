// GET /runs/:run_id/observability-summary, /result, /timeline, /stream: what a run did and came to.

import type { FastifyInstance } from "fastify";
import { isoTime } from "../../engine/event.ts";
import { isTerminal } from "../../engine/journal.ts";
import { withoutNullAgent } from "../../runs/history/public-event.ts";
import { failureMembers, readSummary } from "../../runs/history/read-summary.ts";
import { toTimeline } from "../../runs/history/timeline.ts";
import type { JobRecord, JobRecords } from "../../runs/job-records.ts";
import { Slices } from "../../runs/slices.ts";
import { channelNames, mergedView, readChannels } from "../core/run-channels.ts";
import { textStream } from "../core/text-stream.ts";
import { ApiError } from "./errors.ts";
import { readLastEventId } from "./job-events.ts";
import { readText } from "./query.ts";
import { contextOf, findRun, type RunRequest } from "./run-source.ts";
import type { RuntimeServices } from "./services.ts";

export function runEvidenceRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { records, streams } = services;

  api.get<RunRequest>("/runs/:run_id/observability-summary", async (request) =>
    readSummary(records, await findRun(services, request.params.run_id), services.nowMs()),
  );

  api.get<RunRequest>("/runs/:run_id/result", async (request, reply) => {
    const job = await findRun(services, request.params.run_id);
    reply.type("application/json; charset=utf-8");
    return renderResult(job, await records.result(job.jobId));
  });

  api.get<RunRequest>("/runs/:run_id/timeline", async (request, reply) => {
    const job = await findRun(services, request.params.run_id);
    reply.type("application/json; charset=utf-8");
    return textStream(timeline(records, job));
  });

  api.get<RunRequest>("/runs/:run_id/stream", async (request, reply) => {
    const given = readText(request.query, "channels");
    const channels = readChannels(given ?? undefined);
    if (channels === null) {
      throw new ApiError(400, `channels must be names, separated by commas: ${channelNames.join(", ")}`);
    }
    const job = await findRun(services, request.params.run_id);
    const after = readLastEventId(request.headers["last-event-id"], job.eventCount);
    if (isTerminal(job.status) && after === job.eventCount) return reply.code(204).send();
    if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
    reply.hijack();
    const view = {
      // The gateway has a view of this name, of a run that may not have begun; it shows an `agent_id` that is null.
      key: `runtime ${job.runId} ${channels.join(",")}`,
      jobId: job.jobId,
      read: (afterSeq: number) => records.events(job.jobId, afterSeq),
      exists: async () => (await records.find(job.jobId)) !== null,
      render: mergedView(contextOf(job), channels, withoutNullAgent),
    };
    streams.serve(reply.raw, view, after);
    return reply;
  });
}

function renderResult(job: JobRecord, resultJson: string | null): string {
  const finishedAt = isTerminal(job.status) ? `,"finished_at":"${isoTime(job.updatedAtMs)}"` : "";
  return (
    `{"run_id":${JSON.stringify(job.runId)},"job_id":${JSON.stringify(job.jobId)},"status":"${job.status}",` +
    `"result":${resultJson ?? "null"}${failureMembers(job.failureJson)},"partial":${job.partial}${finishedAt}}`
  );
}

/** The timeline up to now as one JSON answer, made as it is sent. */
async function* timeline(records: JobRecords, job: JobRecord) {
  const context = contextOf(job);
  const slices = new Slices();
  let separator = "";
  let seq = 0;
  yield '{"data":[';
  while (seq < job.eventCount) {
    const { lines } = await records.events(job.jobId, seq);
    if (lines.length === 0) break;
    let text = "";
    for (const line of lines) {
      const record = toTimeline(context, ++seq, line);
      if (record !== null) {
        text += separator + JSON.stringify(record);
        separator = ",";
      }
      if (slices.isOver) await slices.breathe();
    }
    // A blank, so that it is noticed when the reader has left.
    yield text || " ";
  }
  yield "]}";
}
