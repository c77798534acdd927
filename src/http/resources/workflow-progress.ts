// How far a job has come: GET /jobs/{job_id}/workflow-progress in both APIs, of a durable job's run in the gateway; in
// the runtime API also …/workflow-progress/stream, live. Made a few nodes at a time: a graph may be large.

import type { FastifyInstance } from "fastify";
import type { Bundles } from "../../bundles/bundles.ts";
import { BundleProblem } from "../../bundles/problem.ts";
import { isTerminal } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { GatewayRecords, JobView, RunRecord } from "../../launch/records.ts";
import { summarizedRun } from "../../launch/run-ends.ts";
import {
  agentsDone,
  nodesOf,
  type ProgressSource,
  percentDone,
  workflowProgress,
} from "../../runs/history/progress.ts";
import { type JournalProgress, readProgress } from "../../runs/history/read-progress.ts";
import { type AskedPeople, ETA_RUNS, etaMs, runLabel } from "../../runs/history/run-label.ts";
import { readFailure, readSummary, waitingReason } from "../../runs/history/summary.ts";
import type { HumanRequestRecords } from "../../runs/human-answers.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import type { LatestView } from "../core/latest-streams.ts";
import { addRoutes, get } from "../core/route.ts";
import { jobNotFound } from "../core/runtime-errors.ts";
import { inPieces, joined, listText, textStream } from "../core/text-stream.ts";
import { Type } from "../core/type.ts";
import { runtimeParameterError } from "./api.ts";
import { findJob, findRuntimeJob, type RunParts, type RuntimeRunParts, runOfJob } from "./find-run.ts";
import { sendPieces } from "./lists.ts";
import { ObservabilitySummarySchema } from "./results.ts";
import { openStream, type StreamParts } from "./run-streams.ts";
import { labelOf, waitingReasonOf } from "./run-view.ts";
import { AgentEndsSchema, RunStatus, reasonFields, WHICH_RUN, whichRun } from "./schemas.ts";

const states = [
  "pending",
  "ready",
  "running",
  "waiting",
  "paused",
  "done",
  "failed",
  "cancelled",
  "skipped",
  "not_reached",
];

export const StepState = Type.OneOf(
  states,
  "pending: nothing has come to it. ready: it has worked and may get more. waiting: for slots, a retry or something outside. skipped: the run ended before anything came to it. not_reached: the run was completed, and no message ever reached it.",
);

const Failure = (description: string) => Type.Nullable(Type.JsonObject(`svc.error.v1; ${description}`));

/** What steps and agents share. */
const progressOfNode = {
  state: StepState,
  attempt: Type.Nullable(Type.Integer("Of its task, from 1; null without one.")),
  started_at: Type.Nullable(
    Type.Time(
      "When the attempt began; of a node without attempts, when its first message came. Null while that is not known.",
    ),
  ),
  finished_at: Type.Nullable(
    Type.Time("When the attempt, or the node, was through; null while it runs, or not known."),
  ),
  duration_ms: Type.Nullable(Type.Integer("From the one to the other, or to now.")),
  failure: Failure("what failed there, in spite of which the run may have gone on."),
};

const WorkflowProgressSchema = Type.Object(
  {
    job_id: Type.String({ examples: ["job_01k9z1v7m3e8q2x4c6t8b0n5dg"] }),
    run_id: Type.Nullable(Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] })),
    status: Type.Nullable(RunStatus),
    progress: Type.Object({
      percent: Type.Integer("0 to 100.", { examples: [40] }),
      done: Type.Integer(
        "Agents that have done what there was for them so far; of an ended run, those that ended well.",
      ),
      total: Type.Integer("Agents."),
      agents: Type.Optional(AgentEndsSchema),
      label: Type.String("For people.", { examples: ["2 of 5 agents done"] }),
    }),
    steps: Type.Array(
      Type.Object({
        step_id: Type.String(),
        name: Type.String(),
        agent_id: Type.String(),
        ...progressOfNode,
      }),
      "The graph's nodes in its order; at most 1,000, those that something can be said of.",
    ),
    agents: Type.Array(
      Type.Object({
        agent_id: Type.String(),
        agent_type: Type.String(),
        ...progressOfNode,
        processed_messages: Type.Integer(),
        mailbox_depth: Type.Integer("Messages that wait for it."),
        last_error: Type.Nullable(Type.String()),
      }),
      "The same nodes, with what their agents did.",
    ),
    failure: Failure("null unless the run failed."),
    ...reasonFields,
    trace_id: Type.Nullable(Type.String("W3C trace id.", { examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] })),
    observability_summary: Type.Nullable(ObservabilitySummarySchema),
    eta_ms: Type.Nullable(
      Type.Integer(
        "Until the end, about: what the last completed runs of the job took, less what this one has taken; 0 when it takes longer. Null without such runs, and when it is not running.",
        { examples: [42_000] },
      ),
    ),
  },
  "How far a run of the job has come.",
);

/** By the names that clients see. */
export const schemas = { WorkflowProgress: WorkflowProgressSchema };

// --------------------------------------------------------------------------------------------- gateway

export interface GatewayParts extends RunParts {
  readonly records: Pick<GatewayRecords, "job" | "run" | "latestRun" | "completedDurations">;
  readonly bundles: Bundles;
  readonly nowMs: () => number;
}

export function gatewayRoutes(api: FastifyInstance, parts: GatewayParts): void {
  addRoutes(api, "jobs", [
    get("/jobs/:job_id/workflow-progress", {
      operationId: "getWorkflowProgress",
      summary: "See how far a job's run has come",
      description: WHICH_RUN,
      query: Type.Input(whichRun),
      answers: { 200: WorkflowProgressSchema },
      problems: ["run_not_found"],
      handle: async (request, reply) => {
        const job = await findJob(parts, request.params.job_id);
        const run = await runOfJob(parts, job.jobId, request.query.run_id);
        return sendPieces(reply, await inPieces(progressOf(parts, job, run)));
      },
    }),
  ]);
}

async function* progressOf(parts: GatewayParts, job: JobView, run: RunRecord | null) {
  const nowMs = parts.nowMs();
  const source = await progressSource(parts, job, run, nowMs);
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
  const reason = failure?.desc ?? (run === null ? null : waitingReasonOf(run));
  const tail = {
    failure,
    reason,
    status_reason: reason,
    trace_id: run?.traceId ?? null,
    observability_summary: run === null ? null : await readSummary(parts.journal, summarizedRun(run), nowMs),
    eta_ms: run === null ? null : await etaOf(parts, run, nowMs),
  };
  yield* renderProgress(head, await workflowProgress(source), tail);
}

/** From the runtime once it has the run; before that, nothing has come to any node. */
async function progressSource(
  parts: GatewayParts,
  job: JobView,
  run: RunRecord | null,
  nowMs: number,
): Promise<ProgressSource> {
  const status = run?.status ?? "pending";
  const failure = readFailure(run?.failureJson ?? null);
  const agentEnds = run?.progress.agentEnds ?? null;
  if (run?.launched === true) {
    const found = await readProgress(parts.journal, run.runtimeJobId, { status, nowMs });
    if (found !== null) return { ...found, failure, agentEnds };
  }
  const nodes = await nodesOf(await manifestOf(parts, job));
  const nothingYet = {
    agentEnds,
    agents: [],
    tasks: [],
    mailboxDepths: new Map(),
    ends: new Map(),
  };
  return { status, nodes, ...nothingYet, failure, nowMs };
}

/** Empty when the bundle's content was deleted. */
async function manifestOf({ bundles }: GatewayParts, job: JobView): Promise<JsonObject> {
  if (job.bundleFingerprint === null) return {};
  try {
    return (await bundles.definition(job.bundleFingerprint)).manifest;
  } catch (error) {
    if (error instanceof BundleProblem) return {};
    throw error;
  }
}

async function etaOf({ records }: GatewayParts, run: RunRecord, nowMs: number): Promise<number | null> {
  if (run.status !== "running" || run.startedAtMs === null) return null;
  const durationsMs = await records.completedDurations(run.jobId, ETA_RUNS);
  return etaMs(durationsMs, nowMs - run.startedAtMs);
}

// ----------------------------------------------------------------------------------------- runtime API

interface RuntimeRequest {
  Params: { job_id: string };
}

export interface RuntimeParts extends RuntimeRunParts, StreamParts {
  readonly humanRequests: HumanRequestRecords;
  readonly nowMs: () => number;
}

export function runtimeRoutes(api: FastifyInstance, parts: RuntimeParts): void {
  const { journal, streams, nowMs } = parts;

  api.get<RuntimeRequest>("/jobs/:job_id/workflow-progress", async ({ params }, reply) => {
    const found = await readProgress(journal, params.job_id, { nowMs: nowMs() });
    if (found === null) throw jobNotFound(params.job_id);
    return sendPieces(reply, await inPieces(runtimeProgress(parts, found)));
  });

  api.get<RuntimeRequest>("/jobs/:job_id/workflow-progress/stream", async (request, reply) => {
    const job = await findRuntimeJob(parts, request.params.job_id);
    return openStream(request, reply, {
      parameterError: runtimeParameterError,
      isEnded: isTerminal(job.status),
      eventCount: job.eventCount,
      serve: async (afterSeq) => () =>
        streams.latest.serve(reply.raw, progressView(parts, job.jobId), afterSeq),
    });
  });
}

function progressView(parts: RuntimeParts, jobId: string): LatestView {
  return {
    jobId,
    type: "workflow_progress",
    read: async () => {
      const found = await readProgress(parts.journal, jobId, { nowMs: parts.nowMs() });
      if (found === null) return null;
      const { eventCount: seq, status } = found.job;
      return {
        seq,
        json: await joined(textStream(runtimeProgress(parts, found))),
        isLast: isTerminal(status),
      };
    },
  };
}

/** What has no value is left out; `eta_ms` always: the runtime knows no other runs of the same graph to go by. */
async function* runtimeProgress(parts: RuntimeParts, source: JournalProgress) {
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
      label: runLabel(
        job.status,
        { done, total, notReached },
        await askedPeople(parts, job),
        job.tally.waitsFor,
      ),
    },
  };
  const reason = failure?.desc ?? waitingReason(job.status, job.tally);
  const tail = {
    ...(failure !== null && { failure }),
    ...(reason !== null && { reason, status_reason: reason }),
    trace_id: job.trace.traceId,
    observability_summary: await readSummary(parts.journal, job, nowMs),
  };
  yield* renderProgress(head, await workflowProgress(source), tail, (_key, value) => value ?? undefined);
}

async function askedPeople({ humanRequests }: RuntimeParts, job: JobRecord): Promise<AskedPeople> {
  const { jobId, humanPending: pending } = job;
  if (pending !== 1) return { pending, prompt: null };
  const { rows } = await humanRequests.humanRequests(jobId, { status: "pending", limit: 1, afterSeq: 0 });
  return { pending, prompt: rows[0]?.prompt ?? null };
}

// ------------------------------------------------------------------------------------------------ both

/**
 * @param head the members in front of the nodes, `tail` those behind them
 * @param replacer as of JSON.stringify, for the nodes
 */
function* renderProgress(
  head: object,
  { steps, agents }: Awaited<ReturnType<typeof workflowProgress>>,
  tail: object,
  replacer?: (key: string, value: unknown) => unknown,
): Generator<string> {
  const shown = (nodes: readonly object[]) => JSON.stringify(nodes, replacer);
  yield `${JSON.stringify(head).slice(0, -1)},"steps":`;
  yield* listText(steps, shown);
  yield ',"agents":';
  yield* listText(agents, shown);
  yield `,${JSON.stringify(tail).slice(1)}`;
}
