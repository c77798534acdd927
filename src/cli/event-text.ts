// An event of a run as one line for people. Pure; every text from outside is cleaned here.

import type { Failure } from "../engine/failure.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { Paint, Style } from "./terminal.ts";
import { bytes, cleanText, duration, pad, shellWord, timeOfDay } from "./text.ts";

/** An event of either API as it is shown. */
export interface HistoryEvent {
  /** Its place in the history, from 1. */
  readonly sequence: number;
  readonly timestamp: string;
  readonly type: string;
  readonly agentId: string | null;
  readonly payload: JsonObject;
  readonly failure: Failure | null;
}

/** Reads the fields of an event; what is missing or of another type becomes empty. */
export function readEvent(sequence: number, event: unknown): HistoryEvent {
  const item: JsonObject = isObject(event as JsonValue) ? (event as JsonObject) : {};
  return {
    sequence,
    timestamp: typeof item.timestamp === "string" ? item.timestamp : "",
    type: typeof item.type === "string" ? item.type : "",
    agentId: typeof item.agent_id === "string" ? item.agent_id : null,
    payload: isObject(item.payload) ? item.payload : {},
    failure: isObject(item.error) ? (item.error as unknown as Failure) : null,
  };
}

/** Bookkeeping that is not shown while a run is watched; `troupe events` still shows it. */
const bookkeeping = new Set([
  "job_validated",
  "job_scheduled",
  "agent_started",
  "agent_message_received",
  "agent_completed",
  "executor_lease_requested",
  "executor_lease_acquired",
  "executor_lease_released",
  "sandbox_job_started",
  "aggregator_received",
  "message_unrouted",
  "metric",
  "beacon",
  "artifact_written",
]);

const RESULT_OBJECT = /^\s*\{\s*"(events|emit_messages|next_state|complete_step|complete_run|outputs)"\s*:/;

/** Whether this event has a line while the run is watched. */
export function isWorthReading(event: HistoryEvent): boolean {
  return (!bookkeeping.has(event.type) || hintOf(event) !== null) && !isResultObject(event);
}

/** Whether a log line is the object by which a command reports its result to the runtime. */
export function isResultObject({ type, payload }: HistoryEvent): boolean {
  return type === "log" && typeof payload.message === "string" && RESULT_OBJECT.test(payload.message);
}

/** Whether a person is asked something; one that is asked again was shown before. */
export function isQuestion({ type, payload }: HistoryEvent): boolean {
  return type === "human_input_requested" && payload.repeated !== true;
}

const AGENT_COLUMNS = 16;
const TEXT_CHARS_MAX = 2_000;

/** `12:03:04.120  agent             text`: one line, without a line break in it. */
export function eventLine(event: HistoryEvent, paint: Paint): string {
  const text = eventText(event).slice(0, TEXT_CHARS_MAX);
  const style = tone(event);
  return historyLine(
    event.timestamp,
    event.agentId ?? "job",
    style === null ? text : paint(style, text),
    paint,
  );
}

/** Something that happened at a time. @param who an agent, or what it happened to */
export function historyLine(timestamp: string, who: string, text: string, paint: Paint): string {
  return `${paint("dim", timeOfDay(timestamp))}  ${pad(cleanText(who), AGENT_COLUMNS)}  ${text}`;
}

function tone(event: HistoryEvent): Style | null {
  if (event.failure !== null || /_(failed|critical)$/.test(event.type)) return "red";
  if (/^(job_completed|service_passing)$/.test(event.type)) return "green";
  if (
    /(retry_scheduled|dead_lettered|interrupted|recovered|paused|cancelled|truncated|modified|input_requested)$/.test(
      event.type,
    )
  ) {
    return "yellow";
  }
  if (event.type !== "log") return "cyan";
  return event.payload.level === "error" ? "red" : event.payload.level === "warn" ? "yellow" : null;
}

function completedText({ partial, not_reached, missing_outputs }: HistoryEvent["payload"]): string {
  const missing = Array.isArray(missing_outputs)
    ? `: ${missing_outputs.map(cleanText).join(", ")} is missing`
    : "";
  const gaps = missing === "" ? ": some messages were dead-lettered" : missing;
  const unreached = Array.isArray(not_reached)
    ? `; no message reached ${not_reached.map(cleanText).join(", ")}`
    : "";
  return `completed${partial === true ? ` in part${gaps}` : ""}${unreached}`;
}

/** What happened, in a few words. */
export function eventText(event: HistoryEvent): string {
  const { payload, failure } = event;
  const words = (text: string) => (failure === null ? text : `${text}: ${failureWords(event)}`);
  switch (event.type) {
    case "log":
      return cleanText(payload.message ?? payload);
    case "progress":
      return progressText(payload);
    case "job_running":
      return "running";
    case "job_completed":
      return completedText(payload);
    case "job_failed":
      // The failure of a command has an event of its own already.
      return failure?.details?.agent_id === undefined ? words("failed") : "failed";
    case "agent_failed":
      return `failed permanently [${cleanText(failure?.code ?? "")}]`;
    case "executor_lease_requested":
      return hintOf(event) ?? otherText(event);
    case "sandbox_job_completed":
      return `command ended with exit code ${cleanText(payload.exit_code)}${took(payload)}`;
    case "sandbox_job_failed":
      return words("command failed");
    case "sandbox_job_retry_scheduled":
      return retryText(payload);
    case "artifact_written":
      return `wrote ${cleanText(payload.name)}${typeof payload.size === "number" ? ` (${bytes(payload.size)})` : ""}`;
    case "human_input_requested":
      return `${payload.repeated === true ? "asks again" : "asks"}: ${questionText(payload)}`;
    case "human_input_answered":
      return `${cleanText(payload.request_id)} was answered ${cleanText(payload.decision)} by ${cleanText(payload.principal)}`;
    case "human_input_timed_out":
      return `${cleanText(payload.request_id)} was not answered in time: ${cleanText(payload.decision)}`;
    case "message_retried":
      return "a dead-lettered message is sent again";
    case "message_dead_lettered":
      return `dead-lettered a message of type ${cleanText(payload.type)} (${cleanText(payload.reason)})`;
    default:
      return words(otherText(event));
  }
}

function otherText({ type, payload }: HistoryEvent): string {
  return `${cleanText(type.replaceAll("_", " "))}${payloadText(payload)}`;
}

/** Why no node can run an attempt; null when one can. */
function hintOf({ type, payload: { hint } }: HistoryEvent): string | null {
  return type === "executor_lease_requested" && typeof hint === "string" ? cleanText(hint) : null;
}

/** A worker's question, with the answers that are allowed. */
export function questionText({ prompt, request_id: id, allowed_decisions: allowed }: JsonObject): string {
  const question = cleanText(prompt ?? "") || cleanText(id);
  return Array.isArray(allowed) && allowed.length > 0
    ? `${question} (${allowed.map(cleanText).join(" / ")})`
    : question;
}

/** The command by which a person answers. @param id of the run, or of the runtime's job */
export function answerCommand(id: string, { request_id: requestId }: JsonObject): string {
  return `troupe answer ${shellWord(id)} ${shellWord(requestId)} DECISION`;
}

function failureWords(event: HistoryEvent): string {
  return event.failure === null ? "" : `${cleanText(event.failure.desc)} [${cleanText(event.failure.code)}]`;
}

/** `40 % 4/10 counting words`: as far as the worker gave it. */
export function progressText(payload: JsonObject): string {
  const parts: string[] = [];
  const percent = progressPercent(payload);
  if (percent !== null) parts.push(`${percent} %`);
  if (typeof payload.done === "number" && typeof payload.total === "number") {
    parts.push(`${payload.done}/${payload.total}`);
  }
  const label = payload.label ?? payload.message ?? payload.step;
  if (typeof label === "string") parts.push(cleanText(label));
  return parts.length > 0 ? parts.join(" ") : cleanText(payload);
}

/** 0 to 100, from `percent` or from `done` and `total`; null when the worker gave neither. */
export function progressPercent(payload: JsonObject): number | null {
  const { percent, done, total } = payload;
  const value =
    typeof percent === "number"
      ? percent
      : typeof done === "number" && typeof total === "number" && total > 0
        ? (100 * done) / total
        : Number.NaN;
  return Number.isFinite(value) ? Math.max(0, Math.min(100, Math.round(value))) : null;
}

function took(payload: JsonObject): string {
  return typeof payload.duration_ms === "number" ? ` after ${duration(payload.duration_ms)}` : "";
}

function retryText(payload: JsonObject): string {
  const failed =
    typeof payload.failed_attempt === "number" ? `attempt ${payload.failed_attempt} failed` : "failed";
  return typeof payload.delay_ms === "number"
    ? `${failed}; retrying in ${duration(payload.delay_ms)}`
    : failed;
}

function payloadText(payload: JsonObject): string {
  const keys = Object.keys(payload);
  if (keys.length === 0) return "";
  return ` ${keys.map((key) => `${cleanText(key)}=${cleanText(payload[key])}`).join(" ")}`;
}
