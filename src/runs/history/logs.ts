// The log view of a run (CONTRACTS §6 "Evidence"): what its workers print and report, and what the runtime itself has
// to say about attempts, agents and the run when something is not as it should be.

import { eventType } from "../../engine/event.ts";
import { type LogLevel, loggedEvents, logLevelOf } from "../../engine/event-types.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { agentSpan, attemptSpan, runSpan, type Span } from "../../engine/trace.ts";
import { attemptOf, fieldsOf, nameOf, type ParsedEvent, parseEvent, textField, wholeField } from "./line.ts";
import type { RunContext } from "./run-context.ts";

export const logStreams = ["stdout", "stderr", "worker", "runtime"] as const;
export type LogStream = (typeof logStreams)[number];

export interface LogRecord {
  readonly ts: string;
  readonly level: LogLevel;
  readonly run_id: string;
  readonly agent_id: string | null;
  readonly attempt: number | null;
  readonly stream: LogStream;
  readonly message: string;
  readonly fields: JsonObject;
  readonly trace_id: string;
  readonly span_id: string;
}

/** As both APIs show it. */
export interface NumberedLog extends LogRecord {
  /** Of its event: its place in the history. */
  readonly id: number;
}

/** What the log says of the runtime's own events. */
const runtimeWords: Readonly<Record<string, Words>> = {
  job_recovered: (_event, fields) =>
    fields.handed_over === true
      ? "The run continues on another node."
      : "The runtime was restarted; the run continues.",
  job_failed: (event) => `The run failed: ${causeOf(event)}`,
  agent_failed: (event) => `Agent ${nameOf(event)} failed: ${causeOf(event)}`,
  sandbox_job_failed: (event) => `An attempt of ${nameOf(event)} failed: ${causeOf(event)}`,
  sandbox_job_retry_scheduled: (event, fields) =>
    `${nameOf(event)} is tried again in ${wholeField(fields, "delay_ms") ?? 0} ms.`,
  executor_interrupted: (event, fields) =>
    `An attempt of ${nameOf(event)} was interrupted: ${textField(fields, "reason") ?? "no reason was given"}`,
  message_dead_lettered: (event, fields) =>
    `A message for ${nameOf(event)} became a dead letter: ${textField(fields, "reason") ?? "no reason was given"}`,
  workspace_modified: (event) => `The files of ${nameOf(event)} were changed from outside.`,
  sandbox_network_denied: (event, fields) =>
    `${nameOf(event)} was refused a connection: ${textField(fields, "reason") ?? "no reason was given"}. To allow it add ${JSON.stringify(textField(fields, "add") ?? "")} to its sandbox.network.allow.`,
  log_truncated: () => "The run has logged as much as is kept; later lines are dropped.",
};

type Words = (event: ParsedEvent, fields: JsonObject) => string;

/** Whether the log view shows this event; cheap. */
export function isLogged(type: string): boolean {
  return type === "log" || loggedEvents.has(type);
}

/** @returns the event as a log record, or null when it is none */
export function toLog(run: RunContext, line: string): LogRecord | null {
  const type = eventType(line);
  if (!isLogged(type)) return null;
  const event = parseEvent(line);
  return type === "log" ? ofWorker(run, event) : ofRuntime(run, event);
}

/** @returns the event as both APIs show it in the log, or null when it is no log record */
export function toNumberedLog(run: RunContext, seq: number, line: string): NumberedLog | null {
  const record = toLog(run, line);
  return record === null ? null : { id: seq, ...record };
}

/** What a worker printed or reported; its payload may be any JSON. */
function ofWorker(run: RunContext, event: ParsedEvent): LogRecord {
  const { level, stream, attempt, message, msg, fields, ...others } = fieldsOf(event);
  const rest: JsonObject = isMark(message)
    ? { ...others, truncated: true, chars: message.chars ?? null }
    : others;
  // Of a payload that was too large for an event, the longest values were replaced by their beginning.
  const text = message ?? msg ?? (isObject(event.payload) ? textField(rest, "preview") : event.payload);
  return {
    ts: event.timestamp,
    level: logLevelOf(level),
    run_id: run.runId,
    agent_id: event.agentId,
    attempt: wholeField({ attempt: attempt ?? null }, "attempt"),
    stream: stream === "stdout" || stream === "stderr" ? stream : "worker",
    message: textOf(text ?? null),
    fields: isObject(fields) ? { ...rest, ...fields } : fields === undefined ? rest : { ...rest, fields },
    trace_id: run.traceId,
    span_id: spanOf(run, event).id,
  };
}

/** Whether this stands for a text that was too long (bounded-value.ts). */
function isMark(value: JsonValue | undefined): value is JsonObject {
  return value !== undefined && isObject(value) && value.truncated === true;
}

function textOf(value: JsonValue): string {
  if (value === null) return "";
  if (isMark(value)) return `${textField(value, "preview") ?? ""}…`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function ofRuntime(run: RunContext, event: ParsedEvent): LogRecord {
  const payload = fieldsOf(event);
  return {
    ts: event.timestamp,
    level: loggedEvents.get(event.type) ?? "info",
    run_id: run.runId,
    agent_id: event.agentId,
    attempt: wholeField(payload, "attempt") ?? wholeField(payload, "failed_attempt"),
    stream: "runtime",
    message: runtimeWords[event.type]?.(event, payload) ?? event.type,
    fields: { event: event.type, ...payload },
    trace_id: run.traceId,
    span_id: spanOf(run, event).id,
  };
}

/** The attempt's span where the runtime names it, else the agent's or the run's. */
function spanOf({ runId }: RunContext, event: ParsedEvent): Span {
  if (event.agentId === null) return runSpan(runId);
  const attempt = event.type === "log" ? null : attemptOf(fieldsOf(event));
  return attempt === null ? agentSpan(runId, event.agentId) : attemptSpan(runId, attempt);
}

function causeOf({ failure }: ParsedEvent): string {
  return failure?.desc ?? "no cause was given";
}
