// The log view of a run (CONTRACTS §6 "Evidence"): what its workers print and report, and what the runtime itself has
// to say about attempts, agents and the run when something is not as it should be.

import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { eventType, fieldsOf, type ParsedEvent, parseEvent, textField, wholeField } from "./line.ts";
import type { RunContext } from "./run-context.ts";
import { agentSpan, attemptOf, attemptSpan, runSpan, type Span } from "./spans.ts";

/** From the least to the most urgent. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

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

/** How loggers of other languages spell the levels. */
const levelAliases: Readonly<Record<string, LogLevel>> = {
  verbose: "trace",
  notice: "info",
  information: "info",
  warning: "warn",
  err: "error",
  critical: "fatal",
};

/** The runtime's own events that belong in a log, with their level and words. */
const runtimeLogs: ReadonlyMap<string, { readonly level: LogLevel; readonly words: Words }> = new Map([
  ["job_recovered", { level: "warn", words: () => "The runtime was restarted; the run carries on." }],
  ["job_failed", { level: "error", words: (event) => `The run failed: ${causeOf(event)}` }],
  ["agent_failed", { level: "error", words: (event) => `Agent ${nameOf(event)} failed: ${causeOf(event)}` }],
  [
    "sandbox_job_failed",
    { level: "warn", words: (event) => `An attempt of ${nameOf(event)} failed: ${causeOf(event)}` },
  ],
  [
    "sandbox_job_retry_scheduled",
    {
      level: "warn",
      words: (event, fields) =>
        `${nameOf(event)} is tried again in ${wholeField(fields, "delay_ms") ?? 0} ms.`,
    },
  ],
  [
    "executor_interrupted",
    {
      level: "warn",
      words: (event, fields) =>
        `An attempt of ${nameOf(event)} was interrupted: ${textField(fields, "reason") ?? "no reason was given"}`,
    },
  ],
  [
    "message_dead_lettered",
    {
      level: "warn",
      words: (event, fields) =>
        `A message for ${nameOf(event)} became a dead letter: ${textField(fields, "reason") ?? "no reason was given"}`,
    },
  ],
  [
    "workspace_modified",
    { level: "warn", words: (event) => `The files of ${nameOf(event)} were changed from outside.` },
  ],
  [
    "log_truncated",
    { level: "warn", words: () => "The run has logged as much as is kept; later lines are dropped." },
  ],
] satisfies [string, { level: LogLevel; words: Words }][]);

type Words = (event: ParsedEvent, fields: JsonObject) => string;

/** Whether the log view shows this event; cheap. */
export function isLogged(type: string): boolean {
  return type === "log" || runtimeLogs.has(type);
}

/** @returns the event as a log record, or null when it is none */
export function toLog(run: RunContext, line: string): LogRecord | null {
  const type = eventType(line);
  if (!isLogged(type)) return null;
  const event = parseEvent(line);
  return type === "log" ? ofWorker(run, event) : ofRuntime(run, event);
}

/** What a worker printed or reported; its payload may be any JSON. */
function ofWorker(run: RunContext, event: ParsedEvent): LogRecord {
  const { level, stream, attempt, message, msg, fields, ...rest } = fieldsOf(event);
  // A payload that was too large for an event was replaced by its beginning.
  const said = message ?? msg ?? (isObject(event.payload) ? textField(rest, "preview") : event.payload);
  return {
    ts: event.timestamp,
    level: levelOf(level),
    run_id: run.runId,
    agent_id: event.agentId,
    attempt: wholeField({ attempt: attempt ?? null }, "attempt"),
    stream: logStreams.find((one) => one === stream) ?? "worker",
    message: textOf(said ?? null),
    fields: isObject(fields) ? { ...rest, ...fields } : fields === undefined ? rest : { ...rest, fields },
    trace_id: run.traceId,
    span_id: spanOf(run, event).id,
  };
}

function levelOf(given: JsonValue | undefined): LogLevel {
  if (typeof given !== "string") return "info";
  const level = given.toLowerCase();
  const alias = Object.hasOwn(levelAliases, level) ? levelAliases[level] : undefined;
  return logLevels.find((one) => one === level) ?? alias ?? "info";
}

function textOf(value: JsonValue): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function ofRuntime(run: RunContext, event: ParsedEvent): LogRecord {
  const { level, words } = runtimeLogs.get(event.type)!;
  const payload = fieldsOf(event);
  return {
    ts: event.timestamp,
    level,
    run_id: run.runId,
    agent_id: event.agentId,
    attempt: wholeField(payload, "attempt") ?? wholeField(payload, "failed_attempt"),
    stream: "runtime",
    message: words(event, payload),
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

function nameOf({ agentId }: ParsedEvent): string {
  return agentId === null ? "the run" : JSON.stringify(agentId);
}

function causeOf({ failure }: ParsedEvent): string {
  return failure?.desc ?? "no cause was given";
}

export interface LogFilter {
  /** The least urgent level that is shown. */
  readonly level: LogLevel;
  readonly stream: LogStream | null;
}

export function passes(record: LogRecord, { level, stream }: LogFilter): boolean {
  const isUrgent = logLevels.indexOf(record.level) >= logLevels.indexOf(level);
  return isUrgent && (stream === null || record.stream === stream);
}
