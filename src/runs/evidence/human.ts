// What a run asks of people (CONTRACTS §6 "Evidence", human request), as the event of the worker that asked tells it.

import type { JsonValue } from "../../engine/json.ts";
import { eventType, fieldsOf, parseEvent, textField } from "./line.ts";
import type { RunContext } from "./run-context.ts";

export interface HumanRequest {
  readonly request_id: string;
  readonly run_id: string;
  readonly agent_id: string | null;
  readonly prompt: string;
  readonly allowed_decisions: readonly JsonValue[];
  readonly status: "pending";
  readonly default_action: JsonValue;
  readonly expires_at: string | null;
  readonly response: null;
}

const REQUESTED = "human_input_requested";

/** Whether the human view shows this event; cheap. */
export function isForHumans(type: string): boolean {
  return type === REQUESTED;
}

/** @returns the event as a request to people, or null when it is none */
export function toHumanRequest(run: RunContext, seq: number, line: string): HumanRequest | null {
  if (!isForHumans(eventType(line))) return null;
  const event = parseEvent(line);
  const fields = fieldsOf(event);
  const { allowed_decisions: decisions, default_action: defaultAction } = fields;
  return {
    request_id: textField(fields, "request_id") ?? `req_${seq}`,
    run_id: run.runId,
    agent_id: event.agentId,
    prompt: textField(fields, "prompt") ?? "",
    allowed_decisions: Array.isArray(decisions) ? decisions : [],
    status: "pending",
    default_action: defaultAction ?? null,
    expires_at: textField(fields, "expires_at"),
    response: null,
  };
}
