// Answers other than success as errors of the protocol: a code by the HTTP status, and details with the same content as the
// problem body (google.rpc.ErrorInfo, BadRequest and RetryInfo); and errors as answers.

import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.ts";

const DOMAIN = "svc.runtime.v1";

const codes: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.FailedPrecondition,
  412: Code.Aborted,
  413: Code.InvalidArgument,
  414: Code.InvalidArgument,
  415: Code.InvalidArgument,
  422: Code.InvalidArgument,
  428: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  501: Code.Unimplemented,
  503: Code.Unavailable,
  504: Code.DeadlineExceeded,
  507: Code.ResourceExhausted,
};

/** What the runtime API's errors are called, which have no code of their own. */
const reasons: Readonly<Record<number, string>> = {
  400: "validation_failed",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  413: "payload_too_large",
  503: "unavailable",
};

type Details = Exclude<ConstructorParameters<typeof ConnectError>[3], undefined>;

const detail = <Schema extends DescMessage>(desc: Schema, value: MessageInitShape<Schema>): Details[number] =>
  ({ desc, value }) as Details[number];

/**
 * @param body a problem of the gateway, or `{error}` of the runtime API
 * @param retryAfter the header's value, in seconds
 */
export function callError(status: number, body: JsonValue, retryAfter?: string): ConnectError {
  const problem: JsonObject = isObject(body) ? body : {};
  // Connect answers nothing at all where a text ends in the middle of a character, as a quotation may.
  const text = (value: JsonValue | undefined) => (typeof value === "string" ? value.toWellFormed() : null);
  const reason = text(problem.code) ?? reasons[status] ?? "internal";
  const message = text(problem.detail) ?? text(problem.error) ?? `The request was answered with ${status}.`;
  const details = [detail(ErrorInfoSchema, { reason, domain: DOMAIN })];
  if (Array.isArray(problem.errors)) {
    const fieldViolations = problem.errors.filter(isObject).map((entry) => ({
      field: text(entry.path) ?? "",
      description: text(entry.message) ?? "",
      reason: text(entry.code) ?? "",
    }));
    details.push(detail(BadRequestSchema, { fieldViolations }));
  }
  if (retryAfter !== undefined && /^\d+$/.test(retryAfter))
    details.push(detail(RetryInfoSchema, { retryDelay: { seconds: BigInt(retryAfter) } }));
  return new ConnectError(message, codes[status] ?? Code.Internal, undefined, details);
}

/** The other way round: of the statuses that become the error's code, the most frequent one, and the problem body. */
export function answerOf(error: ConnectError): {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly problem: JsonObject;
} {
  const [info] = error.findDetails(ErrorInfoSchema);
  const [wrong] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const errors = (wrong?.fieldViolations ?? []).map(({ field, description, reason }) => ({
    path: field,
    code: reason,
    message: description,
  }));
  const seconds = retry?.retryDelay?.seconds;
  return {
    status: statuses.get(error.code) ?? 500,
    headers: seconds === undefined ? {} : { "retry-after": String(seconds) },
    problem: {
      code: info?.reason ?? "internal",
      detail: error.rawMessage,
      request_id: error.metadata.get("x-request-id") ?? "",
      errors,
    },
  };
}

/** A later one in the table takes the place of an earlier one, unless it is listed here. */
const statuses: ReadonlyMap<Code, number> = new Map([
  ...Object.entries(codes).map(([status, code]) => [code, Number(status)] as const),
  [Code.InvalidArgument, 422],
  [Code.ResourceExhausted, 429],
]);
