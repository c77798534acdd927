// An event's line (src/engine/event.ts): what can be told without parsing it, and the whole of it.

import type { Failure } from "../../engine/failure.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";

export interface ParsedEvent {
  readonly timestamp: string;
  readonly type: string;
  readonly agentId: string | null;
  readonly payload: JsonValue;
  readonly failure: Failure | null;
}

const AGENT_KEY = '"agent_id":';

/** @param agentIdJson the agent's id as JSON, which is how the line has it */
export function isOfAgent(line: string, agentIdJson: string): boolean {
  const from = line.indexOf(AGENT_KEY) + AGENT_KEY.length;
  return line.startsWith(agentIdJson, from);
}

const TIME_FROM = '{"timestamp":"'.length;
const TIME_CHARS = "2026-11-21T09:30:00.000Z".length;

/** When the event happened, ISO 8601 UTC with milliseconds. */
export function timeOf(line: string): string {
  return line.slice(TIME_FROM, TIME_FROM + TIME_CHARS);
}

export function parseEvent(line: string): ParsedEvent {
  const event = JSON.parse(line) as {
    readonly timestamp: string;
    readonly type: string;
    readonly agent_id: string | null;
    readonly payload: JsonValue;
    readonly error?: Failure;
  };
  return {
    timestamp: event.timestamp,
    type: event.type,
    agentId: event.agent_id,
    payload: event.payload,
    failure: event.error ?? null,
  };
}

/** The payload's fields; those of a payload that is no object are none. */
export function fieldsOf({ payload }: ParsedEvent): JsonObject {
  return isObject(payload) ? payload : {};
}

export function textField(fields: JsonObject, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === "string" ? value : null;
}

export function wholeField(fields: JsonObject, name: string): number | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}
