// Rows as the records they stand for, where more than one reader needs the same.

import type { AgentRecord, HumanRequest, HumanResponse, TaskRecord } from "../../engine/journal.ts";
import { newTally, readTally, type Tally } from "../../engine/tally.ts";
import type { Lease } from "../../engine/task-port.ts";
import { ownTrace, type TraceContext } from "../../engine/trace.ts";
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

export function toHumanRequest(row: Schema["human_requests"]): HumanRequest {
  return {
    requestId: row.request_id,
    eventSeq: row.event_seq,
    agentId: row.agent_id,
    taskSeq: row.task_seq,
    prompt: row.prompt,
    allowedDecisions: JSON.parse(row.allowed_json) as string[],
    defaultAction: row.default_action,
    status: row.status as HumanRequest["status"],
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at,
    response: row.response_json === null ? null : (JSON.parse(row.response_json) as HumanResponse),
  };
}

/** The trace of a runtime job; one from before traces were kept has its own. */
export function toTrace(row: Pick<Schema["jobs"], "run_id" | "trace_id" | "parent_span_id">): TraceContext {
  if (row.trace_id === "") return ownTrace(row.run_id);
  return { traceId: row.trace_id, parentSpanId: row.parent_span_id };
}

/** The counts of a job; where they are damaged they begin afresh, so that one row does not stop a whole list. */
export function tallyOf(json: string): Tally {
  try {
    return readTally(json);
  } catch {
    return newTally();
  }
}
