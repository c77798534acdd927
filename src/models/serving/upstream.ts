// Requests to a server of the OpenAI protocol: our own model process, an Ollama or a hosted endpoint.
//
// - What fails before the first byte of an answer is tried again, as often as the server's answer allows: a connection that
//   could not be made or was cut, 408, 409, 429 and 5xx. Its Retry-After is kept to, and a longer one than RETRY_WAIT_MAX_MS
//   is passed on.
// - After the first byte nothing is repeated.
// - Redirects are not followed, and no header of a client is passed on: a key goes to its endpoint alone.

import type { IncomingMessage } from "node:http";
import type { Clock } from "../../engine/ports.ts";
import { Agent, httpsOf, request } from "../../lib/node-http.ts";
import { LlmError } from "./llm-error.ts";

const ATTEMPTS = 3;
const RETRY_FIRST_MS = 500;
const RETRY_WAIT_MAX_MS = 20_000;
const ERROR_BYTES_MAX = 64 * 1024;
const PROBE_MS = 10_000;
const MESSAGE_CHARS_MAX = 1_000;
/** No byte for so long: shorter than the gateway's own limit for a connection without traffic (300 s). */
export const SILENCE_MS = 280_000;

/** Where a model answers. */
export interface Target {
  readonly baseUrl: string;
  readonly apiKey: string | null;
  /** The model's name there. */
  readonly model: string;
}

export interface UpstreamParts {
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly fraction: () => number;
  /** No byte of an answer for so long ends the request; SILENCE_MS when absent. */
  readonly silenceMs?: number;
}

interface Asked {
  readonly modelId: string;
  readonly path: string;
  readonly signal: AbortSignal;
}

export interface Call extends Asked {
  readonly body: (target: Target) => Buffer;
  /** Where it is sent, asked again for each attempt: a process may have been replaced. */
  readonly target: () => Promise<Target>;
}

/** An answer that has begun: its first bytes are there. */
export interface Begun {
  readonly target: Target;
  readonly headers: IncomingMessage["headers"];
  readonly first: Buffer;
  /** What comes after the first. */
  readonly rest: AsyncIterator<Buffer>;
  /** Gives up what may still come. */
  cancel(): void;
}

type Attempt =
  | { readonly kind: "begun"; readonly begun: Begun }
  | { readonly kind: "failed"; readonly error: LlmError; readonly retryMs: number | null };

/** Connections are kept for the next request. */
const plain = new Agent({ keepAlive: true, maxFreeSockets: 64 });
let secure: InstanceType<typeof Agent> | null = null;

/** Sends a request. @throws LlmError when no attempt has got an answer; the signal's reason */
export async function callUpstream(parts: UpstreamParts, call: Call): Promise<Begun> {
  for (let attempt = 1; ; attempt++) {
    call.signal.throwIfAborted();
    const tried = await attemptOnce(parts, call, await call.target());
    if (tried.kind === "begun") return tried.begun;
    const backoffMs = RETRY_FIRST_MS * 2 ** (attempt - 1) * (1 + parts.fraction());
    const waitMs = tried.retryMs === null ? null : Math.max(tried.retryMs, backoffMs);
    if (waitMs === null || attempt === ATTEMPTS || waitMs > RETRY_WAIT_MAX_MS) throw tried.error;
    await pause(parts.clock, waitMs, call.signal);
  }
}

/** Whether a server is there and takes the key: by what it lists. @throws LlmError; the signal's reason */
export async function probe(modelId: string, target: Target, signal: AbortSignal): Promise<void> {
  const call = { modelId, path: "models", signal };
  const answer = await send({ silenceMs: PROBE_MS }, call, target, null).catch((error: unknown) => {
    signal.throwIfAborted();
    throw notReached(call, target, error).error;
  });
  answer.destroy();
  const { statusCode: status = 0, headers } = answer;
  if (status === 401 || status === 403) throw refused(call, target, { status, headers, text: "" }).error;
}

async function attemptOnce(parts: UpstreamParts, call: Call, target: Target): Promise<Attempt> {
  let answer: IncomingMessage;
  try {
    answer = await send(parts, call, target, call.body(target));
  } catch (error) {
    call.signal.throwIfAborted();
    return { kind: "failed", ...notReached(call, target, error) };
  }
  const { statusCode: status = 0, headers } = answer;
  const bytes = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    if (status !== 200) {
      const text = await textOf(bytes);
      answer.destroy();
      return { kind: "failed", ...refused(call, target, { status, headers, text }) };
    }
    const first = await bytes.next();
    const begun = first.done === true ? Buffer.alloc(0) : first.value;
    return {
      kind: "begun",
      begun: { target, headers, first: begun, rest: bytes, cancel: () => answer.destroy() },
    };
  } catch (error) {
    answer.destroy();
    call.signal.throwIfAborted();
    return { kind: "failed", ...notReached(call, target, error) };
  }
}

class Silent extends Error {}

/** @param body null: nothing is sent, and something is read */
function send(
  { silenceMs = SILENCE_MS }: Pick<UpstreamParts, "silenceMs">,
  call: Asked,
  target: Target,
  body: Buffer | null,
): Promise<IncomingMessage> {
  const url = new URL(`${target.baseUrl}/${call.path}`);
  const isSecure = url.protocol === "https:";
  return new Promise((resolve, reject) => {
    secure ??= isSecure ? new (httpsOf().Agent)({ keepAlive: true, maxFreeSockets: 64 }) : null;
    const sent = (isSecure ? httpsOf().request : request)(url, {
      method: body === null ? "GET" : "POST",
      agent: isSecure ? (secure ?? undefined) : plain,
      signal: call.signal,
      timeout: silenceMs,
      headers: {
        ...(body !== null && { "content-type": "application/json", "content-length": body.length }),
        accept: "application/json, text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "troupe",
        ...(target.apiKey !== null && { authorization: `Bearer ${target.apiKey}` }),
      },
    });
    sent.once("timeout", () => sent.destroy(new Silent()));
    sent.once("response", resolve);
    sent.on("error", reject);
    sent.end(body ?? undefined);
  });
}

interface Failed {
  readonly error: LlmError;
  /** Null: not to be tried again. */
  readonly retryMs: number | null;
}

function notReached({ modelId }: Asked, { baseUrl, apiKey }: Target, error: unknown): Failed {
  const where = `the server of model "${modelId}" at ${baseUrl}`;
  if (error instanceof Silent) {
    const message = `No byte came from ${where} in time. Ask for less, use "stream": true, or look why it is slow.`;
    return { error: new LlmError(504, "upstream_timeout", message), retryMs: null };
  }
  const reason = without(apiKey, (error as NodeJS.ErrnoException).code ?? (error as Error).message);
  const message = `Cannot get an answer from ${where}: ${reason}. Look whether it runs and the address is right.`;
  return { error: new LlmError(502, "upstream_unreachable", message), retryMs: 0 };
}

interface Refusal {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

function refused(
  { modelId }: Asked,
  { baseUrl, apiKey }: Target,
  { status, headers, text }: Refusal,
): Failed {
  const where = `The server of model "${modelId}" at ${baseUrl}`;
  // Its text may quote the key, and is about a key that the client knows nothing of.
  if (status === 401 || status === 403) {
    const message = `${where} refused the key that is registered for the model (${status}). Register the right one in its source.`;
    return { error: new LlmError(502, "upstream_unauthorized", message), retryMs: null };
  }
  if (status < 400) {
    const message = `${where} answered with status ${status}, which is no answer of the protocol. Correct the base_url of the model.`;
    return { error: new LlmError(502, "upstream_invalid_response", message), retryMs: null };
  }
  const told = errorIn(text);
  const words = without(apiKey, told.message).slice(0, MESSAGE_CHARS_MAX);
  const waitMs = retryAfterMs(headers);
  const isRetryable = (status >= 500 && status !== 501) || status === 408 || status === 409 || status === 429;
  const mayRetry = isRetryable && headers["x-should-retry"] !== "false";
  const error = new LlmError(
    // A failure of the server behind us, and not ours.
    status >= 500 ? (status === 503 || status === 504 ? status : 502) : status,
    told.code ??
      (status >= 500 ? "upstream_error" : status === 429 ? "rate_limit_exceeded" : "upstream_refused"),
    words === "" ? `${where} answered with status ${status} and no reason.` : `${where} says: ${words}`,
    {
      ...(waitMs !== null && { retryAfterSeconds: Math.ceil(waitMs / 1_000) }),
      ...(told.type !== null && { type: told.type }),
      ...(told.param !== null && { param: told.param }),
    },
  );
  return { error, retryMs: mayRetry ? (waitMs ?? 0) : null };
}

/** What an answer says is wrong: in the protocol's words, or in Ollama's `{"error": "…"}`, or as text. */
export function errorIn(text: string) {
  const parsed = objectOf(text);
  const error = parsed?.error ?? parsed;
  if (typeof error === "string") return { message: error, code: null, type: null, param: null };
  const { message, code, type, param } = (error ?? {}) as Record<string, unknown>;
  const textOr = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  return {
    message: textOr(message) ?? (parsed === null ? text.trim() : ""),
    code: textOr(code),
    type: textOr(type),
    param: textOr(param),
  };
}

/** @returns null when the text is no JSON object */
export function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

const without = (secret: string | null, text: string) =>
  secret === null || secret === "" ? text : text.replaceAll(secret, "[redacted]");

/** In seconds, as OpenAI's servers also say it in milliseconds, or as a date by the server's own clock. */
function retryAfterMs(headers: IncomingMessage["headers"]): number | null {
  const ms = Number.parseFloat(String(headers["retry-after-ms"] ?? ""));
  if (ms >= 0) return ms;
  const given = headers["retry-after"];
  if (given === undefined) return null;
  const seconds = Number.parseFloat(given);
  if (seconds >= 0) return seconds * 1_000;
  const leftMs = Date.parse(given) - Date.parse(headers.date ?? "");
  return Number.isFinite(leftMs) ? Math.max(0, leftMs) : null;
}

async function textOf(bytes: AsyncIterator<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for (
    let next = await bytes.next();
    next.done !== true && size < ERROR_BYTES_MAX;
    next = await bytes.next()
  ) {
    chunks.push(next.value);
    size += next.value.length;
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** @throws the signal's reason */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel();
      reject(signal.reason as Error);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}
