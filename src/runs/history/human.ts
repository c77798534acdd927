// The human view of a run's history: what its workers ask people, and how it is answered, as the events tell it
// (CONTRACTS §6 "Evidence", human request). Comments and data of answers are in the request's record.

import { eventType } from "../../engine/event.ts";
import type { JsonValue } from "../../engine/json.ts";
import { fieldsOf, type ParsedEvent, parseEvent, textField } from "./line.ts";
import type { RunContext } from "./run-context.ts";

/** A worker asks. */
export interface HumanAsked {
  readonly request_id: string;
  readonly run_id: string;
  readonly agent_id: string | null;
  readonly prompt: string;
  readonly allowed_decisions: readonly JsonValue[];
  readonly data_schema: JsonValue;
  readonly status: "pending";
  readonly default_action: JsonValue;
  readonly expires_at: string | null;
  readonly response: null;
}

/** A request is closed, by a person or because its time is over. */
export interface HumanClosed {
  readonly request_id: string;
  readonly run_id: string;
  readonly agent_id: string | null;
  readonly status: "answered" | "timed_out";
  readonly response: {
    readonly decision: string;
    /** Null when the time was over. */
    readonly principal: string | null;
    readonly responded_at: string;
  };
}

const views: Readonly<
  Record<string, (run: RunContext, seq: number, event: ParsedEvent) => HumanAsked | HumanClosed | null>
> = {
  human_input_requested: asked,
  human_input_answered: (run, seq, event) => closed(run, seq, event, "answered"),
  human_input_timed_out: (run, seq, event) => closed(run, seq, event, "timed_out"),
};

/** @returns the event as the human view shows it, or null when it does not */
export function toHumanView(run: RunContext, seq: number, line: string): HumanAsked | HumanClosed | null {
  const type = eventType(line);
  return Object.hasOwn(views, type) ? (views[type]?.(run, seq, parseEvent(line)) ?? null) : null;
}

/** A request that is asked again is the one that was shown before, whatever has become of it. */
function asked(run: RunContext, seq: number, event: ParsedEvent): HumanAsked | null {
  const fields = fieldsOf(event);
  if (fields.repeated === true) return null;
  const { allowed_decisions: decisions, default_action: defaultAction } = fields;
  return {
    ...head(run, seq, event),
    prompt: textField(fields, "prompt") ?? "",
    allowed_decisions: Array.isArray(decisions) ? decisions : [],
    data_schema: fields.data_schema ?? null,
    status: "pending",
    default_action: defaultAction ?? null,
    expires_at: textField(fields, "expires_at"),
    response: null,
  };
}

function closed(
  run: RunContext,
  seq: number,
  event: ParsedEvent,
  status: HumanClosed["status"],
): HumanClosed {
  const fields = fieldsOf(event);
  return {
    ...head(run, seq, event),
    status,
    response: {
      decision: textField(fields, "decision") ?? "",
      principal: textField(fields, "principal"),
      responded_at: event.timestamp,
    },
  };
}

function head({ runId }: RunContext, seq: number, event: ParsedEvent) {
  return {
    request_id: textField(fieldsOf(event), "request_id") ?? `req_${seq}`,
    run_id: runId,
    agent_id: event.agentId,
  };
}
