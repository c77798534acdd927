// The gateway's rows as the records they stand for.

import type { Selectable } from "kysely";
import type { JobStatus } from "../../engine/journal.ts";
import type { AgentEnds } from "../../engine/tally.ts";
import type {
  DesiredState,
  IdempotencyRecord,
  JobDefinition,
  JobSource,
  JobView,
  OpenRun,
  RunRecord,
  RunSummary,
  RunTrigger,
} from "../../launch/records.ts";
import { tallyOf } from "./rows.ts";
import type { Schema } from "./schema.ts";

/** In place of a snapshot's fingerprint, while a job has none. */
const NO_FINGERPRINT = "";

/** A run with what its runtime job adds; all of that is null until the journal has the job. */
export type RunRow = Omit<Selectable<Schema["runs"]>, "terminal"> & {
  readonly agents_done: number | string;
  readonly event_seq: number | null;
  readonly message_seq: number | null;
  readonly active_executors: number | null;
  readonly human_pending: number | null;
  readonly human_prompt: string | null;
  readonly tally_json: string | null;
  readonly result_json: string | null;
  readonly job_failure_json: string | null;
  readonly job_updated_at: number | null;
};

type DefinitionRow = Omit<Selectable<Schema["job_definitions"]>, "latest_terminal" | "deleted">;

/** A definition with its latest run, which is null in all columns when there is none. */
export type JobRow = DefinitionRow & {
  readonly latest_status: string | null;
  readonly latest_desired_state: string | null;
  readonly latest_trigger_kind: string | null;
  readonly latest_trigger_id: string | null;
  readonly latest_created_at: number | null;
  readonly latest_started_at: number | null;
  readonly latest_finished_at: number | null;
  readonly latest_updated_at: number | null;
  readonly latest_job_updated_at: number | null;
};

export function toRun(row: RunRow): RunRecord {
  const launched = row.launched === 1;
  const agentEnds = endsOf(row, launched);
  return {
    runId: row.run_id,
    jobId: row.job_id,
    runtimeJobId: row.runtime_job_id,
    inputsJson: row.inputs_json,
    configOverridesJson: row.config_overrides_json,
    trigger: toTrigger(row.trigger_kind, row.trigger_id),
    traceId: row.trace_id,
    parentSpanId: row.parent_span_id,
    agentsTotal: row.agents_total,
    createdAtMs: row.created_at,
    status: row.status as JobStatus,
    desiredState: row.desired_state as DesiredState,
    launched,
    label: row.label,
    startedAtMs: row.started_at,
    finishedAtMs: row.finished_at,
    updatedAtMs: Math.max(row.updated_at, row.job_updated_at ?? 0),
    resultJson: row.result_json,
    failureJson: row.failure_json ?? row.job_failure_json,
    tallyJson: launched ? row.tally_json : null,
    progress: {
      // An agent that was added to the run beside its graph, such as its dashboard, is not among the total.
      agentsDone: agentEnds?.done ?? Math.min(Number(row.agents_done), row.agents_total),
      agentEnds,
      messages: row.message_seq ?? 0,
      tasksRunning: row.active_executors ?? 0,
      humanPending: row.human_pending ?? 0,
      humanPrompt: row.human_prompt,
      // A run that ended before its launch has one event: its end.
      eventCount: row.event_seq ?? (!launched && row.finished_at !== null ? 1 : 0),
    },
  };
}

function endsOf(row: RunRow, launched: boolean): AgentEnds | null {
  if (row.finished_at === null) return null;
  const { agents_total: total } = row;
  if (!launched) return { done: 0, failed: 0, cancelled: 0, skipped: total, not_reached: 0 };
  const ends = row.tally_json === null ? null : (tallyOf(row.tally_json).ends?.agents ?? null);
  if (ends === null) return null;
  const counted = Object.values(ends).reduce((sum, count) => sum + count, 0);
  // A dashboard ends with its run, and so is among those that ended well.
  return { ...ends, done: Math.max(0, ends.done - Math.max(0, counted - total)) };
}

export type OpenRunRow = Pick<
  Selectable<Schema["runs"]>,
  "run_id" | "runtime_job_id" | "status" | "desired_state" | "launched"
>;

export function toOpenRun(row: OpenRunRow): OpenRun {
  return {
    runId: row.run_id,
    runtimeJobId: row.runtime_job_id,
    status: row.status as JobStatus,
    desiredState: row.desired_state as DesiredState,
    launched: row.launched === 1,
  };
}

export type RunSummaryRow = Pick<
  Selectable<Schema["runs"]>,
  | "run_id"
  | "job_id"
  | "status"
  | "desired_state"
  | "trigger_kind"
  | "trigger_id"
  | "created_at"
  | "started_at"
  | "finished_at"
  | "updated_at"
> & { readonly job_updated_at: number | null };

export function toRunSummary(row: RunSummaryRow): RunSummary {
  return {
    runId: row.run_id,
    jobId: row.job_id,
    status: row.status as JobStatus,
    desiredState: row.desired_state as DesiredState,
    trigger: toTrigger(row.trigger_kind, row.trigger_id),
    createdAtMs: row.created_at,
    startedAtMs: row.started_at,
    finishedAtMs: row.finished_at,
    updatedAtMs: Math.max(row.updated_at, row.job_updated_at ?? 0),
  };
}

export function toJob(row: JobRow): JobView {
  return {
    jobId: row.job_id,
    name: row.name,
    status: row.status as JobDefinition["status"],
    source: sourceOf(row),
    bundleFingerprint: row.bundle_fingerprint === NO_FINGERPRINT ? null : row.bundle_fingerprint,
    graphId: row.graph_id,
    configurationJson: row.configuration_json,
    extensions: JSON.parse(row.extensions_json) as string[],
    revision: row.revision,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    latestRun: toLatestRun(row),
    activeRuns: row.active_runs,
  };
}

function sourceOf(row: DefinitionRow): JobSource {
  if (row.bundle_id !== null) return { kind: "bundle", bundleId: row.bundle_id };
  if (row.blueprint_id !== null) return { kind: "blueprint", blueprintId: row.blueprint_id };
  throw new Error(`Job ${row.job_id} has neither a bundle nor a blueprint.`);
}

function toLatestRun(row: JobRow): RunSummary | null {
  const { latest_run_id, latest_status, latest_desired_state, latest_trigger_kind } = row;
  const { latest_created_at, latest_updated_at } = row;
  if (latest_run_id === null || latest_status === null || latest_desired_state === null) return null;
  if (latest_trigger_kind === null || latest_created_at === null || latest_updated_at === null) return null;
  return {
    runId: latest_run_id,
    jobId: row.job_id,
    status: latest_status as JobStatus,
    desiredState: latest_desired_state as DesiredState,
    trigger: toTrigger(latest_trigger_kind, row.latest_trigger_id),
    createdAtMs: latest_created_at,
    startedAtMs: row.latest_started_at,
    finishedAtMs: row.latest_finished_at,
    updatedAtMs: Math.max(latest_updated_at, row.latest_job_updated_at ?? 0),
  };
}

function toTrigger(kind: string, id: string | null): RunTrigger {
  return { kind: kind as RunTrigger["kind"], id };
}

export function toIdempotency(row: Schema["idempotency"]): IdempotencyRecord {
  return {
    scope: row.scope,
    key: row.key,
    requestHash: row.request_hash,
    status: row.status,
    headersJson: row.headers_json,
    body: row.body,
    createdAtMs: row.created_at,
  };
}

/** What a change of the definition may touch; the rest is derived from its runs, or never changes. */
export function definitionValues(job: JobDefinition) {
  return {
    name: job.name,
    status: job.status,
    bundle_id: job.source.kind === "bundle" ? job.source.bundleId : null,
    blueprint_id: job.source.kind === "blueprint" ? job.source.blueprintId : null,
    bundle_fingerprint: job.bundleFingerprint ?? NO_FINGERPRINT,
    graph_id: job.graphId,
    revision: job.revision,
    updated_at: job.updatedAtMs,
    extensions_json: JSON.stringify(job.extensions),
    configuration_json: job.configurationJson,
  };
}
