// Rows as the records they stand for, where more than one reader needs the same.

import type { AgentRecord, Lease, TaskRecord } from "../engine/ports.ts";
import type { Schema } from "./schema.ts";

export function toAgentRecord(row: Schema["agents"]): AgentRecord {
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

export function toTaskRecord(row: Schema["tasks"]): TaskRecord {
  return {
    taskSeq: row.task_seq,
    agentIndex: row.agent_index,
    kind: row.kind as TaskRecord["kind"],
    attempt: row.attempt,
    failures: row.failures,
    state: JSON.parse(row.state_json) as TaskRecord["state"],
    message: JSON.parse(row.message_json) as TaskRecord["message"],
  };
}
