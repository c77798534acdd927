// Models that are served: answers requests of the OpenAI protocol, with one backend per model.
//
// - A request waits for a turn of its model, and for its process to be loaded; then it is passed on (upstream.ts).
// - Each request is told once to its caller and to the meter, however it ends.
// - What the client is sent is what the upstream has sent: nothing of an answer is made here.

import type { JsonObject } from "../../engine/json.ts";
import type { Clock } from "../../engine/ports.ts";
import { LlmError } from "./llm-error.ts";
import type { ModelBackend } from "./model-backend.ts";
import { cut, StreamRelay } from "./stream-relay.ts";
import { type Begun, callUpstream, errorIn, objectOf, SILENCE_MS, type UpstreamParts } from "./upstream.ts";
import { estimateInput, tokensOf, type Usage, usageIn } from "./usage.ts";

export const llmPaths = ["chat/completions", "completions", "embeddings"] as const;
export type LlmPath = (typeof llmPaths)[number];

const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** A request that has ended, as it is counted. Neither what was asked nor what was answered is in it. */
export interface LlmCall {
  readonly modelId: string;
  readonly path: LlmPath;
  /** Of the answer; 499 when the client left before its end. */
  readonly status: number;
  /** Of the error; null without one. */
  readonly code: string | null;
  readonly usage: Usage;
  readonly durationMs: number;
  /** To the first part of the answer; null when there was none. */
  readonly firstTokenMs: number | null;
}

/** Who asks. */
export interface LlmCaller {
  /** What answers in place of a served model; null, or absent: the model that is asked for. */
  readonly backend?: ModelBackend | null;
  /** Called before anything is sent, with the model. @throws LlmError when the caller may not ask */
  admit(modelId: string): Promise<void>;
  /** Told once of each request that was admitted. */
  ended(call: LlmCall): void;
}

/** Counts all requests of models that are served. */
export interface LlmMeter {
  ended(call: LlmCall): void;
}

export interface LlmRequest {
  readonly path: LlmPath;
  readonly body: JsonObject;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

export type LlmAnswer =
  | { readonly kind: "whole"; readonly type: string; readonly body: Buffer }
  /** To be read to its end, or returned. An error in the middle is its last event. */
  | { readonly kind: "stream"; readonly chunks: AsyncGenerator<Buffer, void, void> };

export interface ModelServingParts extends UpstreamParts {
  readonly meter: LlmMeter;
  /** @returns null for a model that is not served; the backend stays the same while its model does. @throws LlmError */
  readonly backendOf: (modelId: string) => Promise<ModelBackend | null>;
  readonly clock: Clock;
}

/** One request on its way. */
interface Open {
  readonly request: LlmRequest;
  readonly modelId: string;
  readonly callers: readonly { ended(call: LlmCall): void }[];
  readonly startedAtMs: number;
}

export class ModelServing {
  readonly #parts: ModelServingParts;

  constructor(parts: ModelServingParts) {
    this.#parts = parts;
  }

  /** @throws LlmError when it is refused or fails before the first byte; the signal's reason */
  async answer(request: LlmRequest, caller: LlmCaller | null): Promise<LlmAnswer> {
    const modelId = modelIn(request.body);
    await caller?.admit(modelId);
    const { meter, clock } = this.#parts;
    const callers = caller === null ? [meter] : [meter, caller];
    const open: Open = { request, modelId, callers, startedAtMs: clock.steadyMs() };
    try {
      return await this.#passOn(open, caller?.backend ?? null);
    } catch (error) {
      this.#ended(open, error, { usage: nothing, firstTokenMs: null });
      throw error;
    }
  }

  async #passOn(open: Open, given: ModelBackend | null): Promise<LlmAnswer> {
    const { request, modelId } = open;
    const backend = given ?? (await this.#parts.backendOf(modelId));
    if (backend === null) throw notServed(modelId);
    const isStream = request.body.stream === true && request.path !== "embeddings";
    const hidesUsage = isStream && !wantsUsage(request.body);
    using room = this.#untilLate(open);
    const leave = await room.waitFor((signal) => backend.enter(signal));
    try {
      const begun = await callUpstream(this.#parts, {
        modelId,
        path: request.path,
        body: ({ model }) => Buffer.from(JSON.stringify(forUpstream(request.body, model, isStream))),
        signal: request.signal,
        target: () => room.waitFor((waiting) => backend.target(waiting)),
      });
      if (!isStream) {
        const answer = await this.#whole(open, begun);
        leave();
        return answer;
      }
      if (!isEventStream(begun)) throw await noStream(modelId, begun);
      return { kind: "stream", chunks: this.#stream(open, begun, { hidesUsage, leave }) };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Neither the wait for a turn nor the load of a model may last longer than the gateway's connections do. */
  #untilLate({ modelId, request }: Open) {
    const late = new AbortController();
    const cancel = this.#parts.clock.after(this.#parts.silenceMs ?? SILENCE_MS, () => late.abort());
    const waiting = AbortSignal.any([request.signal, late.signal]);
    return {
      [Symbol.dispose]: cancel,
      async waitFor<Value>(wait: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
        try {
          return await wait(waiting);
        } catch (error) {
          throw late.signal.aborted && !request.signal.aborted ? tooLate(modelId) : error;
        }
      },
    };
  }

  async #whole(open: Open, begun: Begun): Promise<LlmAnswer> {
    const { request, modelId } = open;
    const firstTokenMs = this.#parts.clock.steadyMs() - open.startedAtMs;
    const body = await bodyOf(modelId, begun);
    const parsed = objectOf(body.toString("utf8"));
    if (parsed === null) throw invalid(modelId, "it is no JSON object");
    if (parsed.error !== undefined && parsed.error !== null) throw failedInside(modelId, body);
    const usage = usageIn(parsed) ?? {
      input: estimateInput(request.body),
      output: request.path === "embeddings" ? 0 : tokensOf(parsed.choices),
      isEstimated: true,
    };
    this.#ended(open, null, { usage, firstTokenMs });
    return { kind: "whole", type: "application/json", body };
  }

  async *#stream(
    open: Open,
    begun: Begun,
    { hidesUsage, leave }: { readonly hidesUsage: boolean; readonly leave: () => void },
  ): AsyncGenerator<Buffer, void, void> {
    const { modelId } = open;
    const { clock } = this.#parts;
    const relay = new StreamRelay(modelId, hidesUsage);
    const firstTokenMs = clock.steadyMs() - open.startedAtMs;
    // Unless it comes to its end, the client has left.
    let error: unknown = gone;
    try {
      let next: IteratorResult<Buffer> = { done: false, value: begun.first };
      while (next.done !== true) {
        const passed = relay.push(next.value);
        if (passed.length > 0) yield passed;
        if (relay.failure !== null) throw relay.failure;
        next = await begun.rest.next();
      }
      const last = relay.end();
      error = relay.failure;
      if (last.length > 0) yield last;
      if (relay.failure !== null) throw relay.failure;
    } catch (thrown) {
      if (open.request.signal.aborted) return;
      const failure = thrown instanceof LlmError ? thrown : cut(modelId);
      error = failure;
      yield Buffer.from(`data: ${failure.json}\n\n`);
    } finally {
      begun.cancel();
      leave();
      const estimate = { input: estimateInput(open.request.body), output: relay.pieces, isEstimated: true };
      this.#ended(open, error, { usage: relay.usage ?? estimate, firstTokenMs });
    }
  }

  #ended(
    { request, modelId, callers, startedAtMs }: Open,
    error: unknown,
    { usage, firstTokenMs }: Pick<LlmCall, "usage" | "firstTokenMs">,
  ): void {
    const isGone = error === gone || request.signal.aborted;
    const failure = error instanceof LlmError ? error : null;
    const call: LlmCall = {
      modelId,
      path: request.path,
      status: error === null ? 200 : isGone ? 499 : (failure?.status ?? 500),
      code: error === null ? null : isGone ? "client_gone" : (failure?.code ?? "internal"),
      usage,
      durationMs: this.#parts.clock.steadyMs() - startedAtMs,
      firstTokenMs,
    };
    for (const one of callers) one.ended(call);
  }
}

/** In place of an error: the client has left. */
const gone = Symbol("gone");
const nothing: Usage = { input: 0, output: 0, isEstimated: false };

function modelIn({ model }: JsonObject): string {
  if (typeof model === "string" && model !== "") return model;
  throw new LlmError(
    400,
    "model_missing",
    'The request names no model. Set "model" to the model_id of one that is served; GET models lists them.',
    { param: "model" },
  );
}

export const notServed = (modelId: string) =>
  new LlmError(
    404,
    "model_not_found",
    `No model "${modelId}" is served here. Serve it: troupe models serve ${modelId}. \`troupe models list\` shows what is registered.`,
    { param: "model" },
  );

const tooLate = (modelId: string) =>
  new LlmError(
    503,
    "model_busy",
    `Model "${modelId}" has had no room for this request in time, or was still being loaded. Try again in a moment.`,
    { retryAfterSeconds: 10 },
  );

const invalid = (modelId: string, why: string) =>
  new LlmError(
    502,
    "upstream_invalid_response",
    `The server of model "${modelId}" sent what is no answer of the protocol: ${why}. Look whether its base_url is right.`,
  );

function failedInside(modelId: string, body: Buffer): LlmError {
  const { message, code } = errorIn(body.toString("utf8"));
  return new LlmError(
    502,
    code ?? "upstream_error",
    `The server of model "${modelId}" says: ${message.slice(0, 1_000)}`,
  );
}

async function noStream(modelId: string, begun: Begun): Promise<LlmError> {
  const body = await bodyOf(modelId, begun);
  const isError = objectOf(body.toString("utf8"))?.error != null;
  return isError ? failedInside(modelId, body) : invalid(modelId, "a stream was asked for, and it is none");
}

const isEventStream = ({ headers }: Begun) =>
  headers["content-type"]?.startsWith("text/event-stream") === true;

async function bodyOf(modelId: string, { first, rest, cancel }: Begun): Promise<Buffer> {
  const chunks = [first];
  let size = first.length;
  try {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      chunks.push(next.value);
      size += next.value.length;
      if (size > ANSWER_BYTES_MAX) throw invalid(modelId, "it is longer than 64 MiB");
    }
  } catch (error) {
    throw error instanceof LlmError ? error : cut(modelId);
  } finally {
    cancel();
  }
  return Buffer.concat(chunks);
}

function wantsUsage({ stream_options: options }: JsonObject): boolean {
  return (options as JsonObject | null | undefined)?.include_usage === true;
}

/** The same request for the model's name over there; tokens are asked for where a stream would not tell them. */
function forUpstream(body: JsonObject, model: string, isStream: boolean): JsonObject {
  if (!isStream) return { ...body, model };
  const options = body.stream_options as JsonObject | null | undefined;
  return { ...body, model, stream_options: { ...options, include_usage: true } };
}
