// Reading a job's image back: the sum of its batches, for recovery.

import type { DatabaseSync } from "node:sqlite";
import type { Message } from "../../engine/message.ts";
import type {
  AgentRecord,
  CollectedItems,
  JobImage,
  JobInsert,
  JobProgress,
  Lease,
  TaskRecord,
} from "../../engine/ports.ts";
import type { Schema } from "../schema.ts";

type JobRow = Schema["jobs"] & Schema["job_sources"];

export function readImage(connection: DatabaseSync, jobId: string): JobImage | null {
  const all = <Row>(sql: string): Row[] => connection.prepare(sql).all(jobId) as unknown as Row[];
  const [job] = all<JobRow>("SELECT * FROM jobs JOIN job_sources USING (job_id) WHERE job_id = ?");
  if (job === undefined) return null;
  return {
    jobId,
    epoch: job.epoch,
    revision: job.revision,
    insert: toInsert(job),
    progress: toProgress(job),
    agents: all<Schema["agents"]>("SELECT * FROM agents WHERE job_id = ? ORDER BY agent_index").map(toAgent),
    messages: all<{ message_json: string }>(
      "SELECT message_json FROM messages WHERE job_id = ? ORDER BY agent_index, seq",
    ).map((row) => JSON.parse(row.message_json) as Message),
    items: all<Schema["items"]>("SELECT * FROM items WHERE job_id = ? ORDER BY agent_index, first_seq").map(
      toItems,
    ),
    tasks: all<Schema["tasks"]>("SELECT * FROM tasks WHERE job_id = ? ORDER BY task_seq").map(toTask),
  };
}

function toInsert(row: JobRow): JobInsert {
  return {
    graphId: row.graph_id,
    jobName: row.job_name,
    runId: row.run_id,
    type: row.type,
    submittedAtMs: row.submitted_at,
    placementPolicy: row.placement_policy,
    recoveryPolicy: row.recovery_policy,
    executorCount: row.executor_count,
    rootAgentIds: JSON.parse(row.root_agents_json) as string[],
    manifestJson: row.manifest_json,
    bundleFingerprint: row.bundle_fingerprint,
    configurationJson: row.configuration_json,
  };
}

function toProgress(row: JobRow): JobProgress {
  return {
    status: row.status as JobProgress["status"],
    updatedAtMs: row.updated_at,
    startedAtMs: row.started_at,
    pausedAtMs: row.paused_at,
    deadlineAtMs: row.deadline_at,
    eventSeq: row.event_seq,
    messageSeq: row.message_seq,
    taskSeq: row.task_seq,
    logBytes: row.log_bytes,
    activeExecutors: row.active_executors,
    sandboxNames: JSON.parse(row.sandboxes_json) as string[],
    lastEventJson: row.last_event_json,
    partial: row.partial === 1,
    resultJson: row.result_json,
    failureJson: row.failure_json,
  };
}

function toAgent(row: Schema["agents"]): AgentRecord {
  return {
    agentId: row.agent_id,
    index: row.agent_index,
    status: row.status as AgentRecord["status"],
    done: row.done === 1,
    processedMessages: row.processed_messages,
    stateJson: row.state_json,
    lastError: row.last_error,
    unroutedJson: row.unrouted_json,
    lease: row.lease_json === null ? null : (JSON.parse(row.lease_json) as Lease),
  };
}

function toItems(row: Schema["items"]): CollectedItems {
  return { agentIndex: row.agent_index, firstSeq: row.first_seq, bodiesJson: row.lines.split("\n") };
}

function toTask(row: Schema["tasks"]): TaskRecord {
  return {
    taskSeq: row.task_seq,
    agentIndex: row.agent_index,
    kind: row.kind as TaskRecord["kind"],
    attempt: row.attempt,
    failures: row.failures,
    state: JSON.parse(row.state_json) as TaskRecord["state"],
    message: JSON.parse(row.message_json) as Message,
  };
}
