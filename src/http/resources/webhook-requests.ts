// POST /hooks/{token}: a signed request of another program becomes a trigger event (src/schedules/webhooks.ts). The gateway alone
// has it, beside /api/v1, and asks for no API token.
//
// - Nothing of a body is looked at before its signature was checked. A path that is not there answers no sooner.
// - What was signed is known for 24 hours: sent again it gets the first answer, also with a new time and signature.
// - Answers have no payload: the sender has it.

import type { FastifyInstance, FastifyReply } from "fastify";
import { isoTime } from "../../engine/event.ts";
import type { ScheduleCounts, WebhookResult } from "../../observability/metrics/schedule-counts.ts";
import type { MatchedEvent } from "../../schedules/event-records.ts";
import { isOfEvents } from "../../schedules/event-step.ts";
import { signatureHeader } from "../../schedules/webhook-signatures.ts";
import type { Delivery, Webhooks } from "../../schedules/webhooks.ts";
import { jsonIn, refuseCoding } from "../core/json-body.ts";
import { Problem } from "../core/problem.ts";
import { addRoutes, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type IdempotencyParts, sendGiven } from "./idempotent.ts";
import {
  type EmitParts,
  EventMatchSchema,
  emit,
  firstMatch,
  PAYLOAD_BYTES_MAX,
  payloadText,
  tooLarge,
} from "./trigger-events.ts";

/** application/json, and what is JSON under a name of its own, such as application/cloudevents+json. */
const JSON_TYPE = /^application\/([\w.-]+\+)?json$/i;

const WebhookEventSchema = Type.Object(
  {
    event_id: Type.String({ examples: ["event_01k9z1v7m3e8q2x4c6t8b0n5dh"] }),
    type: Type.String("That of the schedule."),
    source: Type.String("webhook: and the schedule's id."),
    received_at: Type.Time("When it was received."),
    matched: Type.Array(EventMatchSchema, "The schedules that react to it."),
  },
  "The event that a request has become.",
);

/** By the names that clients see. */
export const schemas = { WebhookEvent: WebhookEventSchema };

export interface Parts extends EmitParts, IdempotencyParts {
  readonly webhooks: Webhooks;
  readonly scheduleCounts: Pick<ScheduleCounts, "webhooks">;
}

/** @param hooks a scope of its own */
export function gatewayRoutes(hooks: FastifyInstance, parts: Parts): void {
  const { webhooks, idempotency, scheduleCounts } = parts;
  hooks.addHook("onResponse", async (_request, reply) => {
    scheduleCounts.webhooks[resultOf(reply)]++;
  });
  hooks.removeAllContentTypeParsers();
  hooks.addContentTypeParser(
    "*",
    { parseAs: "buffer", bodyLimit: PAYLOAD_BYTES_MAX },
    (_request, bytes, done) => done(null, bytes),
  );
  hooks.setErrorHandler((error: { statusCode?: number }) => {
    throw error.statusCode === 413 ? tooLarge() : error;
  });

  addRoutes(hooks, "events", [
    post("/hooks/:token", {
      operationId: "receiveWebhook",
      summary: "Send a signed event",
      description:
        "For other programs: the JSON of 256 KiB at most becomes the payload of an event of the schedule's type. Signed as the schedule's webhook says, in place of an API token. The same again within 24 hours gets the first answer.",
      security: [],
      consumes: ["application/json"],
      answers: { 202: WebhookEventSchema },
      problems: ["invalid_signature", "malformed_json"],
      async handle(request, reply) {
        const body = (request.body as Buffer | undefined) ?? Buffer.alloc(0);
        const delivery = await webhooks.receive(request.params.token, { headers: request.headers, body });
        if (delivery === null) throw new Problem("not_found", "There is no webhook at this path.");
        const digest = digestOf(delivery);
        refuseCoding(request);
        if (!JSON_TYPE.test(request.mediaType ?? "")) throw notJson();
        const payloadJson = payloadText(await jsonIn(body));
        const event = { ...eventOf(delivery), payloadJson };
        const given = await emit(parts, event, {
          once: (prepare) =>
            idempotency.answer(
              {
                principal: "webhook",
                method: request.method,
                path: delivery.schedule.scheduleId,
                key: digest,
                content: null,
              },
              prepare,
            ),
          render: renderReceived,
        });
        return sendGiven(reply, given);
      },
    }),
  ]);
}

/** For the metrics. */
function resultOf(reply: FastifyReply): WebhookResult {
  switch (reply.statusCode) {
    case 202:
      return reply.hasHeader("idempotency-replayed") ? "repeated" : "accepted";
    case 401:
      return "invalid_signature";
    case 404:
      return "not_found";
    case 400:
    case 413:
    case 415:
      return "invalid_body";
    case 429:
      return "rate_limited";
    default:
      return "failed";
  }
}

/** @throws Problem unless the request was signed, a short time ago */
function digestOf({ verdict, scheme }: Delivery): string {
  if (verdict.kind === "signed") return verdict.digest;
  const challenge = `HMAC-SHA256 header="${signatureHeader[scheme]}"`;
  throw new Problem("invalid_signature", verdict.message, { headers: { "www-authenticate": challenge } });
}

function eventOf({ schedule }: Delivery) {
  if (!isOfEvents(schedule))
    throw new Error(`Schedule ${schedule.scheduleId} has a webhook and no event type.`);
  const { scheduleId, rule } = schedule;
  return { eventId: null, type: rule.type, source: `webhook:${scheduleId}`, depth: 0 };
}

const renderReceived = ({ eventId, type, source, receivedAtMs, matches }: MatchedEvent) =>
  JSON.stringify({
    event_id: eventId,
    type,
    source,
    received_at: isoTime(receivedAtMs),
    matched: matches.map(firstMatch),
  });

const notJson = () =>
  new Problem(
    "unsupported_media_type",
    "A webhook takes JSON alone. Have it sent with the Content-Type application/json (in GitHub: Content type).",
  );
