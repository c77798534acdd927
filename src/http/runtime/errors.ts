// The runtime API's errors: every body is exactly {error: string} (spec "Endpoints", "Errors").

import type { FastifyError, FastifyInstance, FastifyReply, FastifyServerOptions } from "fastify";
import { EngineUnavailable } from "../../engine/batch.ts";
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
      // Its cause is known, and every caller meets it: one short line each, without a stack.
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
  clientErrorHandler: (error, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const { status, message } = describeConnectionError(error.code);
    const body = JSON.stringify({ error: message });
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  },
  frameworkErrors: (error, _request, reply) => {
    (reply as FastifyReply).code(error.statusCode ?? 400).send({ error: `Bad request: ${error.message}` });
  },
};

function describeConnectionError(code: string | undefined): { status: string; message: string } {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return {
        status: "431 Request Header Fields Too Large",
        message: "The request's headers are too large",
      };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: "408 Request Timeout", message: "The request did not arrive in time" };
    default:
      return { status: "400 Bad Request", message: "The request is not valid HTTP" };
  }
}
