// The runtime API's errors: every body is exactly {error: string} (spec "Endpoints", "Errors").

import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyServerOptions } from "fastify";
import { EngineUnavailable } from "../../engine/batch.ts";
import { answerBrokenRequest, badUrl } from "../core/outside-routes.ts";
import { pathOf } from "../core/path-of.ts";
import { Problem } from "../core/problem.ts";
import { sendBeforeRest } from "../core/read-rest.ts";
import { describeError } from "../core/runtime-errors.ts";

export function answerErrors(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) =>
    reply.code(404).send({ error: `There is no ${request.method} ${pathOf(request.url)}` }),
  );
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const { status, message } = describeError(error);
    if (status === 500) request.log.error({ err: error, url: request.url }, "a request failed");
    if (status === 503) {
      // The cause is known and affects every caller: one short line each, without a stack.
      request.log.warn({ url: request.url, reason: message }, "a request was refused");
      if (!(error instanceof EngineUnavailable) || error.mayRetry) reply.header("retry-after", "2");
    }
    if (error instanceof Problem) {
      for (const [name, value] of Object.entries(error.headers)) reply.header(name, value);
    }
    const body = Buffer.from(JSON.stringify({ error: message }));
    reply.code(status).type("application/json; charset=utf-8");
    if (status === 413 || status === 503) sendBeforeRest(reply, body);
    else reply.send(body);
  });
}

type OutsideRoutes = Required<Pick<FastifyServerOptions, "clientErrorHandler" | "frameworkErrors">>;

/** Answers for requests that reach no route: bytes that are no HTTP, and URLs that cannot be decoded. */
export const answerOutsideRoutes: OutsideRoutes = {
  clientErrorHandler: (error, socket) =>
    answerBrokenRequest(error, socket as Socket, ({ message }) => ({
      headers: { "Content-Type": "application/json; charset=utf-8" },
      body: JSON.stringify({ error: message }),
    })),
  frameworkErrors: (_error, request, reply) => {
    const { status, message } = badUrl(request.url);
    (reply as FastifyReply).code(status).send({ error: message });
  },
};
