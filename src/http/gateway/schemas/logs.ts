// The log of a run: its records, and what chooses them (CONTRACTS §6 "Evidence").

import { logLevels } from "../../../engine/event-types.ts";
import { logTextCharsMax } from "../../../runs/history/log-filter.ts";
import { logStreams } from "../../../runs/history/logs.ts";
import { logOrders } from "../../../runs/log-page.ts";
import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { AgentFilter, AgentId, oneOf, RunId, SpanId, TraceId } from "./evidence.ts";

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

export const LogPageSchema = answerObject(
  {
    ...pageOf(LogSchema, "log records").properties,
    last_event_id: Type.Integer({
      description:
        "The event up to which this page and those before it have seen the log. With order=desc, and on the last page, a stream that is opened with it as Last-Event-ID goes on without a gap and without repetition.",
      examples: [412],
    }),
  },
  {
    description:
      "A page of log records, in the order asked for; it may be short, or empty, and still not be the last one.",
  },
);

const chosen = {
  level: Type.Optional(oneOf(logLevels, { description: "The least urgent level to show." })),
  agent_id: AgentFilter,
  stream: Type.Optional(oneOf(logStreams, { description: "Of this stream only." })),
  text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: logTextCharsMax,
      description: "Records whose message has this text in it; upper and lower case are the same.",
      examples: ["connection refused"],
    }),
  ),
  since: Type.Optional(Time("Records of this time or later.")),
  until: Type.Optional(Time("Records before this time.")),
};

export const LogsQuery = strictObject({
  ...chosen,
  order: Type.Optional(
    oneOf(logOrders, {
      description: "asc, the default: oldest first. desc: newest first, and later pages go on to older ones.",
    }),
  ),
  ...pageQuery,
});

export const LogStreamQuery = strictObject(chosen);
