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

const TYPE_KEY = '"type":"';
const AGENT_KEY = '"agent_id":';

/** The type of an event; it is a word of letters, digits and a few signs, so that nothing in it is escaped. */
export function eventType(line: string): string {
  const from = line.indexOf(TYPE_KEY) + TYPE_KEY.length;
  return line.slice(from, line.indexOf('"', from));
}

/** @param agentIdJson the agent's id as JSON, which is how the line has it */
export function isOfAgent(line: string, agentIdJson: string): boolean {
  const from = line.indexOf(AGENT_KEY) + AGENT_KEY.length;
  return line.startsWith(agentIdJson, from);
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
