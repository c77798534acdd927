// Trigger events, in both APIs: POST and GET /events, and GET /events/{event_id}.

import { isoTime } from "../../engine/event.ts";
import type { JsonValue } from "../../engine/json.ts";
import type { GatewayWrites } from "../../launch/records.ts";
import { runEndTypes } from "../../launch/run-end-events.ts";
import { DomainError } from "../../lib/domain-error.ts";
import {
  type EventMatch,
  type EventRecords,
  type MatchedEvent,
  skips,
} from "../../schedules/event-records.ts";
import { bytesOf } from "../../schedules/event-step.ts";
import type { Scheduler } from "../../schedules/scheduler.ts";
import type { Emitted, NewEvent, TriggerEvents } from "../../schedules/trigger-events.ts";
import type { Effect, GivenAnswer } from "../core/idempotency.ts";
import { Problem } from "../core/problem.ts";
import { get, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import type { Api } from "./api.ts";
import { EVENT_TYPE_PATTERN } from "./event-rule-view.ts";
import { sendGiven } from "./idempotent.ts";
import { sendJson } from "./lists.ts";
import { idempotencyKeyHeader, pageOf, pageQuery, RunId } from "./schemas.ts";

export const PAYLOAD_BYTES_MAX = 256 * 1024;
/** Events that the runtime API lists without a limit. */
const RECENT = 100;

const eventType = Type.String("What has happened: lower case, digits, dots, underscores and hyphens.", {
  pattern: EVENT_TYPE_PATTERN,
  examples: ["file.arrived"],
});
const source = Type.String("Where it has happened.", {
  minLength: 1,
  maxLength: 200,
  examples: ["warehouse"],
});

const EmitEventBody = Type.Input(
  {
    type: eventType,
    payload: Type.Unknown("Any JSON of 256 KiB at most.", { examples: [{ path: "/srv/in/a.pdf" }] }),
    source,
    event_id: Type.String(
      "The same event_id again has no effect, and is given the first answer, for seven days. Without it the event gets one.",
      { pattern: "^[\\x21-\\x7e]{1,200}$", examples: ["upload-4711"] },
    ),
  },
  { required: ["type"], examples: [{ type: "file.arrived", payload: { path: "/srv/in/a.pdf" } }] },
);

export const EventMatchSchema = Type.Object(
  {
    schedule_id: Type.String(),
    run_id: Type.Optional(RunId),
    skipped: Type.Optional(
      Type.OneOf(
        skips,
        "Why no run was started at once. debounced, batched and queued: one may be started later, and run_id is its id then.",
      ),
    ),
    reason: Type.Optional(Type.String("Why there is no run, and will be none.")),
  },
  "What a schedule has made of an event.",
);

const TriggerEventSchema = Type.Object(
  {
    event_id: Type.String({ examples: ["event_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    type: Type.String(),
    source: Type.Nullable(Type.String()),
    payload: Type.Unknown("As it was sent; null without one."),
    received_at: Type.Time("When it was received."),
    matched: Type.Array(EventMatchSchema, "The schedules that react to it."),
  },
  "Something that has happened outside, or the end of a run.",
);

const TriggerEventPageSchema = pageOf(TriggerEventSchema, "events, newest first");

const EventsQuery = Type.Input({ type: eventType, source, ...pageQuery });

/** By the names that clients see. */
export const schemas = {
  TriggerEvent: TriggerEventSchema,
  TriggerEventPage: TriggerEventPageSchema,
  EventMatch: EventMatchSchema,
  EmitEvent: EmitEventBody,
};

export interface EmitParts {
  readonly triggerEvents: TriggerEvents<GatewayWrites>;
  readonly scheduler: Scheduler<GatewayWrites>;
}

export interface Parts extends EmitParts {
  readonly records: { readonly events: Pick<EventRecords, "events"> };
}

export function routes(api: Api, parts: Parts): void {
  const { records, triggerEvents } = parts;
  api.add("events", [
    post("/events", {
      operationId: "emitEvent",
      summary: "Tell of an event",
      description:
        "Schedules of kind event react to it. The event, and the runs that it starts, are on disk when it is answered.",
      headers: idempotencyKeyHeader,
      body: EmitEventBody,
      answers: { 202: TriggerEventSchema },
      async handle(request, reply) {
        const {
          type,
          payload = null,
          source = null,
          event_id: eventId = null,
        } = api.readBody(request, EmitEventBody);
        if (runEndTypes.includes(type)) throw reserved(type);
        const event = { eventId, type, source, payloadJson: payloadText(payload as JsonValue), depth: 0 };
        const given = await emit(parts, event, {
          once: (prepare) => api.effect(request, prepare),
          render: (event) => renderEvent(event, firstMatch),
        });
        return sendGiven(reply, given);
      },
    }),

    get("/events", {
      operationId: "listEvents",
      summary: "List trigger events",
      description: "The newest million of the last seven days.",
      query: EventsQuery,
      answers: { 200: TriggerEventPageSchema },
      handle: (request, reply) =>
        api.sendList(request, reply, {
          defaultLimit: RECENT,
          rows(limit, after) {
            const { type = null, source = null } = request.query;
            return records.events.events({
              type,
              source,
              limit,
              afterSeq: after === null ? null : Number(after[0]),
            });
          },
          positionOf: ({ seq }) => [seq],
          render: (event) => renderEvent(event, presentMatch),
        }),
    }),

    get("/events/:event_id", {
      operationId: "getEvent",
      summary: "Get a trigger event",
      description: "With what schedules have made of it by now.",
      answers: { 200: TriggerEventSchema },
      handle: async (request, reply) =>
        sendJson(reply, renderEvent(await triggerEvents.find(request.params.event_id), presentMatch)),
    }),
  ]);
}

/** @throws Problem for a payload that is too large */
export function payloadText(payload: JsonValue): string {
  const text = JSON.stringify(payload);
  if (bytesOf(text) > PAYLOAD_BYTES_MAX) throw tooLarge();
  return text;
}

/**
 * Writes an event and its answer; the runs that it starts begin behind that.
 *
 * @param how.once does the effect, or gives the answer of an earlier request that it is a repetition of
 */
export async function emit(
  { triggerEvents, scheduler }: EmitParts,
  event: NewEvent,
  how: {
    readonly once: (prepare: () => Promise<Effect>) => Promise<GivenAnswer>;
    readonly render: (event: MatchedEvent) => string;
  },
): Promise<GivenAnswer> {
  let emitted: Emitted | null = null;
  const given = await how.once(async () => {
    const insert = await triggerEvents.prepare(event);
    return async (writes) => {
      emitted = await insert(writes);
      const { eventId } = emitted.event;
      const headers = { location: `/api/v1/events/${encodeURIComponent(eventId)}` };
      return { status: 202, headers, body: how.render(emitted.event) };
    };
  });
  if (emitted !== null && !given.isReplay) scheduler.emitted(emitted);
  return given;
}

/** The payload is copied as it is stored. */
function renderEvent(event: MatchedEvent, match: (match: EventMatch) => object): string {
  const { eventId, type, source, payloadJson, receivedAtMs, matches } = event;
  const head = JSON.stringify({ event_id: eventId, type, source }).slice(0, -1);
  const tail = JSON.stringify({ received_at: isoTime(receivedAtMs), matched: matches.map(match) }).slice(1);
  return `${head},"payload":${payloadJson},${tail}`;
}

/** What the sender was answered. */
export const firstMatch = ({ scheduleId, skipped, runId, reason }: EventMatch) => ({
  schedule_id: scheduleId,
  ...(skipped === null ? { run_id: runId } : { skipped }),
  ...(skipped !== null && !isLater(skipped) && reason !== null && { reason }),
});

const isLater = (skipped: NonNullable<EventMatch["skipped"]>) =>
  skipped === "debounced" || skipped === "batched" || skipped === "queued";

/** What has become of it. */
const presentMatch = ({ scheduleId, skipped, runId, reason }: EventMatch) => ({
  schedule_id: scheduleId,
  ...(runId !== null && { run_id: runId }),
  ...(skipped !== null && { skipped }),
  ...(reason !== null && { reason }),
});

function reserved(type: string): DomainError {
  const message = `${type} is told by Troupe itself, when a run ends; use another type`;
  return new DomainError("validation_failed", `${message}.`, [{ path: "/type", code: "reserved", message }]);
}

export function tooLarge(): Problem {
  return new Problem(
    "payload_too_large",
    "The event's payload is larger than 256 KiB. Send a smaller one that says where the rest is.",
  );
}
