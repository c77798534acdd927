// The columns of a job's row: what it was born with, and its progress.

import { type JobInsert, type JobProgress, terminalStatuses } from "../../engine/journal.ts";

/** Written once, in the order of `fixedValues`. */
export const FIXED_COLUMNS: readonly string[] = [
  "job_id",
  "run_id",
  "graph_id",
  "job_name",
  "type",
  "submitted_at",
  "placement_policy",
  "recovery_policy",
  "executor_count",
  "bundle_fingerprint",
  "definition_id",
  "own_payload",
  "trace_id",
  "parent_span_id",
  "root_agents_json",
];

export function fixedValues(jobId: string, insert: JobInsert) {
  return [
    jobId,
    insert.runId,
    insert.graphId,
    insert.jobName,
    insert.type,
    insert.submittedAtMs,
    insert.placementPolicy,
    insert.recoveryPolicy,
    insert.executorCount,
    insert.bundleFingerprint,
    insert.definitionId,
    insert.hasOwnPayload ? 1 : 0,
    insert.trace.traceId,
    insert.trace.parentSpanId,
    JSON.stringify(insert.rootAgentIds),
  ];
}

/** What changes with each batch, in the order of `progressValues`. */
export const PROGRESS_COLUMNS: readonly string[] = [
  "status",
  "terminal",
  "updated_at",
  "started_at",
  "paused_at",
  "deadline_at",
  "event_seq",
  "message_seq",
  "task_seq",
  "log_bytes",
  "active_executors",
  "sandboxes_json",
  "last_event_json",
  "partial",
  "tally_json",
  "human_pending",
  "stored_bytes",
  "failure_json",
  "result_json",
];

export function progressValues(progress: JobProgress) {
  return [
    progress.status,
    terminalStatuses.includes(progress.status) ? 1 : 0,
    progress.updatedAtMs,
    progress.startedAtMs,
    progress.pausedAtMs,
    progress.deadlineAtMs,
    progress.eventSeq,
    progress.messageSeq,
    progress.taskSeq,
    progress.logBytes,
    progress.activeExecutors,
    JSON.stringify(progress.sandboxNames),
    progress.lastEventJson,
    progress.partial ? 1 : 0,
    JSON.stringify(progress.tally),
    progress.humanPending,
    progress.tally.historyChars + progress.tally.artifactBytes,
    progress.failureJson,
    progress.resultJson,
  ];
}
