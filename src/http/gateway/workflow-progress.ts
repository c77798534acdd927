// GET /jobs/{job_id}/workflow-progress: how far a run of the job has come.

import type { FastifyInstance } from "fastify";
import { BundleProblem } from "../../bundles/problem.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { JobView, RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import { ETA_RUNS, etaMs } from "../../runs/history/eta.ts";
import { nodesOf, type ProgressSource, percentDone, workflowProgress } from "../../runs/history/progress.ts";
import { readProgress } from "../../runs/history/read-progress.ts";
import { readFailure, readSummary } from "../../runs/history/read-summary.ts";
import { renderProgress } from "../core/progress-text.ts";
import { addRoutes, get } from "../core/route.ts";
import { joined, textStream } from "../core/text-stream.ts";
import { find } from "./jobs.ts";
import { labelOf } from "./render-run.ts";
import { runOfJob, sendJson } from "./run-source.ts";
import { WorkflowProgressQuery, WorkflowProgressSchema } from "./schemas/progress.ts";
import type { GatewayServices } from "./services.ts";

export function workflowProgressRoutes(api: FastifyInstance, services: GatewayServices): void {
  addRoutes(api, "jobs", [
    get("/jobs/:job_id/workflow-progress", {
      operationId: "getWorkflowProgress",
      summary: "See how far a job's run has come",
      description: "Of the job's latest run, or of the one that run_id names. A job without runs has none.",
      query: WorkflowProgressQuery,
      answers: { 200: WorkflowProgressSchema },
      problems: ["run_not_found"],
      handle: async (request, reply) => {
        const job = await find(services, request.params.job_id);
        const run = await runOfJob(services, job.jobId, request.query.run_id);
        return sendJson(reply, await joined(textStream(progressOf(services, job, run))));
      },
    }),
  ]);
}

async function* progressOf(services: GatewayServices, job: JobView, run: RunRecord | null) {
  const nowMs = services.nowMs();
  const source = await progressSource(services, job, run, nowMs);
  const { failure } = source;
  const total = run?.agentsTotal ?? source.nodes.length;
  const done = run?.progress.agentsDone ?? 0;
  const status = run?.status ?? null;
  const head = {
    job_id: job.jobId,
    run_id: run?.runId ?? null,
    status,
    progress: {
      percent: percentDone(status, done, total),
      done,
      total,
      ...(run?.progress.agentEnds != null && { agents: run.progress.agentEnds }),
      label: run === null ? "The job has not been run yet" : labelOf(run),
    },
  };
  const tail = {
    failure,
    reason: failure?.desc ?? null,
    status_reason: failure?.desc ?? null,
    trace_id: run?.traceId ?? null,
    observability_summary:
      run === null ? null : await readSummary(services.journal, summarizedRun(run), nowMs),
    eta_ms: run === null ? null : await etaOf(services, run, nowMs),
  };
  yield* renderProgress(head, await workflowProgress(source), tail);
}

/** From the runtime once it has the run; before that, nothing has come to any node. */
async function progressSource(
  services: GatewayServices,
  job: JobView,
  run: RunRecord | null,
  nowMs: number,
): Promise<ProgressSource> {
  const status = run?.status ?? "pending";
  const failure = readFailure(run?.failureJson ?? null);
  const agentEnds = run?.progress.agentEnds ?? null;
  if (run?.launched === true) {
    const found = await readProgress(services.journal, run.runtimeJobId, { status, nowMs });
    if (found !== null) return { ...found, failure, agentEnds };
  }
  const nodes = await nodesOf(await manifestOf(services, job));
  const nothingYet = {
    agentEnds,
    agents: [],
    tasks: [],
    mailboxDepths: new Map(),
    ends: new Map(),
  };
  return { status, nodes, ...nothingYet, failure, nowMs };
}

/** A snapshot that was removed from outside says nothing; the job's runs will tell. */
async function manifestOf({ bundles }: GatewayServices, job: JobView): Promise<JsonObject> {
  if (job.bundleFingerprint === null) return {};
  try {
    return (await bundles.definition(job.bundleFingerprint)).manifest;
  } catch (error) {
    if (error instanceof BundleProblem) return {};
    throw error;
  }
}

async function etaOf({ records }: GatewayServices, run: RunRecord, nowMs: number): Promise<number | null> {
  if (run.status !== "running" || run.startedAtMs === null) return null;
  const durationsMs = await records.completedDurations(run.jobId, ETA_RUNS);
  return etaMs(durationsMs, nowMs - run.startedAtMs);
}
