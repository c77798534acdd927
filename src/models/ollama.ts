// A server that speaks Ollama's API (https://docs.ollama.com/api): it has models of its own, which it pulls, shows and deletes.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { ModelContent } from "./records.ts";

/** A pull's progress has some hundred bytes a line, and some lines a second. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** The server did not do it. The message is for people. */
export class OllamaFailed extends Error {
  override readonly name = "OllamaFailed";
  /** Whether it is worth while to try again. */
  readonly isPassing: boolean;

  constructor(message: string, isPassing: boolean) {
    super(message);
    this.isPassing = isPassing;
  }
}

export interface PullProgress {
  readonly signal: AbortSignal;
  /** @param status as the server says it, such as "verifying sha256 digest" */
  readonly told: (bytes: number, totalBytes: number | null, status: string) => void;
}

export class Ollama {
  readonly #baseUrl: string;

  /** @param baseUrl http://127.0.0.1:11434 */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  /** Has the server fetch a model, or what it lacks of it. @throws OllamaFailed; the signal's reason */
  async pull(model: string, { signal, told }: PullProgress): Promise<void> {
    const answer = await this.#asked("POST", "/api/pull", { model, stream: true }, signal);
    const layers = new Map<string, { readonly done: number; readonly total: number }>();
    for await (const line of linesOf(answer, signal)) {
      const { status, digest, total, completed, error } = line;
      if (typeof error === "string") throw new OllamaFailed(`The server says: ${error}`, true);
      if (typeof digest === "string" && typeof total === "number")
        layers.set(digest, { total, done: typeof completed === "number" ? completed : 0 });
      const all = [...layers.values()];
      const sum = (of: "done" | "total") => all.reduce((bytes, layer) => bytes + layer[of], 0);
      told(sum("done"), all.length === 0 ? null : sum("total"), String(status ?? ""));
      if (status === "success") return;
    }
    throw new OllamaFailed("The server ended its answer before the model was there.", true);
  }

  /** What the server has under a name; null when it has nothing. @throws OllamaFailed; the signal's reason */
  async find(model: string, signal: AbortSignal): Promise<ModelContent | null> {
    const list = await jsonOf(await this.#asked("GET", "/api/tags", null, signal));
    const models = Array.isArray(list.models) ? list.models.filter(isObject) : [];
    const full = model.includes(":") ? model : `${model}:latest`;
    const found = models.find((one) => one.name === full || one.model === full || one.name === model);
    if (found === undefined) return null;
    const shown = await jsonOf(await this.#asked("POST", "/api/show", { model }, signal));
    const details = isObject(shown.details) ? shown.details : {};
    const info = isObject(shown.model_info) ? shown.model_info : {};
    const architecture = text(info["general.architecture"]) ?? text(details.family);
    return {
      sha256: text(found.digest)?.replace(/^sha256:/, "") ?? "",
      bytes: number(found.size) ?? 0,
      format: text(details.format),
      architecture,
      license: text(shown.license)?.split("\n")[0]?.slice(0, 200) ?? null,
      parameters: number(info["general.parameter_count"]),
      quantisation: text(details.quantization_level),
      context: number(info[`${architecture}.context_length`]),
      tokenizer: text(info["tokenizer.ggml.model"]),
      vocabulary: null,
      hasChatTemplate: typeof shown.template === "string" && shown.template !== "",
    };
  }

  /** Nothing happens when the server does not have it. @throws OllamaFailed; the signal's reason */
  async delete(model: string, signal: AbortSignal): Promise<void> {
    if ((await this.find(model, signal)) === null) return;
    await (await this.#asked("DELETE", "/api/delete", { model }, signal)).body?.cancel();
  }

  async #asked(
    method: string,
    path: string,
    body: JsonObject | null,
    signal: AbortSignal,
  ): Promise<Response> {
    const { host } = new URL(this.#baseUrl);
    const sent =
      body === null ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const answer = await fetch(this.#baseUrl + path, { method, signal, redirect: "error", ...sent }).catch(
      (error: Error & { readonly cause?: NodeJS.ErrnoException }) => {
        signal.throwIfAborted();
        throw new OllamaFailed(
          `The server at ${host} cannot be reached (${error.cause?.code ?? error.message}): is Ollama running there?`,
          true,
        );
      },
    );
    if (answer.ok) return answer;
    const said = await jsonOf(answer).catch(() => ({}) as JsonObject);
    const why = typeof said.error === "string" ? `: ${said.error.slice(0, 300)}` : "";
    throw new OllamaFailed(
      `The server at ${host} answers ${path} with HTTP ${answer.status}${why}.`,
      answer.status === 429 || answer.status >= 500,
    );
  }
}

const text = (value: JsonValue | undefined) => (typeof value === "string" && value !== "" ? value : null);
const number = (value: JsonValue | undefined) =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : null;

/** @throws OllamaFailed when it is no JSON object */
async function jsonOf(answer: Response): Promise<JsonObject> {
  let whole = "";
  for await (const piece of textOf(answer, null)) whole += piece;
  return parsed(whole);
}

/** JSON objects, one a line. @throws OllamaFailed */
async function* linesOf(answer: Response, signal: AbortSignal): AsyncGenerator<JsonObject, void> {
  let left = "";
  for await (const piece of textOf(answer, signal)) {
    const lines = (left + piece).split("\n");
    left = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield parsed(line);
  }
  if (left.trim() !== "") yield parsed(left);
}

async function* textOf(answer: Response, signal: AbortSignal | null): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let bytes = 0;
  try {
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) throw new OllamaFailed("The server's answer is too long.", false);
      yield decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof OllamaFailed) throw error;
    throw new OllamaFailed("The connection to the server was cut.", true);
  }
}

function parsed(line: string): JsonObject {
  try {
    const value: JsonValue = JSON.parse(line);
    if (isObject(value)) return value;
  } catch {
    // Told below.
  }
  throw new OllamaFailed("The server's answer is no JSON object: does it speak Ollama's API?", false);
}
