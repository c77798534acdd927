// How a route answers a POST under an Idempotency-Key.

import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { JsonValue } from "../../engine/json.ts";
import type { GatewayWrites } from "../../launch/records.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { Effect, GivenAnswer, IdempotentRequests } from "../core/idempotency.ts";
import { pathOf } from "../core/path-of.ts";

export interface IdempotencyParts {
  readonly idempotency: IdempotentRequests;
}

/**
 * Sends the answer of an earlier request with the same key, or of this one's effect.
 *
 * @param prepare checks the request and returns its effect
 * @param content what is asked for, when that is not the JSON body
 */
export async function sendIdempotent(
  parts: IdempotencyParts,
  request: FastifyRequest,
  reply: FastifyReply,
  prepare: () => Promise<Effect>,
  content?: JsonValue,
): Promise<FastifyReply> {
  return sendGiven(reply, await answerIdempotent(parts, request, prepare, content));
}

/** The answer that `sendIdempotent` sends, for callers that have work to do between its commit and sending it. */
export function answerIdempotent(
  { idempotency }: IdempotencyParts,
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

/** A request that starts something, such as a run. */
export interface Start<Started> {
  /** Checks the request. @returns its effect, in a transaction */
  prepare(): Promise<(writes: GatewayWrites) => Promise<Started>>;
  answer(started: Started): { readonly location: string; readonly body: string };
  /** Called after the commit. */
  started(started: Started): void;
}

/** Answers 202 under an Idempotency-Key. */
export async function sendStarted<Started>(
  parts: IdempotencyParts,
  request: FastifyRequest,
  reply: FastifyReply,
  start: Start<Started>,
): Promise<FastifyReply> {
  const { given, started } = await answerStarted(parts, request, start);
  if (started !== undefined) start.started(started);
  return sendGiven(reply, given);
}

/** What `sendStarted` sends; `started` is undefined for a replay. */
export async function answerStarted<Started>(
  parts: IdempotencyParts,
  request: FastifyRequest,
  start: Start<Started>,
): Promise<{ readonly given: GivenAnswer; readonly started: Started | undefined }> {
  const done: { started?: Started } = {};
  const prepare = async (): Promise<Effect> => {
    const bringAbout = await start.prepare();
    return async (writes) => {
      const started = await bringAbout(writes);
      done.started = started;
      const { location, body } = start.answer(started);
      return { status: 202, headers: { location }, body };
    };
  };
  const given = await answerIdempotent(parts, request, prepare).catch((error: unknown) => {
    // Another process may have taken the ports; a second attempt chooses others.
    if (!(error instanceof DomainError && error.code === "no_free_port")) throw error;
    return answerIdempotent(parts, request, prepare);
  });
  // The effect of a replay was undone: another program had answered first.
  return { given, started: given.isReplay ? undefined : done.started };
}

/** @param body in place of the answer's own */
export function sendGiven(
  reply: FastifyReply,
  { answer, isReplay }: GivenAnswer,
  body: string | Readable = answer.body,
): FastifyReply {
  reply.code(answer.status).headers(answer.headers).type("application/json; charset=utf-8");
  if (isReplay) reply.header("idempotency-replayed", "true");
  return reply.send(body);
}
