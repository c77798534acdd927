// Turns errors into problems, and problems into answers.
//
// - Everything that a route, a hook or the framework throws is answered as application/problem+json.
// - An unexpected error is `internal`: logged with its stack and the request id, answered without the stack.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { BundleProblem } from "../../bundles/problem.ts";
import type { DomainError } from "../../lib/domain-error.ts";
import { domainErrorOf } from "./domain-errors.ts";
import { openAiText, speaksOpenAi } from "./openai-answers.ts";
import { loggedPath, pathOf } from "./path-of.ts";
import { PROBLEM_TYPE, Problem, problemText, shown } from "./problem.ts";
import { sendBeforeRest } from "./read-rest.ts";
import { RouteMethods } from "./route-methods.ts";

/** To be called before the routes are registered: it watches them, to tell 405 from 404. */
export function answerProblems(app: FastifyInstance): void {
  const routes = new RouteMethods(app);
  app.setNotFoundHandler((request, reply) => sendProblem(request, reply, nothingThere(request, routes)));
  app.setErrorHandler((error, request, reply) => {
    // A request without a route gets 404 or 405, also when its content type or body is wrong.
    const isStray = request.is404 && !(error instanceof Problem);
    const problem = isStray ? nothingThere(request, routes) : ofRequest(request, error);
    note(request, problem, error);
    // Too large, or no room on the disk: much of the body may still be on its way.
    const isCutOff = problem.status === 413 || problem.status === 503;
    sendProblem(request, reply, problem, isCutOff ? sendBeforeRest : undefined);
  });
}

/** A client that disconnects in the middle of its body is no failure of the server. */
function ofRequest({ raw }: FastifyRequest, error: unknown): Problem {
  if (raw.errored === null || raw.errored !== error) return problemOf(error);
  return new Problem("malformed_request", "The request broke off before the end of its body. Send it again.");
}

/** Headers that describe the intended answer, not the problem. */
const representation = ["etag", "location", "content-disposition", "content-range", "content-encoding"];

/** Sends a problem; `reply` must not have been sent. @param send how the body goes out */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
  send = (answer: FastifyReply, body: Buffer): void => void answer.send(body),
): void {
  for (const name of representation) reply.removeHeader(name);
  for (const [name, value] of Object.entries(problem.headers)) reply.header(name, value);
  // Bytes, because text would get a charset, which this media type does not have.
  const isOpenAi = speaksOpenAi(request.url);
  const body = Buffer.from(isOpenAi ? openAiText(problem) : problemText(problem, request.id));
  send(reply.code(problem.status).header("content-type", isOpenAi ? "application/json" : PROBLEM_TYPE), body);
}

function note(request: FastifyRequest, problem: Problem, error: unknown): void {
  const context = { request_id: request.id, method: request.method, path: loggedPath(request.url) };
  if (problem.status === 500) request.log.error({ ...context, err: error }, "a request failed");
  else if (problem.status === 503) {
    // The cause is known and affects every caller: one short line each, without a stack.
    request.log.warn({ ...context, reason: problem.message }, "a request was refused");
  }
}

function nothingThere(request: FastifyRequest, routes: RouteMethods): Problem {
  const path = pathOf(request.url);
  const methods = routes.of(decoded(path));
  const what = `${request.method} ${shown(path).slice(1, -1)}`;
  if (methods.length === 0) {
    return new Problem("not_found", `There is no ${what}. GET /openapi.json lists the routes.`);
  }
  const allow = methods.join(", ");
  return new Problem("method_not_allowed", `There is no ${what}; this path takes ${allow}.`, {
    headers: { allow },
  });
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // The router decodes only what a route would get, and no route is like this.
    return path;
  }
}

/** The problem of an error, whatever was thrown. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof BundleProblem) return ofBundle(error);
  const known = domainErrorOf(error);
  if (known !== null) return ofDomain(known);
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  // The framework's own errors have a code and a status; the messages of others are not shown to callers.
  if (typeof code === "string" && code.startsWith("FST_") && statusCode !== undefined && statusCode < 500) {
    return ofFramework(statusCode, message ?? "");
  }
  return new Problem(
    "internal",
    "The request failed inside the server. Its log has the cause under this request_id; trying again may help.",
  );
}

function ofDomain({ code, message, errors }: DomainError): Problem {
  return new Problem(code, message, {
    errors,
    ...(code === "unavailable" && { headers: { "retry-after": "2" } }),
  });
}

function ofBundle(error: BundleProblem): Problem {
  const count = error.problems.length;
  const first = error.problems[0]?.message ?? "it cannot be read";
  const rest = count > 1 ? ` There are ${count} problems; errors names each.` : "";
  return new Problem("validation_failed", `The bundle cannot be taken: ${first}.${rest}`, {
    // An error of the whole upload is reported at the form field.
    errors: error.problems.map((one) => (one.path === "" ? { ...one, path: "/bundle" } : one)),
  });
}

function ofFramework(status: number, message: string): Problem {
  switch (status) {
    case 413:
      return new Problem(
        "payload_too_large",
        "The body is larger than the server takes. SVC_BODY_MAX_BYTES and SVC_BUNDLE_MAX_BYTES set the limits.",
      );
    case 406:
    case 415:
      return new Problem(
        "unsupported_media_type",
        "The Content-Type must be application/json, or multipart/form-data for an upload.",
      );
    default:
      return new Problem("malformed_request", `The request cannot be read: ${message}.`);
  }
}
