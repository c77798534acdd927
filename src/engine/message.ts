// The message: what agents send each other, and the envelope a worker reads.

import type { JsonObject, JsonValue } from "./json.ts";

/** A message as the engine holds it. `seq` orders all messages of one job; ids are made from it. */
export interface Message {
  readonly seq: number;
  /** The agent that emitted it; null for initial inputs and messages from outside. */
  readonly from: string | null;
  /** Index of the receiving agent in the graph. */
  readonly to: number;
  readonly type: string;
  readonly class: MessageClass;
  readonly body: JsonValue;
  readonly correlationId: string;
  readonly causationId: string | null;
  /** Milliseconds from `timestampMs` after which it must no longer be processed; null lives for ever. */
  readonly ttlMs: number | null;
  readonly timestampMs: number;
  /** Of a message with a ttl: when it is over on this process's steady clock. Recovery sets it anew. */
  readonly expiresAtMs?: number;
  /** Length of the body as JSON. */
  readonly chars: number;
}

export type MessageClass = "command" | "event" | "stream";

/** The envelope of CONTRACTS §4, as workers and dead letters show it. */
export interface Envelope {
  readonly message_id: string;
  readonly job_id: string;
  readonly from: string | null;
  readonly to: string;
  readonly type: string;
  readonly class: MessageClass;
  readonly correlation_id: string;
  readonly causation_id: string | null;
  readonly attempt: number;
  readonly priority: number;
  readonly ttl_ms: number | null;
  readonly timestamp: string;
  readonly content_type: "application/json";
  readonly headers: JsonObject;
  readonly body: JsonValue;
  readonly artifacts: readonly JsonValue[];
  readonly stream: null;
}

/** The public id of a job's n-th message: unique, and free of the job's own id. */
export function messageId(runId: string, seq: number): string {
  return `msg_${runId.slice(runId.indexOf("_") + 1)}_${seq}`;
}

/** Shows a message as an envelope; `attempt` counts from 1. */
export function toEnvelope(
  message: Message,
  job: { readonly publicJobId: string; readonly runId: string },
  toAgentId: string,
  attempt: number,
): Envelope {
  return {
    message_id: messageId(job.runId, message.seq),
    job_id: job.publicJobId,
    from: message.from,
    to: toAgentId,
    type: message.type,
    class: message.class,
    correlation_id: message.correlationId,
    causation_id: message.causationId,
    attempt,
    priority: 0,
    ttl_ms: message.ttlMs,
    timestamp: new Date(message.timestampMs).toISOString(),
    content_type: "application/json",
    headers: {},
    body: message.body,
    artifacts: [],
    stream: null,
  };
}
