// How a route answers a POST under an Idempotency-Key.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { JsonValue } from "../../engine/json.ts";
import type { Effect, GivenAnswer } from "../shared/idempotency.ts";
import { pathOf } from "../shared/path-of.ts";
import type { GatewayServices } from "./services.ts";

/**
 * Sends the answer of an earlier request with the same key, or of this one's effect.
 *
 * @param prepare checks the request and returns its effect
 * @param content what is asked for, when that is not the JSON body
 */
export async function sendIdempotent(
  services: GatewayServices,
  request: FastifyRequest,
  reply: FastifyReply,
  prepare: () => Promise<Effect>,
  content?: JsonValue,
): Promise<FastifyReply> {
  return sendGiven(reply, await answerIdempotent(services, request, prepare, content));
}

/** The answer that `sendIdempotent` sends, for who has something to do between its commit and its sending. */
export function answerIdempotent(
  { idempotency }: GatewayServices,
  request: FastifyRequest,
  prepare: () => Promise<Effect>,
  content: JsonValue = (request.body ?? null) as JsonValue,
): Promise<GivenAnswer> {
  return idempotency.answer(
    {
      principal: request.principal,
      method: request.method,
      path: pathOf(request.url),
      key: request.headers["idempotency-key"] as string | undefined,
      content,
    },
    prepare,
  );
}

export function sendGiven(reply: FastifyReply, { answer, isReplay }: GivenAnswer): FastifyReply {
  reply.code(answer.status).headers(answer.headers).type("application/json; charset=utf-8");
  if (isReplay) reply.header("idempotency-replayed", "true");
  return reply.send(answer.body);
}
