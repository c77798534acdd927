// GET /jobs/:job_id/workflow-progress: how far a job has come.

import type { FastifyInstance } from "fastify";
import { agentsDone, percentDone, workflowProgress } from "../../runs/evidence/progress.ts";
import { type JournalProgress, readProgress } from "../../runs/evidence/read-progress.ts";
import { readSummary } from "../../runs/evidence/read-summary.ts";
import { type AskedPeople, runLabel } from "../../runs/evidence/run-label.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import { jobNotFound } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

export function workflowProgressRoutes(api: FastifyInstance, services: RuntimeServices): void {
  api.get<{ Params: { job_id: string } }>("/jobs/:job_id/workflow-progress", async (request) => {
    const { job_id: jobId } = request.params;
    const nowMs = services.nowMs();
    const found = await readProgress(services.records, jobId, { nowMs });
    if (found === null) throw jobNotFound(jobId);
    return progressOf(services, found, nowMs);
  });
}

async function progressOf(services: RuntimeServices, source: JournalProgress, nowMs: number) {
  const { job, failure, agentEnds } = source;
  const notReached = agentEnds?.not_reached ?? 0;
  const done = agentsDone(source);
  const total = source.nodes.length;
  return {
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
    ...workflowProgress(source),
    failure,
    reason: failure?.desc ?? null,
    status_reason: failure?.desc ?? null,
    trace_id: job.trace.traceId,
    observability_summary: await readSummary(services.records, job, nowMs),
    // The runtime knows no other runs of the same graph to go by.
    eta_ms: null,
  };
}

async function askedPeople({ attention }: RuntimeServices, job: JobRecord): Promise<AskedPeople> {
  const { jobId, humanPending: pending } = job;
  if (pending !== 1) return { pending, prompt: null };
  const { rows } = await attention.humanRequests(jobId, { status: "pending", limit: 1, afterSeq: 0 });
  return { pending, prompt: rows[0]?.prompt ?? null };
}
