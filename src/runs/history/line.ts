// An event's line (src/engine/event.ts): what can be told without parsing it, the whole of it, and the line as readers see
// it.

import { boundedValue } from "../../engine/bounded-value.ts";
import type { Failure } from "../../engine/failure.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import type { AttemptName } from "../../engine/trace.ts";

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

/** The agent that an event is about, for people. */
export function nameOf({ agentId }: ParsedEvent): string {
  return agentId === null ? "the run" : JSON.stringify(agentId);
}

export function textField(fields: JsonObject, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === "string" ? value : null;
}

export function wholeField(fields: JsonObject, name: string): number | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}

/** The attempt that an engine's event is about; null for one that is about something else. */
export function attemptOf(fields: JsonObject): AttemptName | null {
  const task = wholeField(fields, "task");
  const attempt = wholeField(fields, "attempt");
  return task === null || attempt === null ? null : { task, attempt };
}

/**
 * The line as a run's readers see it, not parsed: with its public ids in front.
 *
 * @param line `{"timestamp":…,"type":…,"agent_id":…,"payload":…}`, as the journal keeps it
 */
export function renderEvent(runId: string, seq: number, line: string): string {
  return `{"id":${seq},"run_id":${JSON.stringify(runId)},${line.slice(1)}`;
}

const NO_AGENT = ',"agent_id":null';

/** The line as the runtime API shows it, not parsed: what happened to the whole job has no `agent_id`. */
export function withoutNullAgent(line: string): string {
  const type = line.indexOf('"type":"');
  const end = line.indexOf('"', type + '"type":"'.length) + 1;
  return line.startsWith(NO_AGENT, end) ? line.slice(0, end) + line.slice(end + NO_AGENT.length) : line;
}

/** Of a failure as JSON; what is longer in it is cut. */
export const FAILURE_BYTES_MAX = 16 * 1024;

/** What a line with a failure has in it, and few others. */
const FAILURE_MARK = ',"error":{"schema_version":"svc.error.v1"';

/** @returns the event's failure as a line of errors.jsonl, svc.error.v1 (CONTRACTS §5); null without one */
export function failureLine(line: string): string | null {
  if (!line.includes(FAILURE_MARK)) return null;
  const { failure } = parseEvent(line);
  if (failure === null) return null;
  return JSON.stringify(boundedValue(failure as unknown as JsonValue, FAILURE_BYTES_MAX));
}
