// GET /jobs/:job_id/workflow-progress (how far a job has come) and /jobs/:job_id/workflow-progress/stream (live).

import type { FastifyInstance } from "fastify";
import { isTerminal } from "../../engine/journal.ts";
import { agentsDone, percentDone, workflowProgress } from "../../runs/history/progress.ts";
import { type JournalProgress, readProgress } from "../../runs/history/read-progress.ts";
import { readSummary } from "../../runs/history/read-summary.ts";
import { type AskedPeople, runLabel } from "../../runs/history/run-label.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import type { LatestView } from "../core/latest-streams.ts";
import { renderProgress } from "../core/progress-text.ts";
import { joined, textStream } from "../core/text-stream.ts";
import { jobNotFound } from "./errors.ts";
import { readLastEventId } from "./job-events.ts";
import type { RuntimeServices } from "./services.ts";

type JobParams = { Params: { job_id: string } };

export function workflowProgressRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { records, streams } = services;

  api.get<JobParams>("/jobs/:job_id/workflow-progress", async (request, reply) => {
    const { job_id: jobId } = request.params;
    const found = await readProgress(records, jobId, { nowMs: services.nowMs() });
    if (found === null) throw jobNotFound(jobId);
    reply.type("application/json; charset=utf-8");
    return progressText(services, found);
  });

  api.get<JobParams>("/jobs/:job_id/workflow-progress/stream", async (request, reply) => {
    const { job_id: jobId } = request.params;
    const job = await records.find(jobId);
    if (job === null) throw jobNotFound(jobId);
    const after = readLastEventId(request.headers["last-event-id"], job.eventCount);
    if (isTerminal(job.status) && after === job.eventCount) return reply.code(204).send();
    if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
    reply.hijack();
    streams.latest.serve(reply.raw, progressView(services, jobId), after);
    return reply;
  });
}

function progressView(services: RuntimeServices, jobId: string): LatestView {
  return {
    jobId,
    type: "workflow_progress",
    read: async () => {
      const found = await readProgress(services.records, jobId, { nowMs: services.nowMs() });
      if (found === null) return null;
      const { eventCount: seq, status } = found.job;
      return { seq, json: await progressText(services, found), isLast: isTerminal(status) };
    },
  };
}

function progressText(services: RuntimeServices, source: JournalProgress): Promise<string> {
  return joined(textStream(progressChunks(services, source)));
}

/** What has no value is left out; `eta_ms` always: the runtime knows no other runs of the same graph to go by. */
async function* progressChunks(services: RuntimeServices, source: JournalProgress) {
  const { job, failure, agentEnds, nowMs } = source;
  const notReached = agentEnds?.not_reached ?? 0;
  const done = agentsDone(source);
  const total = source.nodes.length;
  const head = {
    job_id: job.jobId,
    run_id: job.runId,
    status: job.status,
    progress: {
      percent: percentDone(job.status, done, total),
      done,
      total,
      ...(agentEnds !== null && { agents: agentEnds }),
      label: runLabel(job.status, { done, total, notReached }, await askedPeople(services, job)),
    },
  };
  const tail = {
    ...(failure !== null && { failure, reason: failure.desc, status_reason: failure.desc }),
    trace_id: job.trace.traceId,
    observability_summary: await readSummary(services.records, job, nowMs),
  };
  yield* renderProgress(head, await workflowProgress(source), tail, (_key, value) => value ?? undefined);
}

async function askedPeople({ humanRequests }: RuntimeServices, job: JobRecord): Promise<AskedPeople> {
  const { jobId, humanPending: pending } = job;
  if (pending !== 1) return { pending, prompt: null };
  const { rows } = await humanRequests.humanRequests(jobId, { status: "pending", limit: 1, afterSeq: 0 });
  return { pending, prompt: rows[0]?.prompt ?? null };
}
