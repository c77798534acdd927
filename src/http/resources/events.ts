// The history of a run. In the gateway: GET /runs/{run_id}/events (pages), …/events/stream and …/stream (live), and GET
// /jobs/{job_id}/events. In the runtime API: GET /jobs/{job_id}/events, …/events/stream and GET /runs/{run_id}/stream.
// The runtime API leaves out an `agent_id` that is null.

import type { FastifyInstance } from "fastify";
import { eventType } from "../../engine/event.ts";
import { terminalEventTypes } from "../../engine/event-types.ts";
import { toHumanView } from "../../runs/history/human.ts";
import { isOfAgent, renderEvent, withoutNullAgent } from "../../runs/history/line.ts";
import { toNumberedLog } from "../../runs/history/logs.ts";
import type { RunContext } from "../../runs/history/run-context.ts";
import { toTimeline } from "../../runs/history/timeline.ts";
import { addRoutes, get } from "../core/route.ts";
import { frame, type Render } from "../core/sse-chunk.ts";
import { Type } from "../core/type.ts";
import { type Api, runtimeParameterError } from "./api.ts";
import {
  findJob,
  findRuntimeJob,
  gatewayRuns,
  type JobParts,
  type RunParts,
  type RuntimeRunParts,
  runOfGateway,
  runOfJob,
  runOfRuntime,
} from "./find-run.ts";
import { type HistoryView, historyText, type PageParts, sendHistoryPage, sendText } from "./lists.ts";
import {
  LastEventIdHeader,
  RESUMING,
  type StreamParts,
  serveRunStream,
  streamAnswers,
} from "./run-streams.ts";
import { AgentFilter, AgentId, pageOf, pageQuery, RunId, WHICH_RUN, whichRun } from "./schemas.ts";

const EventSchema = Type.Object(
  {
    id: Type.Integer("Its place in the run's history, from 1; what Last-Event-ID means."),
    run_id: RunId,
    timestamp: Type.Time("When it happened."),
    type: Type.String({ examples: ["agent_completed"] }),
    agent_id: AgentId,
    payload: Type.Unknown("What the type says about it; for engine events an object."),
    error: Type.Optional(Type.JsonObject("svc.error.v1, in events that tell of a failure.")),
  },
  "Something that happened in a run. It never changes, and none is missing between two ids.",
  {
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

const EventPageSchema = pageOf(
  EventSchema,
  "events, oldest first; with filters a page may be short, or empty, and still not be the last one",
);

const eventFilters = {
  type: Type.String("Events of these types only, separated by commas.", {
    pattern: "^[A-Za-z0-9_.:,-]+$",
    maxLength: 2_000,
    examples: ["agent_failed,job_failed"],
  }),
  agent_id: AgentFilter,
};

const EventsQuery = Type.Input({ ...eventFilters, ...pageQuery });

const JobEventsQuery = Type.Input({ ...whichRun, ...eventFilters, ...pageQuery });

const StreamQuery = Type.Input({
  channels: Type.String(
    "Which views of the history to send, separated by commas: events, logs, timeline, human. All without it.",
    { maxLength: 200, examples: ["logs,timeline"] },
  ),
});

/** By the names that clients see. */
export const schemas = { RunEvent: EventSchema, RunEventPage: EventPageSchema };

export function routes(api: Api, parts: StreamParts): void {
  api.add("runs", [
    get("/runs/:run_id/stream", {
      operationId: "streamRun",
      summary: "Follow a run in several views at once",
      description: `Server-sent events. Each is one event of the history with the views of it that were asked for, under their channels' names; events that none of these views shows are left out, but for the terminal one. ${RESUMING}`,
      query: StreamQuery,
      headers: LastEventIdHeader,
      answers: streamAnswers(
        'id: 9\nevent: agent_started\ndata: {"id":9,"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","channels":{"timeline":{}}}\n\n',
      ),
      handle: async (request, reply) => {
        const channels = readChannels(request.query.channels);
        if (channels === null) {
          const message = `must be names of channels, separated by commas: ${channelNames.join(", ")}`;
          throw api.parameterError("channels", "unknown_channel", message);
        }
        const run = await api.findRun(request.params.run_id);
        return serveRunStream(parts, request, reply, run, {
          // Each API shows the events in a way of its own.
          view: () => ({
            name: `${api.name} ${channels.join(",")}`,
            render: mergedView(run, channels, api.shownLine),
          }),
          parameterError: api.parameterError,
        });
      },
    }),
  ]);
}

export function gatewayRoutes(
  app: FastifyInstance,
  parts: RunParts & JobParts & PageParts & StreamParts,
): void {
  const find = gatewayRuns(parts);

  addRoutes(app, "runs", [
    get("/runs/:run_id/events", {
      operationId: "listRunEvents",
      summary: "List the events of a run",
      description:
        "The whole history, oldest first. The last page of a run that goes on ends with what there is.",
      query: EventsQuery,
      answers: { 200: EventPageSchema },
      handle: (request, reply) =>
        sendHistoryPage(parts, request, reply, {
          chosen: () => find(request.params.run_id),
          find,
          view: eventsView(request.query),
        }),
    }),
    get("/runs/:run_id/events/stream", {
      operationId: "streamRunEvents",
      summary: "Follow the events of a run",
      description: `Server-sent events from the first one on. ${RESUMING}`,
      headers: LastEventIdHeader,
      answers: streamAnswers(
        'id: 12\nevent: agent_completed\ndata: {"id":12,"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","timestamp":"2026-11-21T09:30:00.000Z","type":"agent_completed","agent_id":"writer","payload":{}}\n\n',
      ),
      handle: async (request, reply) => {
        const run = await find(request.params.run_id);
        return serveRunStream(parts, request, reply, run, {
          view: () => ({
            name: "events",
            render: (seq, line) => frame(seq, eventType(line), renderEvent(run.runId, seq, line)),
          }),
        });
      },
    }),
  ]);

  addRoutes(app, "jobs", [
    get("/jobs/:job_id/events", {
      operationId: "listJobEvents",
      summary: "List the events of a job's run",
      description: `Oldest first. ${WHICH_RUN} Later pages stay with the run of the first one.`,
      query: JobEventsQuery,
      answers: { 200: EventPageSchema },
      problems: ["run_not_found"],
      handle: async (request, reply) => {
        const { jobId } = await findJob(parts, request.params.job_id);
        return sendHistoryPage(parts, request, reply, {
          async chosen() {
            const run = await runOfJob(parts, jobId, request.query.run_id);
            return run === null ? null : runOfGateway(parts, run);
          },
          find,
          view: eventsView(request.query),
        });
      },
    }),
  ]);
}

/** Events as they are, of some types and of one agent; nothing is parsed. */
function eventsView(filter: {
  readonly type?: string | undefined;
  readonly agent_id?: string | undefined;
}): HistoryView {
  const types = filter.type === undefined ? null : new Set(filter.type.split(","));
  const agentJson = filter.agent_id === undefined ? null : JSON.stringify(filter.agent_id);
  return ({ runId }, seq, line) => {
    if (types !== null && !types.has(eventType(line))) return null;
    if (agentJson !== null && !isOfAgent(line, agentJson)) return null;
    return renderEvent(runId, seq, line);
  };
}

interface JobRequest {
  Params: { job_id: string };
}

export function runtimeRoutes(app: FastifyInstance, parts: RuntimeRunParts & StreamParts): void {
  const findRunOfJob = async (jobId: string) => runOfRuntime(parts, await findRuntimeJob(parts, jobId));

  app.get<JobRequest>("/jobs/:job_id/events", async ({ params }, reply) => {
    const run = await findRunOfJob(params.job_id);
    return sendText(
      reply,
      historyText(run, (_seq, line) => withoutNullAgent(line)),
    );
  });

  app.get<JobRequest>("/jobs/:job_id/events/stream", async (request, reply) => {
    const run = await findRunOfJob(request.params.job_id);
    return serveRunStream(parts, request, reply, run, {
      view: () => ({
        name: "of the runtime",
        render: (seq, line) => frame(seq, eventType(line), withoutNullAgent(line)),
      }),
      parameterError: runtimeParameterError,
    });
  });
}

const channelNames = ["events", "logs", "timeline", "human"] as const;
type ChannelName = (typeof channelNames)[number];

/**
 * @param given names separated by commas; all channels without it
 * @returns the channels that are asked for, each once and always in the same order; null when one is none
 */
function readChannels(given: string | undefined): readonly ChannelName[] | null {
  if (given === undefined) return channelNames;
  const asked = new Set(given.split(",").map((name) => name.trim()));
  const known = channelNames.filter((name) => asked.delete(name));
  return asked.size === 0 ? known : null;
}

/**
 * One frame per event with all views of it, so that no reader is ever cut off between two of them.
 *
 * @param shownLine what the API shows of an event's line in the channel `events`
 */
function mergedView(
  run: RunContext,
  channels: readonly ChannelName[],
  shownLine: (line: string) => string,
): Render {
  const head = `"run_id":${JSON.stringify(run.runId)},"channels":{`;
  return (seq, line) => {
    const type = eventType(line);
    let views = "";
    for (const channel of channels) {
      const shown = viewIn(channel, run, seq, channel === "events" ? shownLine(line) : line);
      if (shown !== null) views += `${views === "" ? "" : ","}"${channel}":${shown}`;
    }
    if (views === "" && !terminalEventTypes.has(type)) return null;
    return frame(seq, type, `{"id":${seq},${head}${views}}}`);
  };
}

function viewIn(channel: ChannelName, run: RunContext, seq: number, line: string): string | null {
  switch (channel) {
    case "events":
      return renderEvent(run.runId, seq, line);
    case "logs":
      return asJson(toNumberedLog(run, seq, line));
    case "timeline":
      return asJson(toTimeline(run, seq, line));
    case "human":
      return asJson(toHumanView(run, seq, line));
    default:
      return channel satisfies never;
  }
}

function asJson(record: object | null): string | null {
  return record === null ? null : JSON.stringify(record);
}
