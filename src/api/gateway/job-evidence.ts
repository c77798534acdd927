// GET /jobs/{job_id}/events, /dead-letters, /workflow-progress: what a job's latest run, or another one of its runs,
// has to show.

import type { FastifyInstance } from "fastify";
import { BundleProblem } from "../../bundles/problem.ts";
import { isoTime } from "../../engine/event.ts";
import type { Failure } from "../../engine/failure.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { DeadLetter, JobView, RunRecord } from "../../jobs/records.ts";
import { jobNotFound } from "../../jobs/runs.ts";
import {
  agentsCutOff,
  CUT_OFF_EVENTS,
  nodesOf,
  type ProgressSource,
  workflowProgress,
} from "../../runs/evidence/progress.ts";
import type { Static } from "../shared/type.ts";
import { sendHistory } from "./history-page.ts";
import { sendPage } from "./page.ts";
import { labelOf } from "./render-run.ts";
import { eventsView } from "./run-events.ts";
import { runOfJob, sendJson } from "./run-source.ts";
import { responses } from "./schemas/common.ts";
import {
  DeadLetterPageSchema,
  EventPageSchema,
  JobDeadLettersQuery,
  JobEventsQuery,
  WorkflowProgressQuery,
  WorkflowProgressSchema,
} from "./schemas/evidence.ts";
import { JobIdParams } from "./schemas/jobs.ts";
import type { GatewayServices } from "./services.ts";

type JobParams = { Params: Static<typeof JobIdParams> };

const WHICH_RUN = "Of the job's latest run, or of the one that run_id names. A job without runs has none.";

export function jobEvidenceRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { records } = services;

  api.get<JobParams & { Querystring: Static<typeof JobEventsQuery> }>(
    "/jobs/:job_id/events",
    {
      schema: {
        operationId: "listJobEvents",
        tags: ["jobs"],
        summary: "List the events of a job's run",
        description: `Oldest first. ${WHICH_RUN} Later pages stay with the run of the first one.`,
        params: JobIdParams,
        querystring: JobEventsQuery,
        response: responses({ 200: EventPageSchema }, [
          "invalid_parameter",
          "invalid_page_token",
          "job_not_found",
          "run_not_found",
        ]),
      },
    },
    async (request, reply) => {
      const { jobId } = await findJob(services, request.params.job_id);
      return sendHistory(services, request, reply, {
        chosen: () => runOfJob(services, jobId, request.query.run_id),
        view: eventsView(request.query),
      });
    },
  );

  api.get<JobParams & { Querystring: Static<typeof JobDeadLettersQuery> }>(
    "/jobs/:job_id/dead-letters",
    {
      schema: {
        operationId: "listJobDeadLetters",
        tags: ["jobs"],
        summary: "List the messages of a job's run that were not processed",
        description: `Newest first. ${WHICH_RUN} Later pages stay with the run of the first one.`,
        params: JobIdParams,
        querystring: JobDeadLettersQuery,
        response: responses({ 200: DeadLetterPageSchema }, [
          "invalid_parameter",
          "invalid_page_token",
          "job_not_found",
          "run_not_found",
        ]),
      },
    },
    async (request, reply) => {
      const { jobId } = await findJob(services, request.params.job_id);
      return sendPage<DeadLetter>(services, request, reply, {
        async rows(limit, after) {
          if (after !== null) {
            return records.deadLetters(String(after[0]), { limit, after: String(after[1]) });
          }
          const run = await runOfJob(services, jobId, request.query.run_id);
          return run === null ? [] : records.deadLetters(run.runId, { limit, after: null });
        },
        positionOf: (letter) => [letter.runId, letter.deadLetterId],
        render: renderDeadLetter,
      });
    },
  );

  api.get<JobParams & { Querystring: Static<typeof WorkflowProgressQuery> }>(
    "/jobs/:job_id/workflow-progress",
    {
      schema: {
        operationId: "getWorkflowProgress",
        tags: ["jobs"],
        summary: "See how far a job's run has come",
        description: WHICH_RUN,
        params: JobIdParams,
        querystring: WorkflowProgressQuery,
        response: responses({ 200: WorkflowProgressSchema }, [
          "invalid_parameter",
          "job_not_found",
          "run_not_found",
        ]),
      },
    },
    async (request, reply) => {
      const job = await findJob(services, request.params.job_id);
      const run = await runOfJob(services, job.jobId, request.query.run_id);
      return sendJson(reply, JSON.stringify(await progressOf(services, job, run)));
    },
  );
}

async function findJob({ records }: GatewayServices, jobId: string): Promise<JobView> {
  const job = await records.job(jobId);
  if (job === null) throw jobNotFound(jobId);
  return job;
}

export function renderDeadLetter(letter: DeadLetter): string {
  const text = JSON.stringify;
  return (
    `{"dead_letter_id":${text(letter.deadLetterId)},"run_id":${text(letter.runId)},` +
    `"agent_id":${text(letter.agentId)},"message":${letter.messageJson},"reason":"${letter.reason}",` +
    `"attempts":${letter.attempts},"status":"open","created_at":"${isoTime(letter.createdAtMs)}"}`
  );
}

async function progressOf(services: GatewayServices, job: JobView, run: RunRecord | null) {
  const failure = run === null || run.failureJson === null ? null : (JSON.parse(run.failureJson) as Failure);
  const source = await progressSource(services, job, run, failure);
  const total = run?.agentsTotal ?? source.nodes.length;
  const done = run?.progress.agentsDone ?? 0;
  return {
    job_id: job.jobId,
    run_id: run?.runId ?? null,
    status: run?.status ?? null,
    progress: {
      percent: run?.status === "completed" ? 100 : total === 0 ? 0 : Math.floor((100 * done) / total),
      done,
      total,
      label: run === null ? "The job has not been run yet" : labelOf(run),
    },
    ...workflowProgress(source),
    failure,
    trace_id: run?.traceId ?? null,
    observability_summary: null,
    eta_ms: null,
  };
}

/** From the runtime once it has the run; before that, nothing has come to any node. */
async function progressSource(
  services: GatewayServices,
  job: JobView,
  run: RunRecord | null,
  failure: Failure | null,
): Promise<ProgressSource> {
  const status = run?.status ?? "pending";
  // Only a run that was stopped short has cut anything off.
  const newest = status === "failed" || status === "cancelled" ? CUT_OFF_EVENTS : 0;
  const detail = run?.launched === true ? await services.journal.detail(run.runtimeJobId, newest) : null;
  if (detail === null) {
    const nodes = nodesOf(await manifestOf(services, job));
    return { status, nodes, agents: [], tasks: [], mailboxDepths: new Map(), cutOff: new Set(), failure };
  }
  const { manifestJson, agents, tasks, mailboxDepths } = detail;
  const nodes = nodesOf(JSON.parse(manifestJson) as JsonObject);
  const cutOff = agentsCutOff(detail.recentEvents);
  return { status, nodes, agents, tasks, mailboxDepths, cutOff, failure };
}

/** A snapshot that was removed from outside says nothing; the job's runs will tell. */
async function manifestOf({ bundles }: GatewayServices, job: JobView): Promise<JsonObject> {
  try {
    return (await bundles.definition(job.bundleFingerprint)).manifest;
  } catch (error) {
    if (error instanceof BundleProblem) return {};
    throw error;
  }
}
