// How a route answers a POST under an Idempotency-Key.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { JsonValue } from "../../engine/json.ts";
import type { Effect } from "../shared/idempotency.ts";
import type { GatewayServices } from "./services.ts";

/**
 * Sends the answer of an earlier request with the same key, or of this one's effect.
 *
 * @param prepare checks the request and returns its effect
 * @param content what is asked for, when that is not the JSON body
 */
export async function sendIdempotent(
  { idempotency }: GatewayServices,
  request: FastifyRequest,
  reply: FastifyReply,
  prepare: () => Promise<Effect>,
  content: JsonValue = (request.body ?? null) as JsonValue,
): Promise<FastifyReply> {
  const { url } = request;
  const queryAt = url.indexOf("?");
  const { answer, isReplay } = await idempotency.answer(
    {
      principal: request.principal,
      method: request.method,
      path: queryAt < 0 ? url : url.slice(0, queryAt),
      key: request.headers["idempotency-key"] as string | undefined,
      content,
    },
    prepare,
  );
  reply.code(answer.status).headers(answer.headers).type("application/json; charset=utf-8");
  if (isReplay) reply.header("idempotency-replayed", "true");
  return reply.send(answer.body);
}
