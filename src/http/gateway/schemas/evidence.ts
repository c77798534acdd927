// What a run did and made: events, timeline, result, dead letters (CONTRACTS §3, §5, §6).

import { timelineTypes } from "../../../runs/history/timeline.ts";
import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { RunStatus } from "./runs.ts";

export const oneOf = (values: readonly string[], options: { readonly description: string }) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    options,
  );

export const RunId = Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] });
export const AgentId = nullable(
  Type.String({ description: "Null for what concerns the whole run.", examples: ["writer"] }),
);
const AnyJson = (description: string) => Type.Unknown({ description });
const FailureSchema = nullable(JsonObjectSchema("svc.error.v1; null when nothing failed."));
export const TraceId = Type.String({
  description: "W3C trace id.",
  examples: ["4bf92f3577b34da6a3ce929d0e0e4736"],
});
export const SpanId = Type.String({ description: "W3C span id.", examples: ["00f067aa0ba902b7"] });

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

export const AgentFilter = Type.Optional(
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
