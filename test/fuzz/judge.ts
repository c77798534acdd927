// What every answer must be, whatever was asked.

import type { JsonObject } from "../../src/engine/json.ts";
import type { Draft } from "./draft.ts";
import type { Exchange, WireAnswer } from "./wire.ts";

/** What the server may answer to any operation, for reasons that are not the operation's. */
const always: ReadonlySet<number> = new Set([400, 403, 404, 405, 408, 413, 414, 415, 422, 431]);

/** What a problem body has; `errors` besides. */
const PROBLEM_KEYS = ["type", "title", "status", "code", "detail", "request_id"];
const LEAKS = /node_modules|\bat \S+ \(|file:\/\/|\.ts:\d+|SQLITE|Error: /;

/** @returns what is wrong with what came back; null when nothing is */
export function faultOf(draft: Draft, requestId: string, exchange: Exchange, home: string): string | null {
  const { answers, end } = exchange;
  if (end === "late") return "no answer, and no end of the connection";
  for (const answer of answers) {
    const fault = faultOfAnswer(draft, answer, home);
    if (fault !== null) return fault;
  }
  if (draft.answers === null || end === "left") return null;
  const [first] = answers;
  if (first === undefined) return "the connection was closed without an answer";
  if (answers.length > 1) return `${answers.length} answers to one request`;
  const isNamed = draft.headers.filter(([name]) => name.toLowerCase() === "x-request-id").length === 1;
  const given = draft.headers.find(([name]) => name === "X-Request-Id")?.[1];
  // A request that never became one, such as a head that is too large, has no id yet.
  if (
    isNamed &&
    given === requestId &&
    first.status !== 431 &&
    first.headers.get("x-request-id") !== requestId
  ) {
    return `the answer is to another request: ${first.status} ${first.body.toString("utf8").slice(0, 500)}`;
  }
  return null;
}

function faultOfAnswer(draft: Draft, { status, headers, body }: WireAnswer, home: string): string | null {
  if (!(status >= 200 && status < 600)) return `no status: ${status}`;
  if (status >= 500) return `status ${status}: ${body.toString("utf8").slice(0, 500)}`;
  if ((headers.get("x-request-id") ?? "") === "") return "no X-Request-Id";
  const isDocumented = draft.operation.statuses.has(status) || always.has(status);
  const isOwn = draft.method === draft.operation.method && draft.answers !== null;
  if (isOwn && !isDocumented && !isElsewhere(draft)) return `status ${status} is not documented`;
  if (status < 400) return null;
  const text = body.toString("utf8");
  // A path that was changed may be another protocol's, or no longer be.
  const isOpenAi =
    headers.get("content-type") === "application/json" && /^\/api\/v1\/llm\/v1/.test(draft.operation.path);
  if (isOpenAi) return draft.method === "HEAD" ? null : faultOfOpenAiError(text, home);
  if (headers.get("content-type") !== "application/problem+json")
    return `${status} as ${headers.get("content-type")}`;
  return draft.method === "HEAD" ? null : faultOfProblem(status, headers, text, home);
}

/** An error as clients of the OpenAI protocol read it. */
function faultOfOpenAiError(text: string, home: string): string | null {
  const { error } = parsed(text) ?? {};
  const { message, type, code } = (error ?? {}) as JsonObject;
  if (![message, type, code].every((one) => typeof one === "string" && one !== ""))
    return `the error has no message, type or code: ${text.slice(0, 300)}`;
  return LEAKS.test(String(message)) || text.includes(home) ? `the error tells too much: ${text}` : null;
}

function parsed(text: string): JsonObject | null {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return null;
  }
}

/** Whether the path was changed, so that another operation may have answered. */
const isElsewhere = ({ marks }: Draft) => marks.some((mark) => mark.startsWith("path"));

function faultOfProblem(
  status: number,
  headers: ReadonlyMap<string, string>,
  text: string,
  home: string,
): string | null {
  const problem = parsed(text);
  if (problem === null) return `the problem is no JSON: ${text.slice(0, 300)}`;
  const missing = PROBLEM_KEYS.filter((key) => problem[key] === undefined || problem[key] === "");
  if (missing.length > 0) return `the problem has no ${missing.join(", ")}: ${text.slice(0, 300)}`;
  if (problem.status !== status) return `the problem says ${String(problem.status)}, the answer ${status}`;
  if (problem.request_id !== headers.get("x-request-id")) return "the problem has another request id";
  // The server says nothing of itself that was not said to it.
  if (LEAKS.test(String(problem.detail)) || text.includes(home)) return `the problem tells too much: ${text}`;
  return null;
}
