// GET /runs/{run_id}/events (pages), /runs/{run_id}/events/stream and /runs/{run_id}/stream (live).

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { terminalEventTypes } from "../../engine/event.ts";
import { toHumanRequest } from "../../runs/evidence/human.ts";
import { eventType, isOfAgent } from "../../runs/evidence/line.ts";
import { toLog } from "../../runs/evidence/logs.ts";
import type { RunContext } from "../../runs/evidence/run-context.ts";
import { toTimeline } from "../../runs/evidence/timeline.ts";
import { conventionHeaders } from "../shared/conventions.ts";
import { invalidParameters, oneMistake } from "../shared/problem.ts";
import { frame } from "../shared/sse.ts";
import type { Static } from "../shared/type.ts";
import { type HistoryView, sendHistory } from "./history-page.ts";
import { renderEvent } from "./render-event.ts";
import { findRun, hasAll, liveHistoryOf } from "./run-source.ts";
import { nothing, responses } from "./schemas/common.ts";
import {
  EventPageSchema,
  EventsQuery,
  LastEventIdHeader,
  StreamQuery,
  streamOf,
} from "./schemas/evidence.ts";
import { RunIdParams } from "./schemas/runs.ts";
import type { GatewayServices } from "./services.ts";

type RunParams = { Params: Static<typeof RunIdParams> };

const RESUMING =
  "Each event's id is its place in the history. Keep the id of each event that you have applied and send it as Last-Event-ID: the stream goes on right behind it. It closes after the terminal event; a reader that already has that one gets 204.";

export function runEventRoutes(api: FastifyInstance, services: GatewayServices): void {
  api.get<RunParams & { Querystring: Static<typeof EventsQuery> }>(
    "/runs/:run_id/events",
    {
      schema: {
        operationId: "listRunEvents",
        tags: ["runs"],
        summary: "List the events of a run",
        description:
          "The whole history, oldest first. The last page of a run that goes on ends with what there is.",
        params: RunIdParams,
        querystring: EventsQuery,
        response: responses({ 200: EventPageSchema }, [
          "invalid_parameter",
          "invalid_page_token",
          "run_not_found",
        ]),
      },
    },
    (request, reply) =>
      sendHistory(services, request, reply, {
        chosen: () => findRun(services, request.params.run_id),
        view: eventsView(request.query),
      }),
  );

  api.get<RunParams>(
    "/runs/:run_id/events/stream",
    {
      schema: {
        operationId: "streamRunEvents",
        tags: ["runs"],
        summary: "Follow the events of a run",
        description: `Server-sent events from the first one on. ${RESUMING}`,
        params: RunIdParams,
        headers: LastEventIdHeader,
        response: streamResponses(
          'id: 12\nevent: agent_completed\ndata: {"id":12,"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","timestamp":"2026-11-21T09:30:00.000Z","type":"agent_completed","agent_id":"writer","payload":{}}\n\n',
        ),
      },
    },
    (request, reply) =>
      serve(services, request, reply, (run) => ({
        name: "events",
        render: (seq, line) => frame(seq, eventType(line), renderEvent(run.runId, seq, line)),
      })),
  );

  api.get<RunParams & { Querystring: Static<typeof StreamQuery> }>(
    "/runs/:run_id/stream",
    {
      schema: {
        operationId: "streamRun",
        tags: ["runs"],
        summary: "Follow a run in several views at once",
        description: `Server-sent events. Each is one event of the history with the views of it that were asked for, under their channels' names; events that none of these views shows are left out, but for the terminal one. ${RESUMING}`,
        params: RunIdParams,
        querystring: StreamQuery,
        headers: LastEventIdHeader,
        response: streamResponses(
          'id: 9\nevent: agent_started\ndata: {"id":9,"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","channels":{"timeline":{}}}\n\n',
        ),
      },
    },
    (request, reply) => {
      const channels = readChannels(request.query.channels);
      return serve(services, request, reply, (run) => ({
        name: channels.join(","),
        render: mergedView(run, channels),
      }));
    },
  );
}

function streamResponses(example: string) {
  return responses(
    {
      200: streamOf("Open until the terminal event has been sent.", example),
      204: nothing("The reader has the terminal event already, and need not come back."),
    },
    ["invalid_parameter", "run_not_found"],
  );
}

/** Events as they are, of some types and of one agent; nothing is parsed. */
export function eventsView(filter: {
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

// ---------------------------------------------------------------------------------------------- streams

interface StreamView {
  /** Readers of one run and one name share what is rendered. */
  readonly name: string;
  readonly render: (seq: number, line: string) => string | null;
}

async function serve(
  services: GatewayServices,
  request: FastifyRequest<RunParams>,
  reply: FastifyReply,
  viewOf: (run: RunContext) => StreamView,
): Promise<FastifyReply> {
  const run = await findRun(services, request.params.run_id);
  const afterSeq = readLastEventId(request.headers["last-event-id"], run.progress.eventCount);
  if (hasAll(run, afterSeq)) return reply.code(204).send();
  if (request.method === "HEAD") return reply.type("text/event-stream; charset=utf-8").send();
  const { runId, runtimeJobId, traceId } = run;
  const { name, render } = viewOf({ runId, traceId });
  reply.hijack();
  for (const [header, value] of Object.entries(conventionHeaders(reply))) reply.raw.setHeader(header, value);
  services.streams.serve(
    reply.raw,
    {
      key: `${runId} ${name}`,
      jobId: runtimeJobId,
      read: liveHistoryOf(services, run),
      exists: async () => (await services.records.run(runId)) !== null,
      render,
    },
    afterSeq,
  );
  return reply;
}

/** @returns the number of the last event that the reader has; 0 without one */
export function readLastEventId(header: string | string[] | undefined, eventCount: number): number {
  if (header === undefined || header === "") return 0;
  const seq = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (seq <= eventCount) return seq;
  const message = `must be the id of an event of this run: a whole number, at most ${eventCount}`;
  throw invalidParameters(oneMistake("last-event-id", "out_of_range", message));
}

export const channelNames = ["events", "logs", "timeline", "human"] as const;
export type ChannelName = (typeof channelNames)[number];

/** @returns the channels that are asked for, each once and always in the same order */
export function readChannels(given: string | undefined): readonly ChannelName[] {
  if (given === undefined) return channelNames;
  const asked = new Set(given.split(",").map((name) => name.trim()));
  const known = channelNames.filter((name) => asked.delete(name));
  if (asked.size === 0) return known;
  const message = `must be names of channels, separated by commas: ${channelNames.join(", ")}`;
  throw invalidParameters(oneMistake("channels", "unknown_channel", message));
}

/** One frame per event with all views of it, so that no reader is ever cut off between two of them. */
export function mergedView(run: RunContext, channels: readonly ChannelName[]): StreamView["render"] {
  const head = `"run_id":${JSON.stringify(run.runId)},"channels":{`;
  return (seq, line) => {
    const type = eventType(line);
    let views = "";
    for (const channel of channels) {
      const shown = viewIn(channel, run, seq, line);
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
      return asJson(toLog(run, line));
    case "timeline":
      return asJson(toTimeline(run, seq, line));
    case "human":
      return asJson(toHumanRequest(run, seq, line));
    default:
      return channel satisfies never;
  }
}

function asJson(record: object | null): string | null {
  return record === null ? null : JSON.stringify(record);
}
