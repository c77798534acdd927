// The runtime API's errors: a status and a sentence. What is wrong with a request is a 400 that names it.

import type { FastifyError } from "fastify";
import { BundleProblem } from "../../bundles/problem.ts";
import { JobUnwritable } from "../../engine/batch.ts";
import type { DomainError } from "../../lib/domain-error.ts";
import { domainErrorOf } from "./domain-errors.ts";
import { Problem } from "./problem.ts";
import { problemCodes } from "./problem-codes.ts";

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
export const runNotFound = (runId: string) => new ApiError(404, `Run ${runId} was not found`);
/** What is wrong in many places of a body, in one line. */
export const problemsText = (problems: readonly { readonly path: string; readonly message: string }[]) =>
  problems.map(({ path, message }) => `${path} ${message}`).join("; ");

/** That of the catalogue; but this API answers 400 to every body that it does not take. */
const statusOf = ({ code }: DomainError) => (code === "validation_failed" ? 400 : problemCodes[code].status);

/** The status and the message that an error is answered with. */
export function describeError(given: unknown): { readonly status: number; readonly message: string } {
  const error = given as FastifyError;
  if (error instanceof ApiError || error instanceof Problem) {
    return { status: error.status, message: error.message };
  }
  if (error instanceof BundleProblem) return { status: 400, message: error.message };
  if (error instanceof JobUnwritable) return { status: 500, message: error.message };
  const known = domainErrorOf(error);
  if (known !== null) return { status: statusOf(known), message: known.message };
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
