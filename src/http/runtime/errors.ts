// The runtime API's errors: every body is exactly {error: string} (spec "Endpoints", "Errors").

import type { FastifyError, FastifyInstance, FastifyReply, FastifyServerOptions } from "fastify";
import { BundleProblem, BundlesFull } from "../../bundles/problem.ts";
import { EngineUnavailable, JobUnwritable } from "../../engine/batch.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { EvidenceUnavailable } from "../../runs/store/run-store.ts";
import { machineShortage } from "../core/machine-limits.ts";
import { pathOf } from "../core/path-of.ts";
import { Problem } from "../core/problem.ts";
import { problemCodes } from "../core/problem-codes.ts";
import { sendBeforeRest } from "../core/read-rest.ts";

/** An answer other than success; the message is for the caller. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const invalidPayload = () => new ApiError(400, "Invalid or missing JSON payload");
export const jobNotFound = (jobId: string) => new ApiError(404, `Job ${jobId} was not found`);
/** What is wrong in many places of a body, in one line. */
export const problemsText = (problems: readonly { readonly path: string; readonly message: string }[]) =>
  problems.map(({ path, message }) => `${path} ${message}`).join("; ");
export const bundleNotFound = (bundleId: string) => new ApiError(404, `Bundle ${bundleId} not found`);

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

/** That of the catalogue; but this API answers 400 to every body that it does not take. */
const statusOf = ({ code }: DomainError) => (code === "validation_failed" ? 400 : problemCodes[code].status);

/** The status and the message that an error is answered with. */
export function describeError(given: unknown): { readonly status: number; readonly message: string } {
  const error = given as FastifyError;
  if (error instanceof ApiError) return { status: error.status, message: error.message };
  if (error instanceof DomainError) return { status: statusOf(error), message: error.message };
  if (error instanceof BundleProblem) return { status: 400, message: error.message };
  if (error instanceof BundlesFull) return { status: 507, message: error.message };
  if (
    error instanceof EngineUnavailable ||
    error instanceof JournalUnavailable ||
    error instanceof EvidenceUnavailable
  ) {
    return { status: 503, message: error.message };
  }
  if (error instanceof JobUnwritable) return { status: 500, message: error.message };
  const shortage = machineShortage(error);
  if (shortage !== null) return { status: 503, message: shortage };
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
    case "FST_REQ_FILE_TOO_LARGE":
      return {
        status: 413,
        message: "The body is too large; SVC_BODY_MAX_BYTES and SVC_BUNDLE_MAX_BYTES set the limits",
      };
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return { status: 415, message: "The Content-Type must be application/json" };
    default:
  }
  const status = error.statusCode ?? 500;
  return status >= 400 && status < 500
    ? { status, message: error.message }
    : { status: 500, message: "The request failed inside the runtime; its log has the cause" };
}
