// A look at a model that changes nothing: what it is, what it needs, and whether this machine, or the server that has it, can.

import { stat } from "node:fs/promises";
import type { JsonObject } from "../engine/json.ts";
import { DomainError } from "../lib/domain-error.ts";
import { weightsIn } from "./fetch-content.ts";
import type { Inspection, Memory } from "./inspect-model.ts";
import { ModelInvalid } from "./model-invalid.ts";
import type { ModelSource } from "./model-source.ts";
import { inWords } from "./model-words.ts";
import { doModelWork } from "./model-work.ts";
import { Ollama, OllamaFailed } from "./ollama.ts";

/** As the API shows it. */
export interface ModelValidation extends JsonObject {
  readonly valid: boolean;
  readonly verdict: string;
}

export interface ValidationRequest {
  readonly modelId: string;
  readonly source: ModelSource;
  /** Where its content is on this machine; null when it is not. */
  readonly place: string | null;
  /** Tokens that are to be kept; null: its own, at most 8,192. */
  readonly context: number | null;
  readonly memory: Memory;
}

const LOOK_MS = 30_000;

/** @throws DomainError `conflict` when there is nothing to look at yet */
export async function validateModel(request: ValidationRequest): Promise<ModelValidation> {
  const { modelId, source, place } = request;
  if (source.kind === "ollama") return validateOllama(source);
  if (source.kind === "openai") return validateEndpoint(source);
  const own = source.kind === "file" || source.kind === "folder" ? source.path : null;
  const path = place ?? own;
  if (path === null) {
    const detail = `The model "${modelId}" is not installed on this node, and its source cannot be looked at from here. Install it first (troupe models install ${modelId}).`;
    throw new DomainError("conflict", detail);
  }
  return validateContent(path, request);
}

async function validateContent(
  path: string,
  { context, memory }: ValidationRequest,
): Promise<ModelValidation> {
  let found: Inspection;
  try {
    if ((await stat(path).catch(() => null)) === null) throw new ModelInvalid("There is no such file.");
    const work = { kind: "inspect", path: await weightsIn(path), context, memory } as const;
    found = await doModelWork(work, { signal: AbortSignal.timeout(LOOK_MS) });
  } catch (error) {
    if (!(error instanceof ModelInvalid)) throw error;
    return { ...nothing, valid: false, verdict: error.message };
  }
  const { details, need, fit } = found;
  const [title = "", ...sentences] = inWords(found, memory);
  return {
    valid: fit !== "too_large",
    verdict: [`${title}.`, ...sentences].join(" "),
    format: details.format,
    architecture: details.architecture,
    parameters: details.parameters,
    quantisation: details.quantisation,
    context: details.context,
    tokenizer: details.tokenizer,
    chat_template: details.hasChatTemplate,
    memory: {
      context: need.context,
      weight_bytes: need.weightBytes,
      cache_bytes: need.cacheBytes,
      working_bytes: need.workingBytes,
      bytes: need.bytes,
      total_bytes: memory.totalBytes,
      free_bytes: memory.freeBytes,
    },
    fit,
    warnings: [...details.warnings],
  };
}

const nothing = {
  format: null,
  architecture: null,
  parameters: null,
  quantisation: null,
  context: null,
  tokenizer: null,
  chat_template: null,
  memory: null,
  fit: null,
  warnings: [],
};

async function validateOllama({
  baseUrl,
  model,
}: Extract<ModelSource, { readonly kind: "ollama" }>): Promise<ModelValidation> {
  const { host } = new URL(baseUrl);
  try {
    const found = await new Ollama(baseUrl).find(model, AbortSignal.timeout(LOOK_MS));
    if (found === null) {
      const verdict = `The server at ${host} does not have ${model}: install the model, and it pulls it.`;
      return { ...nothing, valid: false, verdict };
    }
    const { format, architecture, parameters, quantisation, context, tokenizer } = found;
    const said = { format, architecture, parameters, quantisation, context, tokenizer };
    const verdict = `The server at ${host} has ${model}.`;
    return { ...nothing, ...said, chat_template: found.hasChatTemplate, valid: true, verdict };
  } catch (error) {
    return { ...nothing, valid: false, verdict: reasonOf(error, host) };
  }
}

/** Asks an endpoint for its models; those that list none may have it all the same. */
async function validateEndpoint({
  baseUrl,
  model,
  apiKey,
}: Extract<ModelSource, { readonly kind: "openai" }>): Promise<ModelValidation> {
  const { host } = new URL(baseUrl);
  try {
    const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
    const signal = AbortSignal.timeout(LOOK_MS);
    const answer = await fetch(`${baseUrl}/models`, { headers, redirect: "error", signal });
    const list = (await answer.json().catch(() => null)) as { readonly data?: unknown } | null;
    if (answer.status === 401 || answer.status === 403) {
      const verdict = `The server at ${host} does not take the api_key (HTTP ${answer.status}): change the source.`;
      return { ...nothing, valid: false, verdict };
    }
    if (!answer.ok || !Array.isArray(list?.data)) {
      const verdict = `The server at ${host} answers, and lists no models (HTTP ${answer.status}): whether it has ${model} is seen when it is asked.`;
      return { ...nothing, valid: answer.status < 500, verdict };
    }
    const ids = list.data.map((one: { readonly id?: unknown } | null) => String(one?.id));
    const has = ids.includes(model);
    const known = ids.slice(0, 10).join(", ");
    const verdict = has
      ? `The server at ${host} has ${model}.`
      : `The server at ${host} does not list ${model}. It has: ${known === "" ? "none" : known}.`;
    return { ...nothing, valid: has, verdict };
  } catch (error) {
    return { ...nothing, valid: false, verdict: reasonOf(error, host) };
  }
}

function reasonOf(error: unknown, host: string): string {
  if (error instanceof OllamaFailed) return error.message;
  const { cause, message } = error as { readonly cause?: NodeJS.ErrnoException; readonly message: string };
  return `The server at ${host} cannot be reached: ${cause?.code ?? message}.`;
}
