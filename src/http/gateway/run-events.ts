// GET /runs/{run_id}/events (pages), /runs/{run_id}/events/stream and /runs/{run_id}/stream (live).

import type { FastifyInstance } from "fastify";
import { eventType } from "../../engine/event.ts";
import { isOfAgent } from "../../runs/history/line.ts";
import { renderEvent } from "../../runs/history/public-event.ts";
import { invalidParameters, oneMistake } from "../core/problem.ts";
import { addRoutes, get } from "../core/route.ts";
import { type ChannelName, channelNames, mergedView, readChannels } from "../core/run-channels.ts";
import { frame } from "../core/sse.ts";
import { type HistoryView, sendHistory } from "./history-page.ts";
import { findRun } from "./run-source.ts";
import { RESUMING, serveStream, streamAnswers } from "./run-streams.ts";
import { EventPageSchema, EventsQuery, LastEventIdHeader, StreamQuery } from "./schemas/evidence.ts";
import type { GatewayServices } from "./services.ts";

export function runEventRoutes(api: FastifyInstance, services: GatewayServices): void {
  addRoutes(api, "runs", [
    get("/runs/:run_id/events", {
      operationId: "listRunEvents",
      summary: "List the events of a run",
      description:
        "The whole history, oldest first. The last page of a run that goes on ends with what there is.",
      query: EventsQuery,
      answers: { 200: EventPageSchema },
      handle: (request, reply) =>
        sendHistory(services, request, reply, {
          chosen: () => findRun(services, request.params.run_id),
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
      handle: (request, reply) =>
        serveStream(services, request, reply, (run) => ({
          name: "events",
          render: (seq, line) => frame(seq, eventType(line), renderEvent(run.runId, seq, line)),
        })),
    }),

    get("/runs/:run_id/stream", {
      operationId: "streamRun",
      summary: "Follow a run in several views at once",
      description: `Server-sent events. Each is one event of the history with the views of it that were asked for, under their channels' names; events that none of these views shows are left out, but for the terminal one. ${RESUMING}`,
      query: StreamQuery,
      headers: LastEventIdHeader,
      answers: streamAnswers(
        'id: 9\nevent: agent_started\ndata: {"id":9,"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","channels":{"timeline":{}}}\n\n',
      ),
      handle: (request, reply) => {
        const channels = channelsOf(request.query.channels);
        return serveStream(services, request, reply, (run) => ({
          name: `merged ${channels.join(",")}`,
          render: mergedView(run, channels),
        }));
      },
    }),
  ]);
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

/** @throws Problem `invalid_parameter` for a channel that is none */
export function channelsOf(given: string | undefined): readonly ChannelName[] {
  const channels = readChannels(given);
  if (channels !== null) return channels;
  const message = `must be names of channels, separated by commas: ${channelNames.join(", ")}`;
  throw invalidParameters(oneMistake("channels", "unknown_channel", message));
}
