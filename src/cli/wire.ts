// The runtime API's answers, as far as the commands look at them. Readers must not trust more than is here.

import type { Failure } from "../engine/failure.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";

export interface Health {
  readonly status: string;
  /** Empty when the server does not say. */
  readonly version: string;
}

export interface JobSummary {
  readonly job_id: string;
  readonly graph_id: string;
  readonly job_name?: string | null;
  readonly status: string;
  readonly submitted_at: string;
  readonly updated_at: string;
}

export interface AgentSnapshot {
  readonly agent_id: string;
  readonly agent_type: string;
  readonly status: string;
  readonly processed_messages: number;
  readonly mailbox_depth: number;
  readonly last_error: string | null;
}

export interface JobDetail {
  readonly job: JobSummary & {
    readonly run_id?: string;
    readonly result: JsonValue;
    readonly failure?: Failure | null;
    readonly observability_summary?: JsonValue;
  };
  readonly agents: readonly AgentSnapshot[];
  /** Newest first. */
  readonly recent_events: readonly JsonObject[];
}

export interface BundleRecord {
  readonly bundle_id: string;
  readonly graph_id: string;
  readonly fingerprint: string;
  readonly name?: string;
  readonly updated_at?: string;
  /** Of a registration only. */
  readonly warnings?: readonly { readonly message: string }[];
}

export interface RunArtifact {
  readonly artifact_id: string;
  readonly name: string;
  readonly kind: string;
  readonly title: string | null;
  readonly primary: boolean;
  readonly size: number;
  readonly sha256: string;
  readonly content_type: string;
  readonly url: string;
}

/** An event of a job's history; `sequence` counts from 1 without a gap. */
export interface HistoryEvent {
  readonly sequence: number;
  readonly timestamp: string;
  readonly type: string;
  readonly agentId: string | null;
  readonly payload: JsonObject;
  readonly failure: Failure | null;
  /** As it came, for `--json`. */
  readonly raw: JsonValue;
}

/** Takes an event apart; what is missing or of another type becomes empty. */
export function readEvent(sequence: number, value: JsonValue): HistoryEvent {
  const item: JsonObject = isObject(value) ? value : {};
  return {
    sequence,
    timestamp: typeof item.timestamp === "string" ? item.timestamp : "",
    type: typeof item.type === "string" ? item.type : "",
    agentId: typeof item.agent_id === "string" ? item.agent_id : null,
    payload: isObject(item.payload) ? item.payload : {},
    failure: isObject(item.error) ? (item.error as unknown as Failure) : null,
    raw: value,
  };
}
