// The timeline of a run, svc.timeline.v1 (CONTRACTS §5): the steps of the run, its agents, tasks, leases and attempts,
// as records of spans. Each follows from one event alone, so that a page and a live stream show the same.
//
// `type` says what the record is about, `phase` what happened to it, `status` what it is from then on. A step is a
// node of the graph; its id is the agent's.
//
// A task begins with waiting for slots, so that its first record comes before those of its leases and attempts: every
// parent has a record. The lease that it waits for is named there; it has records of its own from when it is acquired.

import { eventType } from "../../engine/event.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import {
  agentSpan,
  attemptSpan,
  leaseSpan,
  namedSpan,
  runSpan,
  type Span,
  taskSpan,
} from "../../engine/trace.ts";
import { attemptOf, fieldsOf, nameOf, type ParsedEvent, parseEvent, textField, wholeField } from "./line.ts";
import { artifactUrl, type RunContext } from "./run-context.ts";

export const timelineTypes = [
  "run",
  "agent",
  "task",
  "lease",
  "attempt",
  "artifact",
  "message",
  "human",
] as const;
export type TimelineType = (typeof timelineTypes)[number];

export interface TimelineRecord {
  readonly schema_version: "svc.timeline.v1";
  readonly ts: string;
  readonly run_id: string;
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly type: TimelineType;
  readonly phase: string;
  readonly agent_id: string | null;
  readonly step_id: string | null;
  readonly status: string;
  /** Of the phase that has ended, where its event tells: of a lease that was acquired, how long it was queued. */
  readonly duration_ms: number | null;
  readonly summary: string;
  readonly links: Readonly<Record<string, string>>;
  readonly details: JsonObject;
}

interface Shape {
  readonly type: TimelineType;
  readonly phase: string;
  /** What it is after the event; a function where the event tells. */
  readonly status: string | ((fields: JsonObject) => string);
  /** What happened, for people; `who` is the agent's name. */
  readonly words: (who: string, fields: JsonObject, event: ParsedEvent) => string;
}

const shapes: ReadonlyMap<string, Shape> = new Map(
  Object.entries({
    job_pending: run("accepted", "pending", "The run was accepted"),
    job_validated: run("validated", "pending", "The graph was found valid"),
    job_scheduled: run("scheduled", "pending", "The run was scheduled"),
    job_running: run("started", "running", "The run started"),
    job_paused: run("paused", "paused", "The run was paused"),
    job_resumed: run("resumed", "running", "The run was resumed"),
    job_recovered: of("run", "recovered", "running", (_who, fields) =>
      fields.handed_over === true
        ? "The run continues on another node"
        : "The run continues after a restart of the runtime",
    ),
    job_handed_over: run("handed_over", "running", "The run goes to another node"),
    job_completed: of("run", "completed", "completed", (_who, fields) => completedWords(fields)),
    job_failed: run("failed", "failed", "The run failed"),
    job_cancelled: run("cancelled", "cancelled", "The run was cancelled"),
    agent_started: of("agent", "started", "running", (who) => `${who} started`),
    agent_completed: of("agent", "completed", "completed", (who, fields) => {
      const count = wholeField(fields, "processed_messages") ?? 0;
      return `${who} completed after ${count} ${count === 1 ? "message" : "messages"}`;
    }),
    agent_failed: of("agent", "failed", "failed", (who, _fields, event) => withCause(`${who} failed`, event)),
    executor_lease_requested: of("task", "queued", "queued", (who, fields) => {
      const hint = textField(fields, "hint");
      return `A task of ${who} waits for ${slotsOf(fields)}${hint === null ? "" : `: ${hint}`}`;
    }),
    executor_lease_acquired: of(
      "lease",
      "running",
      "running",
      (who, fields) => `A task of ${who} has ${slotsOf(fields)}`,
    ),
    executor_lease_released: of(
      "lease",
      "released",
      leaseEnd,
      (who, fields) => `A task of ${who} gave ${slotsOf(fields)} back`,
    ),
    sandbox_job_retry_scheduled: of(
      "task",
      "retry_scheduled",
      "waiting",
      (who, fields) => `A task of ${who} is tried again in ${wholeField(fields, "delay_ms") ?? 0} ms`,
    ),
    sandbox_connection: of("task", "connected", "running", (who, fields) => {
      const bytes = (name: string) => wholeField(fields, name) ?? 0;
      return `${who} was connected to ${textField(fields, "host") ?? "a host"}: ${bytes("sent_bytes")} bytes sent, ${bytes("received_bytes")} received`;
    }),
    sandbox_network_denied: of(
      "task",
      "connection_refused",
      "running",
      (who, fields) =>
        `${who} was refused a connection: ${textField(fields, "reason") ?? "no reason was given"}`,
    ),
    llm_call: of("task", "asked", "running", (who, fields) => {
      const status = wholeField(fields, "status") ?? 0;
      const model = textField(fields, "model") ?? "a model";
      const given = isObject(fields.tokens) ? fields.tokens : {};
      const tokens = (wholeField(given, "input") ?? 0) + (wholeField(given, "output") ?? 0);
      return status === 200
        ? `${who} asked ${model}: ${tokens} tokens in ${wholeField(fields, "duration_ms") ?? 0} ms`
        : `${who} asked ${model} and got status ${status}`;
    }),
    sandbox_job_started: attempt("started", "running", "started"),
    sandbox_job_completed: attempt("completed", "completed", "completed"),
    sandbox_job_failed: attempt("failed", "failed", "failed"),
    executor_interrupted: attempt("interrupted", "interrupted", "was interrupted"),
    artifact_written: of(
      "artifact",
      "written",
      "completed",
      (who, fields) => `${who} left ${textField(fields, "name") ?? "a file"}`,
    ),
    message_dead_lettered: of(
      "message",
      "dead_lettered",
      "failed",
      (who, fields) =>
        `A message for ${who} became a dead letter: ${textField(fields, "reason") ?? "unknown"}`,
    ),
    message_retried: of("message", "retried", "retried", (who) => `A dead letter was sent to ${who} again`),
    human_input_requested: of(
      "human",
      "requested",
      "pending",
      (who, fields) => `${who} asks a person: ${firstWords(textField(fields, "prompt") ?? "")}`,
    ),
    human_input_answered: of(
      "human",
      "answered",
      "answered",
      (who, fields) => `A person answered ${who}: ${textField(fields, "decision") ?? "without a decision"}`,
    ),
    human_input_timed_out: of(
      "human",
      "timed_out",
      "timed_out",
      (who, fields) => `No person answered ${who} in time: ${textField(fields, "decision") ?? "timed_out"}`,
    ),
  }),
);

function run(phase: string, status: string, words: string): Shape {
  return of("run", phase, status, (_who, _fields, event) => withCause(words, event));
}

/** @param words what it did: "started" */
function attempt(phase: string, status: string, words: string): Shape {
  return of("attempt", phase, status, (who, fields, event) => {
    const text = `Attempt ${wholeField(fields, "attempt") ?? 1} of ${who} ${words}`;
    return phase === "failed" ? withCause(text, event) : text;
  });
}

function of(type: TimelineType, phase: string, status: Shape["status"], words: Shape["words"]): Shape {
  return { type, phase, status, words };
}

function completedWords({ not_reached: notReached, missing_outputs: missing }: JsonObject): string {
  const names = (value: JsonValue | undefined) =>
    Array.isArray(value) ? value.map((name) => JSON.stringify(name)).join(", ") : "";
  const unreached = names(notReached);
  const unwritten = names(missing);
  return (
    `The run completed${unreached === "" ? "" : `; no message reached ${unreached}`}` +
    (unwritten === "" ? "" : `; nobody wrote ${unwritten}`)
  );
}

function withCause(words: string, { failure }: ParsedEvent): string {
  return failure === null ? words : `${words}: ${failure.desc}`;
}

function slotsOf(fields: JsonObject): string {
  const slots = wholeField(fields, "slots") ?? 1;
  return `${slots} ${slots === 1 ? "slot" : "slots"} of pool ${textField(fields, "pool") ?? "default"}`;
}

const SUMMARY_WORDS_CHARS = 160;

function firstWords(text: string): string {
  const line = text.split("\n", 1)[0]!;
  return line.length <= SUMMARY_WORDS_CHARS ? line : `${line.slice(0, SUMMARY_WORDS_CHARS - 1)}…`;
}

/** Why a lease was given back is how the attempt under it ended. */
function leaseEnd(fields: JsonObject): string {
  const reason = textField(fields, "reason");
  return reason === "succeeded" ? "completed" : (reason ?? "completed");
}

/** Whether the timeline shows this event; cheap. */
export function isOnTimeline(type: string): boolean {
  return shapes.has(type);
}

/** @returns the event as a record of the timeline, or null when it is none */
export function toTimeline(context: RunContext, seq: number, line: string): TimelineRecord | null {
  const shape = shapes.get(eventType(line));
  if (shape === undefined) return null;
  const event = parseEvent(line);
  const fields = fieldsOf(event);
  const span = spanOf(context, shape.type, { event, fields, seq });
  const artifactId = textField(fields, "artifact_id");
  return {
    schema_version: "svc.timeline.v1",
    ts: event.timestamp,
    run_id: context.runId,
    trace_id: context.traceId,
    span_id: span.id,
    parent_span_id: span.parentId,
    type: shape.type,
    phase: shape.phase,
    agent_id: event.agentId,
    step_id: event.agentId,
    status: typeof shape.status === "string" ? shape.status : shape.status(fields),
    duration_ms:
      wholeField(fields, "duration_ms") ?? wholeField(fields, "wait_ms") ?? wholeField(fields, "held_ms"),
    summary: shape.words(nameOf(event), fields, event),
    links: artifactId === null ? {} : { artifact: artifactUrl(context.runId, artifactId) },
    details: { event_id: seq, event_type: event.type, ...fields, ...leaseAhead(context, event, fields) },
  };
}

/** The span of the lease that a task asks for. */
function leaseAhead({ runId }: RunContext, { type }: ParsedEvent, fields: JsonObject): JsonObject {
  const name = type === "executor_lease_requested" ? attemptOf(fields) : null;
  return name === null ? {} : { lease_span_id: leaseSpan(runId, name).id };
}

interface Told {
  readonly event: ParsedEvent;
  readonly fields: JsonObject;
  readonly seq: number;
}

function spanOf(run: RunContext, type: TimelineType, { event, fields, seq }: Told): Span {
  const { runId } = run;
  const { agentId } = event;
  if (type === "run") return { id: runSpan(runId).id, parentId: run.parentSpanId };
  if (type === "artifact")
    return namedSpan(runId, agentId, type, textField(fields, "artifact_id") ?? `${seq}`);
  if (type === "message") {
    return namedSpan(runId, agentId, "dead_letter", textField(fields, "dead_letter_id") ?? `${seq}`);
  }
  if (type === "human") {
    return namedSpan(runId, agentId, type, textField(fields, "request_id") ?? `req_${seq}`);
  }
  // What follows is always some agent's.
  const of = agentId ?? "";
  if (type === "agent") return agentSpan(runId, of);
  if (type === "task") return taskSpan(runId, of, wholeField(fields, "task") ?? 0);
  const name = attemptOf(fields);
  if (name === null) return agentSpan(runId, of);
  return type === "lease" ? leaseSpan(runId, name) : attemptSpan(runId, name);
}
