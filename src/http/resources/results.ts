// What a run came to, and what can be learnt from its history: GET /runs/{run_id}/result, …/timeline and
// …/observability-summary, in both APIs.

import type { FastifyInstance } from "fastify";
import { isoTime } from "../../engine/event.ts";
import { isTerminal } from "../../engine/journal.ts";
import { enforcements } from "../../engine/resources.ts";
import type { RunRecord } from "../../launch/records.ts";
import { failureMembers, readSummary } from "../../runs/history/summary.ts";
import { timelineTypes, toTimeline } from "../../runs/history/timeline.ts";
import type { JobRecord, JobRecords } from "../../runs/job-records.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import { findRun, findRuntimeRun, type RunParts, type RuntimeRunParts } from "./find-run.ts";
import { type HistoryView, sendJson } from "./lists.ts";
import { AgentEndsSchema, AgentId, pageOf, pageQuery, RunId, RunStatus, SpanId, TraceId } from "./schemas.ts";

const RunResultSchema = Type.Object(
  {
    run_id: RunId,
    status: RunStatus,
    result: Type.Nullable(Type.JsonObject("Null until the run has completed, and when it failed.")),
    failure: Type.Nullable(Type.JsonObject("svc.error.v1; null when nothing failed.")),
    partial: Type.Optional(
      Type.Boolean("true when the run completed although some messages failed (failure_policy continue)."),
    ),
    finished_at: Type.Nullable(Type.Time("Null while the run has not ended.")),
  },
  "What a run came to; look at status first.",
);

const TimelineSchema = Type.Object({
  schema_version: Type.Literal("svc.timeline.v1"),
  ts: Type.Time("When it happened."),
  run_id: RunId,
  trace_id: TraceId,
  span_id: SpanId,
  parent_span_id: Type.Nullable(SpanId),
  type: Type.OneOf(timelineTypes, "What the record is about."),
  phase: Type.String("What happened to it.", { examples: ["started"] }),
  agent_id: AgentId,
  step_id: Type.Nullable(Type.String("The node of the graph, by its id.")),
  status: Type.String("What it is from then on.", { examples: ["running"] }),
  duration_ms: Type.Nullable(Type.Integer("Of what has ended, where that is known.")),
  summary: Type.String("For people.", { examples: ['Attempt 1 of "writer" completed'] }),
  links: Type.Record(Type.String(), "Where to look next."),
  details: Type.JsonObject("The event's id, type and payload.", { event_id: 9, event_type: "agent_started" }),
});

const TimelinePageSchema = pageOf(TimelineSchema, "timeline records, oldest first");

const count = (description: string, example: number) =>
  Type.Integer({ minimum: 0, description, examples: [example] });

const FailedId = (description: string) => Type.Nullable(Type.String({ description, examples: ["writer"] }));

export const ObservabilitySummarySchema = Type.Object(
  {
    schema_version: Type.Literal("svc.observability_summary.v1"),
    run_id: Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    status: RunStatus,
    duration_ms: Type.Nullable(
      Type.Integer("From its start to its end, or to now; null for a run that never started."),
    ),
    trace_id: Type.String("W3C trace id.", { examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] }),
    counts: Type.Object({
      events: count("Of its history.", 58),
      logs: count("Records of the log view.", 12),
      errors: count("Events that carry a failure, attempts that were made again included.", 2),
      warnings: count("Log records of level warn.", 3),
      timeline_records: count("Records of the timeline.", 31),
      artifacts: count("Files that its workers left.", 2),
    }),
    agents: Type.Optional(AgentEndsSchema),
    warnings: Type.Array(
      Type.Object({
        code: Type.OneOf(["agents_not_reached", "outputs_missing"]),
        message: Type.String({ examples: ['No message reached "writer".'] }),
      }),
      "What a completed run lacks, with names; empty for one that is whole.",
    ),
    retry_count: count("Attempts that were made again.", 1),
    failed_agent_id: FailedId("Whose failure failed the run; null where none did."),
    failed_step_id: FailedId("The node of the graph, by its id."),
    failure: Type.Nullable(Type.JsonObject("svc.error.v1; null unless the run failed.")),
    resources: Type.Optional(
      Type.Object(
        {
          enforcement: Type.OneOf(
            enforcements,
            "By what commands were kept within the resources of their nodes: control groups of version 2 or 1, a watch of their memory with a limit of each process (prlimit), or nothing.",
          ),
        },
        "Only of a run with such commands.",
      ),
    ),
    resource_peaks: Type.Object({
      cpu_seconds: Type.Number("CPU time of all its commands together, as the operating system tells.", {
        examples: [4.21],
      }),
      max_rss_bytes: Type.Nullable(
        Type.Integer("The most memory that one command held; null when the system told of none.", {
          examples: [73_400_320],
        }),
      ),
      disk_bytes: count("Of the files that its workers left.", 18_211),
    }),
    tokens: Type.Object(
      {
        input: count("Given to models.", 1_200),
        output: count("Made by models.", 350),
        total: count("Both.", 1_550),
      },
      "What its workers reported with metric events.",
    ),
    artifact_links: Type.Array(
      Type.Object({
        artifact_id: Type.String({ examples: ["events_jsonl"] }),
        url: Type.String({
          examples: ["/api/v1/runs/run_01k9z1v7m3e8q2x4c6t8b0n5dh/artifacts/events_jsonl"],
        }),
      }),
      "The views of its history as files, and its outputs: at most 20, primary ones first.",
    ),
  },
  "What happened in a run, in numbers, and where to read on.",
);

/** By the names that clients see. */
export const schemas = {
  RunResult: RunResultSchema,
  TimelineRecord: TimelineSchema,
  TimelinePage: TimelinePageSchema,
  ObservabilitySummary: ObservabilitySummarySchema,
};

export interface Parts {
  readonly journal: JobRecords;
  readonly nowMs: () => number;
}

export function routes(api: Api, parts: Parts): void {
  api.add("runs", [
    get("/runs/:run_id/timeline", {
      operationId: "listRunTimeline",
      summary: "Read the timeline of a run",
      description:
        "The steps of the run, its agents, their tasks and attempts, as records of spans (svc.timeline.v1).",
      query: Type.Input(pageQuery),
      answers: { 200: TimelinePageSchema },
      handle: (request, reply) => api.sendHistory(request, reply, timelineView),
    }),
    get("/runs/:run_id/observability-summary", {
      operationId: "getObservabilitySummary",
      summary: "Summarise a run",
      description:
        "What happened in a run, in numbers, and where to read on (svc.observability_summary.v1). It is counted while the run goes on: asking for it costs as little as asking for the run.",
      answers: { 200: ObservabilitySummarySchema },
      handle: async (request) => {
        const run = await api.findRun(request.params.run_id);
        return readSummary(parts.journal, run.summarized(), parts.nowMs());
      },
    }),
  ]);
}

const timelineView: HistoryView = (run, seq, line) => {
  const record = toTimeline(run, seq, line);
  return record === null ? null : JSON.stringify(record);
};

// --------------------------------------------------------------------------------------------- gateway

export function gatewayRoutes(app: FastifyInstance, parts: RunParts): void {
  const { journal } = parts;
  addRoutes(app, "runs", [
    get("/runs/:run_id/result", {
      operationId: "getRunResult",
      summary: "Get the result of a run",
      description:
        "Answers at any time: a run that has not ended has no result yet, which its status shows. Review warnings and outputs before you take a completed run for a correct result.",
      answers: { 200: RunResultSchema },
      handle: async (request, reply) => {
        const run = await findRun(parts, request.params.run_id);
        const isPartial =
          run.status === "completed" && (await journal.find(run.runtimeJobId))?.partial === true;
        return sendJson(reply, renderResult(run, isPartial));
      },
    }),
  ]);
}

function renderResult(run: RunRecord, isPartial: boolean): string {
  const finishedAt = run.finishedAtMs === null ? "null" : `"${isoTime(run.finishedAtMs)}"`;
  return (
    `{"run_id":${JSON.stringify(run.runId)},"status":"${run.status}","result":${run.resultJson ?? "null"},` +
    `"failure":${run.failureJson ?? "null"},${isPartial ? '"partial":true,' : ""}"finished_at":${finishedAt}}`
  );
}

// ----------------------------------------------------------------------------------------- runtime API

interface RuntimeRequest {
  Params: { run_id: string };
}

export function runtimeRoutes(app: FastifyInstance, parts: RuntimeRunParts): void {
  const { journal } = parts;

  app.get<RuntimeRequest>("/runs/:run_id/result", async ({ params }, reply) => {
    const job = await findRuntimeRun(parts, params.run_id);
    return sendJson(reply, renderRuntimeResult(job, await journal.result(job.jobId)));
  });
}

function renderRuntimeResult(job: JobRecord, resultJson: string | null): string {
  const finishedAt = isTerminal(job.status) ? `,"finished_at":"${isoTime(job.updatedAtMs)}"` : "";
  return (
    `{"run_id":${JSON.stringify(job.runId)},"job_id":${JSON.stringify(job.jobId)},"status":"${job.status}",` +
    `"result":${resultJson ?? "null"}${failureMembers(job.failureJson)},"partial":${job.partial}${finishedAt}}`
  );
}
