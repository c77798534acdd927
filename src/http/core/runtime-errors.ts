// The runtime API's errors: a status and a sentence. What is wrong with a request is a 400 that names it.

import type { FastifyError } from "fastify";
import { BundleProblem } from "../../bundles/problem.ts";
import { JobUnwritable } from "../../engine/batch.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { problemOf } from "./problem-answers.ts";

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

/** The status and the message that an error is answered with: those of its problem, with a few exceptions. */
export function describeError(given: unknown): { readonly status: number; readonly message: string } {
  const error = given as FastifyError;
  if (error instanceof ApiError) return { status: error.status, message: error.message };
  if (error instanceof BundleProblem) return { status: 400, message: error.message };
  if (error instanceof JobUnwritable) return { status: 500, message: error.message };
  const { code, status, message: short } = problemOf(error);
  // A manifest may have many mistakes, and this API names them in its one sentence.
  const message = error instanceof DomainError ? error.message : short;
  if (code === "validation_failed" || code === "resource_unsatisfiable") return { status: 400, message };
  if (code !== "internal") return { status, message };
  const { statusCode = 500 } = error;
  // Such as a client that leaves in the middle of its body.
  if (statusCode < 500) return { status: statusCode, message: error.message };
  return { status, message: "The request failed inside the runtime; its log has the cause" };
}
