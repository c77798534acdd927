// The columns of a job's row, each part in the order in which its checksum is made (row-checksum.ts).

import { type DamagedJobEnd, isTerminal, type JobInsert, type JobProgress } from "../../engine/journal.ts";
import type { Terms } from "../../engine/share.ts";
import { readTally, tallyJson } from "../../engine/tally.ts";
import type { TraceContext } from "../../engine/trace.ts";
import { columnsOf, flag, json, type Stored } from "./columns.ts";
import type { Schema } from "./schema.generated.ts";

type FixedPart = Omit<JobInsert, "manifestJson" | "configurationJson" | "trace" | keyof Terms> &
  TraceContext & { readonly jobId: string };

/** Written once. */
export const fixedColumns = columnsOf<Schema["jobs"], FixedPart>({
  jobId: "job_id",
  runId: "run_id",
  graphId: "graph_id",
  jobName: "job_name",
  type: "type",
  submittedAtMs: "submitted_at",
  placementPolicy: "placement_policy",
  recoveryPolicy: "recovery_policy",
  executorCount: "executor_count",
  bundleFingerprint: "bundle_fingerprint",
  definitionId: "definition_id",
  hasOwnPayload: flag("own_payload"),
  traceId: "trace_id",
  parentSpanId: "parent_span_id",
  rootAgentIds: json("root_agents_json"),
});

/** Without a checksum: the sums of rows from before do not have these columns. */
export const termColumns = columnsOf<Schema["jobs"], Terms>({ priority: "priority", weight: "weight" });

/** With what queries ask for, which follows from the rest. */
type StoredProgress = JobProgress & { readonly terminal: boolean; readonly storedBytes: number };

/** What changes with each batch. */
export const progressColumns = columnsOf<Schema["jobs"], StoredProgress>({
  status: "status",
  terminal: flag("terminal"),
  updatedAtMs: "updated_at",
  startedAtMs: "started_at",
  pausedAtMs: "paused_at",
  deadlineAtMs: "deadline_at",
  eventSeq: "event_seq",
  messageSeq: "message_seq",
  taskSeq: "task_seq",
  logBytes: "log_bytes",
  activeExecutors: "active_executors",
  sandboxNames: json("sandboxes_json"),
  lastEventJson: "last_event_json",
  partial: flag("partial"),
  tally: { column: "tally_json", store: tallyJson, read: (stored) => readTally(stored as string) },
  humanPending: "human_pending",
  storedBytes: "stored_bytes",
  failureJson: "failure_json",
  resultJson: "result_json",
});

export const progressValues = (progress: JobProgress) =>
  progressColumns.toValues({
    ...progress,
    terminal: isTerminal(progress.status),
    storedBytes: progress.tally.historyChars + progress.tally.artifactBytes,
  });

/** The changing part of the row of a job whose records are damaged, as it ends. */
export function failedValues(row: Schema["jobs"], eventSeq: number, end: DamagedJobEnd): Stored[] {
  const failed: Record<string, Stored> = {
    ...row,
    status: "failed",
    terminal: 1,
    updated_at: end.nowMs,
    event_seq: eventSeq,
    active_executors: 0,
    human_pending: 0,
    sandboxes_json: "[]",
    last_event_json: end.lastEventJson,
    failure_json: end.failureJson,
    tally_json: tallyJson(end.tally),
  };
  return progressColumns.names.map((name) => failed[name]!);
}
