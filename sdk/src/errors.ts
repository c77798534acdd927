// The errors of the client: the server rejects a request, or cannot be reached.
//
// Besides these two, only an abort is thrown: the reason of the AbortSignal that the caller gave.

import { type JsonObject, type ProblemCode, problemCodes } from "./generated.ts";

const known: ReadonlySet<string> = new Set(problemCodes);

/** A mistake in a request. */
export interface ProblemEntry {
  /** JSON Pointer into the body, such as /resolved_configuration, or the name of a parameter or header. */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/**
 * The gateway understood the request and refused it.
 *
 * @example
 * try {
 *   await client.runs.get(runId);
 * } catch (error) {
 *   if (!(error instanceof TroupeProblem && error.code === "run_not_found")) throw error;
 * }
 */
export class TroupeProblem extends Error {
  override readonly name = "TroupeProblem";
  /** The HTTP status. */
  readonly status: number;
  /** What happened, for programs; "unknown" for a code that this client does not know: see `body.code`. */
  readonly code: ProblemCode | "unknown";
  readonly title: string;
  /** What happened and what to do next, for people. */
  readonly detail: string;
  /** The server's log names it; empty when the server did not say. */
  readonly requestId: string;
  /** Each mistake in the request; empty when it is not a validation error. */
  readonly errors: readonly ProblemEntry[];
  /** The current ETag, when the request named another one. */
  readonly etag: string | null;
  /** How long the server asks to wait before the next attempt. */
  readonly retryAfterMs: number | null;
  /** The problem as it was sent. */
  readonly body: JsonObject;

  constructor(response: Pick<Response, "status" | "headers">, body: JsonObject, nowMs: number) {
    const text = (name: string) => (typeof body[name] === "string" ? body[name] : "");
    super(text("detail") || text("title") || `HTTP ${response.status}`);
    this.status = response.status;
    this.code = known.has(text("code")) ? (text("code") as ProblemCode) : "unknown";
    this.title = text("title");
    this.detail = text("detail");
    this.requestId = text("request_id") || (response.headers.get("x-request-id") ?? "");
    this.errors = Array.isArray(body.errors) ? body.errors.filter(isEntry) : [];
    this.etag = response.headers.get("etag");
    this.retryAfterMs = readRetryAfter(response.headers.get("retry-after"), nowMs);
    this.body = body;
  }
}

/** The server cannot be reached, the connection was lost, or the answer is not from a Troupe server. */
export class TroupeUnreachable extends Error {
  override readonly name = "TroupeUnreachable";
  /** The HTTP status of an answer that is not the gateway's, such as a proxy's 502; null when there was none. */
  readonly status: number | null;
  /** How long that answer asks to wait before the next attempt. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    about: { readonly status?: number; readonly retryAfterMs?: number | null; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: about.cause });
    this.status = about.status ?? null;
    this.retryAfterMs = about.retryAfterMs ?? null;
  }
}

/** @returns milliseconds to wait from now, or null when the header is absent or invalid */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null || header.trim() === "") return null;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1_000;
  const atMs = Date.parse(header);
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEntry(value: unknown): value is ProblemEntry {
  return (
    isObject(value) && [value.path, value.code, value.message].every((member) => typeof member === "string")
  );
}

/** Why fetch failed, in few words: Node has it in the cause, browsers do not say. */
export function reasonOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown; message?: unknown } } | null)?.cause;
  if (cause?.code === "ECONNREFUSED") return "connection refused";
  for (const reason of [cause?.code, cause?.message])
    if (typeof reason === "string" && reason !== "") return reason;
  return error instanceof Error ? error.message : String(error);
}
