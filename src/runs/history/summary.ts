// The summary of a run, svc.observability_summary.v1 (CONTRACTS §6 "Evidence"): what happened, in numbers, and where to
// read on. It is made of the job's row and of the tally that the row carries; no history is read for it.
//
// - The summary of a run that has ended is always the same, byte for byte, whenever it is asked for.
// - It is small whatever the run did: at most OUTPUT_LINKS_MAX of its outputs are named.

import type { Failure } from "../../engine/failure.ts";
import { isTerminal, type JobStatus } from "../../engine/journal.ts";
import type { Enforcement } from "../../engine/resources.ts";
import { type AgentEnds, type EndWarning, endWarnings, type Tally } from "../../engine/tally.ts";
import type { JobRecord, JobRecords } from "../job-records.ts";
import { artifactUrl } from "./run-context.ts";

/** The artifacts that every run has: views of its history, by their stable ids (spec "Run artifact entry"). */
export const historyFileIds = [
  "events_jsonl",
  "logs_jsonl",
  "errors_jsonl",
  "timeline_jsonl",
  "timeline_json",
  "observability_summary_json",
] as const;

/** Outputs that a summary names. */
export const OUTPUT_LINKS_MAX = 20;

/** What a summary looks at of a run: as the journal has it, or made up for one that the journal never saw. */
export type SummarizedJob = Pick<
  JobRecord,
  "runId" | "status" | "startedAtMs" | "updatedAtMs" | "trace" | "eventCount" | "tally"
>;

export interface SummarySource {
  readonly job: SummarizedJob;
  /** Of the run. */
  readonly failure: Failure | null;
  /** Wall time in ms since 1970, for the duration of an open run; without it, it lasts to its last batch. */
  readonly nowMs?: number;
  /** Ids of the run's outputs, in the order in which they are listed; those behind OUTPUT_LINKS_MAX are left out. */
  readonly artifactIds: readonly string[];
}

export interface ObservabilitySummary {
  readonly schema_version: "svc.observability_summary.v1";
  readonly run_id: string;
  readonly status: JobStatus;
  /** From its start to its end, or to now; null for a run that has not started, or never did. */
  readonly duration_ms: number | null;
  readonly trace_id: string;
  readonly counts: {
    readonly events: number;
    readonly logs: number;
    readonly errors: number;
    readonly warnings: number;
    readonly timeline_records: number;
    /** Files that workers left. */
    readonly artifacts: number;
  };
  /** How many agents ended how; only of a run that has ended. */
  readonly agents?: AgentEnds;
  /** What a completed run lacks, with names; empty for one that is whole. */
  readonly warnings: readonly EndWarning[];
  readonly retry_count: number;
  readonly failed_agent_id: string | null;
  readonly failed_step_id: string | null;
  readonly failure: Failure | null;
  readonly resource_peaks: {
    /** Of all commands together. */
    readonly cpu_seconds: number;
    /** Of the command that held the most; null when the system told of none. */
    readonly max_rss_bytes: number | null;
    /** Of the files that workers left. */
    readonly disk_bytes: number;
  };
  /** Only of a run with commands that had resources of their own: by what they were kept within them. */
  readonly resources?: { readonly enforcement: Enforcement };
  readonly tokens: { readonly input: number; readonly output: number; readonly total: number };
  readonly artifact_links: readonly { readonly artifact_id: string; readonly url: string }[];
}

export function summaryOf({ job, failure, nowMs, artifactIds }: SummarySource): ObservabilitySummary {
  const { runId, tally } = job;
  // A step is a node of the graph, and its id is the agent's.
  const failedId = failure?.details.agent_id ?? null;
  const linked = [...historyFileIds, ...artifactIds.slice(0, OUTPUT_LINKS_MAX)];
  return {
    schema_version: "svc.observability_summary.v1",
    run_id: runId,
    status: job.status,
    duration_ms: durationMs(job, nowMs),
    trace_id: job.trace.traceId,
    counts: {
      events: job.eventCount,
      logs: tally.logs,
      errors: tally.errors,
      warnings: tally.warnings,
      timeline_records: tally.timeline,
      artifacts: tally.artifacts,
    },
    ...(tally.ends !== null && { agents: tally.ends.agents }),
    warnings: endWarnings(tally.ends),
    retry_count: tally.retries,
    failed_agent_id: failedId,
    failed_step_id: failedId,
    failure,
    resource_peaks: {
      cpu_seconds: Math.round(tally.cpuMs) / 1_000,
      max_rss_bytes: tally.rssBytesMax === 0 ? null : tally.rssBytesMax,
      disk_bytes: tally.artifactBytes,
    },
    ...(tally.enforcement !== null && { resources: { enforcement: tally.enforcement } }),
    tokens: {
      input: tally.tokensInput,
      output: tally.tokensOutput,
      total: tally.tokensInput + tally.tokensOutput,
    },
    artifact_links: linked.map((id) => ({ artifact_id: id, url: artifactUrl(runId, id) })),
  };
}

function durationMs(
  { status, startedAtMs, updatedAtMs }: SummarizedJob,
  nowMs: number | undefined,
): number | null {
  if (startedAtMs === null) return null;
  const untilMs = isTerminal(status) ? updatedAtMs : (nowMs ?? updatedAtMs);
  return Math.max(0, untilMs - startedAtMs);
}

/** A run's row, as far as its summary is concerned. */
export type SummarizedRow = SummarizedJob & {
  /** svc.error.v1; null unless the run failed. */
  readonly failureJson: string | null;
};

/**
 * Costs at most one small query, and none for a run whose workers left no files.
 *
 * @param nowMs wall time in ms since 1970, for the duration of an open run; without it, it lasts to its last batch
 */
export async function readSummary(
  records: Pick<JobRecords, "outputPage">,
  job: SummarizedRow,
  nowMs?: number,
): Promise<ObservabilitySummary> {
  const outputs =
    job.tally.artifacts === 0 ? [] : await records.outputPage(job.runId, OUTPUT_LINKS_MAX, null);
  return summaryOf({
    job,
    failure: readFailure(job.failureJson),
    ...(nowMs !== undefined && { nowMs }),
    artifactIds: outputs.map(({ artifactId }) => artifactId),
  });
}

/** A failure as it is kept, or null. */
export function readFailure(failureJson: string | null): Failure | null {
  return failureJson === null ? null : (JSON.parse(failureJson) as Failure);
}

/** The failure and what follows from it, as JSON members with a comma before each; nothing when there is none. */
export function failureMembers(failureJson: string | null): string {
  return failureJson === null ? "" : `,"failure":${failureJson},${reasonMembers(failureJson, null)}`;
}

/**
 * `reason` and `status_reason`: display strings that follow from the failure (spec "Failure object …"), as JSON members.
 *
 * @param waiting why a run without a failure is queued (waitingReason)
 */
export function reasonMembers(failureJson: string | null, waiting: string | null): string {
  const reason = JSON.stringify(readFailure(failureJson)?.desc ?? waiting);
  return `"reason":${reason},"status_reason":${reason}`;
}

/** Why a run or a job is queued; null for one that is not. */
export function waitingReason(status: JobStatus, { waitsFor }: Pick<Tally, "waitsFor">): string | null {
  return status === "queued" ? (waitsFor ?? "It waits for free slots of its executor pool.") : null;
}
