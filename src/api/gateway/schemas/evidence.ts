// What a run did and made: events, logs, timeline, result, artifacts, dead letters, progress (CONTRACTS §3, §5, §6).

import { logLevels, logStreams } from "../../../runs/evidence/logs.ts";
import { timelineTypes } from "../../../runs/evidence/timeline.ts";
import { Type } from "../../shared/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { RunStatus } from "./runs.ts";

const oneOf = (values: readonly string[], options: { readonly description: string }) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    options,
  );

const RunId = Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] });
const AgentId = nullable(
  Type.String({ description: "Null for what concerns the whole run.", examples: ["writer"] }),
);
const AnyJson = (description: string) => Type.Unknown({ description });
const FailureSchema = nullable(JsonObjectSchema("svc.error.v1; null when nothing failed."));
const TraceId = Type.String({ description: "W3C trace id.", examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] });
const SpanId = Type.String({ description: "W3C span id.", examples: ["00f067aa0ba902b7"] });

// ---------------------------------------------------------------------------------------------- events

const EventSchema = answerObject(
  {
    id: Type.Integer({ description: "Its place in the run's history, from 1; what Last-Event-ID means." }),
    run_id: RunId,
    timestamp: Time("When it happened."),
    type: Type.String({ examples: ["agent_completed"] }),
    agent_id: AgentId,
    payload: AnyJson("What the type says about it; for engine events an object."),
    error: Type.Optional(JsonObjectSchema("svc.error.v1, in events that tell of a failure.")),
  },
  {
    description: "Something that happened in a run. It never changes, and none is missing between two ids.",
    examples: [
      {
        id: 12,
        run_id: "run_01k9z1v7m3e8q2x4c6t8b0n5dh",
        timestamp: "2026-11-21T09:30:00.000Z",
        type: "agent_completed",
        agent_id: "writer",
        payload: { processed_messages: 1 },
      },
    ],
  },
);

export const EventPageSchema = pageOf(
  EventSchema,
  "events, oldest first; with filters a page may be short, or empty, and still not be the last one",
);

const AgentFilter = Type.Optional(
  Type.String({ minLength: 1, maxLength: 200, description: "Of this agent only." }),
);

const eventFilters = {
  type: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9_.:,-]+$",
      maxLength: 2_000,
      description: "Events of these types only, separated by commas.",
      examples: ["agent_failed,job_failed"],
    }),
  ),
  agent_id: AgentFilter,
};

export const EventsQuery = strictObject({ ...eventFilters, ...pageQuery });

/** Of a job's resources that speak of one of its runs. */
const whichRun = {
  run_id: Type.Optional(Type.String({ description: "One of the job's runs; the latest one without it." })),
};

export const JobEventsQuery = strictObject({ ...whichRun, ...eventFilters, ...pageQuery });

export const LastEventIdHeader = Type.Object({
  "last-event-id": Type.Optional(
    Type.String({
      description: "The id of the last event that was applied: the stream goes on right behind it.",
      examples: ["41"],
    }),
  ),
});

export const StreamQuery = strictObject({
  channels: Type.Optional(
    Type.String({
      maxLength: 200,
      description:
        "Which views of the history to send, separated by commas: events, logs, timeline, human. All without it.",
      examples: ["logs,timeline"],
    }),
  ),
});

/** A response that is no JSON. */
export const streamOf = (description: string, example: string) => ({
  description,
  content: { "text/event-stream": { schema: Type.String({ examples: [example] }) } },
});

export const bytesOf = (description: string) => ({
  description,
  content: { "application/octet-stream": { schema: Type.String({ format: "binary" }) } },
});

// --------------------------------------------------------------------------------------------- evidence

export const RunResultSchema = answerObject(
  {
    run_id: RunId,
    status: RunStatus,
    result: nullable(JsonObjectSchema("Null until the run has completed, and when it failed.")),
    failure: FailureSchema,
    partial: Type.Optional(
      Type.Boolean({
        description: "true when the run completed although some messages failed (failure_policy continue).",
      }),
    ),
    finished_at: nullable(Time("Null while the run has not ended.")),
  },
  { description: "What a run came to; look at status first." },
);

const LogSchema = answerObject({
  ts: Time("When it was logged."),
  level: oneOf(logLevels, { description: "From the least to the most urgent." }),
  run_id: RunId,
  agent_id: AgentId,
  attempt: nullable(Type.Integer({ description: "Of the task, from 1." })),
  stream: oneOf(logStreams, {
    description: "worker: reported by the worker as an event. runtime: said by the runtime itself.",
  }),
  message: Type.String(),
  fields: JsonObjectSchema("What was logged beside the message.", { rows: 42 }),
  trace_id: TraceId,
  span_id: SpanId,
});

export const LogPageSchema = pageOf(
  LogSchema,
  "log records, oldest first; a page may be short, or empty, and still not be the last one",
);

export const LogsQuery = strictObject({
  level: Type.Optional(oneOf(logLevels, { description: "The least urgent level to show." })),
  agent_id: AgentFilter,
  stream: Type.Optional(oneOf(logStreams, { description: "Of this stream only." })),
  ...pageQuery,
});

const TimelineSchema = answerObject({
  schema_version: Type.Literal("svc.timeline.v1"),
  ts: Time("When it happened."),
  run_id: RunId,
  trace_id: TraceId,
  span_id: SpanId,
  parent_span_id: nullable(SpanId),
  type: oneOf(timelineTypes, { description: "What the record is about." }),
  phase: Type.String({ description: "What happened to it.", examples: ["started"] }),
  agent_id: AgentId,
  step_id: nullable(Type.String({ description: "The node of the graph, by its id." })),
  status: Type.String({ description: "What it is from then on.", examples: ["running"] }),
  duration_ms: nullable(Type.Integer({ description: "Of what has ended, where that is known." })),
  summary: Type.String({ description: "For people.", examples: ['Attempt 1 of "writer" completed'] }),
  links: Type.Record(Type.String(), Type.String(), { description: "Where to look next." }),
  details: JsonObjectSchema("The event's id, type and payload.", {
    event_id: 9,
    event_type: "agent_started",
  }),
});

export const TimelinePageSchema = pageOf(TimelineSchema, "timeline records, oldest first");

export const TimelineQuery = strictObject({ ...pageQuery });

// -------------------------------------------------------------------------------------------- artifacts

const artifact = {
  artifact_id: Type.String({ examples: ["art_01k9z1v7m3e8q2x4c6t8b0n5dj"] }),
  name: Type.String({
    description: "Below the worker's SVC_OUTPUT_DIR.",
    examples: ["report/summary.html"],
  }),
  kind: Type.Union([Type.Literal("artifact"), Type.Literal("output")], {
    description: "output: what the run was for.",
  }),
  size: Type.Integer({ description: "Bytes.", examples: [18_211] }),
  sha256: Type.String({ description: "64 hex digits; also the ETag of the bytes." }),
  content_type: Type.String({ examples: ["text/html; charset=utf-8"] }),
  url: Type.String({ description: "Where its bytes are; good as long as the run is." }),
  created_at: Time("When it was kept."),
  producer: nullable(Type.String({ description: "The agent that made it." })),
};

export const ArtifactPageSchema = pageOf(answerObject(artifact), "artifacts, oldest first");

export const OutputPageSchema = pageOf(
  answerObject({
    ...artifact,
    title: nullable(Type.String({ description: "For people.", examples: ["The weekly digest"] })),
    primary: Type.Boolean({ description: "What to show first." }),
  }),
  "outputs, primary ones first, then oldest first",
);

export const ArtifactsQuery = strictObject({ ...pageQuery });

export const ArtifactParams = Type.Object({
  run_id: Type.String({ description: "The run's id." }),
  artifact_id: Type.String({ description: "The artifact's id." }),
});

export const ArtifactHeaders = Type.Object({
  range: Type.Optional(
    Type.String({ description: "One range of bytes; of several, all is sent.", examples: ["bytes=0-1023"] }),
  ),
  "if-range": Type.Optional(Type.String({ description: "The ETag that the range is meant for." })),
  "if-none-match": Type.Optional(Type.String({ description: "ETags that the client has." })),
});

// ------------------------------------------------------------------------------------------ of the job

export const JobDeadLettersQuery = strictObject({ ...whichRun, ...pageQuery });

export const DeadLetterPageSchema = pageOf(
  answerObject({
    dead_letter_id: Type.String({ examples: ["dl_01k9z1v7m3e8q2x4c6t8b0n5dk"] }),
    run_id: RunId,
    agent_id: nullable(Type.String({ description: "Whom the message was for." })),
    message: JsonObjectSchema("The whole envelope: type, from, to, body and the rest.", {
      message_id: "msg_01k9z1v7m3e8q2x4c6t8b0n5dh_7",
      type: "research_result",
      from: "research",
      to: "writer",
      body: { topic: "bees" },
    }),
    reason: oneOf(["ttl_expired", "target_gone", "mailbox_full", "processing_failed"], {
      description: "Why nobody has it.",
    }),
    attempts: Type.Integer({ description: "How often its processing was tried." }),
    status: oneOf(["open", "retried"], { description: "Whether it was sent again." }),
    created_at: Time("When it was given up."),
  }),
  "messages that were not processed, newest first",
);

export const WorkflowProgressQuery = strictObject({ ...whichRun });

const StepState = oneOf(
  ["pending", "ready", "running", "waiting", "paused", "done", "failed", "cancelled", "skipped"],
  {
    description:
      "pending: nothing has come to it. ready: it has worked and may get more. waiting: for slots, a retry or something outside. skipped: the run ended before anything came to it.",
  },
);

const attempt = {
  state: StepState,
  attempt: nullable(Type.Integer({ description: "Of its task, from 1; null without one." })),
  started_at: nullable(Time("When the attempt began; null when none is running.")),
  failure: FailureSchema,
};

export const WorkflowProgressSchema = answerObject(
  {
    job_id: Type.String({ examples: ["job_01k9z1v7m3e8q2x4c6t8b0n5dg"] }),
    run_id: nullable(RunId),
    status: nullable(RunStatus),
    progress: answerObject({
      percent: Type.Integer({ description: "0 to 100.", examples: [40] }),
      done: Type.Integer({ description: "Agents that have done what there was for them so far." }),
      total: Type.Integer({ description: "Agents." }),
      label: Type.String({ description: "For people.", examples: ["2 of 5 agents done"] }),
    }),
    steps: Type.Array(
      answerObject({ step_id: Type.String(), name: Type.String(), agent_id: Type.String(), ...attempt }),
      { description: "The graph's nodes in its order; at most 1,000, those that something can be said of." },
    ),
    agents: Type.Array(
      answerObject({
        agent_id: Type.String(),
        agent_type: Type.String(),
        ...attempt,
        processed_messages: Type.Integer(),
        mailbox_depth: Type.Integer({ description: "Messages that wait for it." }),
        last_error: nullable(Type.String()),
      }),
      { description: "The same nodes, with what their agents did." },
    ),
    failure: FailureSchema,
    trace_id: nullable(TraceId),
    observability_summary: nullable(
      JsonObjectSchema("svc.observability_summary.v1; null where none was made."),
    ),
    eta_ms: nullable(Type.Integer({ description: "Until the end, about; null when nothing is known." })),
  },
  { description: "How far a run of the job has come." },
);
