// A client of the runtime API, as the commands use it.
//
// K1. What the server refuses comes back as ApiError with the server's own words; a server that cannot be reached
//     as Unreachable. Nothing else is thrown.
// K2. Only reading is tried again by itself, at most ATTEMPTS times with growing pauses, while the server says that
//     it is busy: a write whose answer was lost may have happened, and a server that is not there is said at once.
// K3. Following a job yields every event once and in order, across lost connections and restarts of the server.

import { setTimeout as delay } from "node:timers/promises";
import type { DeadLetter, HumanAnswer, HumanRequest, Retried } from "../../sdk/src/records.ts";
import { readServerSentEvents } from "../../sdk/src/sse.ts";
import { fetchThrough } from "../app/runtime-socket.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { BundleRecord, Health, HistoryEvent, JobDetail, JobSummary, RunArtifact } from "./wire.ts";
import { readEvent } from "./wire.ts";

const ATTEMPTS = 4;
/** Connections in a row that bring nothing before a follower gives up: about 40 s in all. */
const FRUITLESS_CONNECTIONS_MAX = 12;
const PAUSE_FIRST_MS = 200;
const PAUSE_MAX_MS = 5_000;
const terminalTypes = new Set(["job_completed", "job_failed", "job_cancelled"]);

/** The server understood the request and refused it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Nobody answers at the address, or not in the language of this API. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
  /** Whether another kind of server holds the address. */
  readonly isStranger: boolean;
  constructor(message: string, isStranger = false) {
    super(message);
    this.isStranger = isStranger;
  }
}

export interface ClientOptions {
  /** Including /api/v1, without a slash at the end. */
  readonly baseUrl: string;
  /** The socket to connect to, whatever host the URL names; null: none. */
  readonly socket?: string | null;
  /** Sent as a bearer token; null: none. */
  readonly token?: string | null;
  /** Ends every request and pause. */
  readonly signal?: AbortSignal;
  /** How pauses are waited for. */
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

export class RuntimeClient {
  readonly baseUrl: string;
  /** How messages call the server. */
  readonly #place: string;
  readonly #fetchOnce: typeof fetch;
  readonly #hasSocket: boolean;
  readonly #authorization: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal | undefined;
  readonly #wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;

  constructor(options: ClientOptions) {
    const { baseUrl, socket = null, token = null } = options;
    this.baseUrl = baseUrl;
    this.#place = socket === null ? baseUrl : `the socket ${socket}`;
    this.#fetchOnce = socket === null ? fetch : fetchThrough(socket);
    this.#hasSocket = socket !== null;
    this.#authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    this.#signal = options.signal;
    this.#wait = options.wait ?? ((ms, signal) => delay(ms, undefined, signal && { signal }));
  }

  /** A link of an answer as an address for people: through a socket no browser gets there, and it stays a path. */
  address(link: string): string {
    const url = new URL(link, this.baseUrl);
    return this.#hasSocket ? url.pathname + url.search : url.href;
  }

  /** One look, without trying again: the runtime that answers here, be it well or degraded. */
  async health(): Promise<Health> {
    const response = await this.#fetch("GET", `${this.baseUrl}/health`);
    const body = await response.json().catch(() => null);
    if (!isObject(body) || typeof body.status !== "string") throw this.#stranger();
    return { status: body.status, version: typeof body.version === "string" ? body.version : "" };
  }

  async jobs(query: {
    readonly limit: number | null;
    readonly openOnly: boolean;
  }): Promise<readonly JobSummary[]> {
    const parameters = new URLSearchParams();
    if (query.limit !== null) parameters.set("limit", String(query.limit));
    if (query.openOnly) parameters.set("include_terminal", "false");
    const search = parameters.size > 0 ? `?${parameters}` : "";
    return listOf<JobSummary>(await this.#read(`/jobs${search}`));
  }

  async job(jobId: string): Promise<JobDetail> {
    return (await this.#read(`/jobs/${encodeURIComponent(jobId)}`)) as unknown as JobDetail;
  }

  async submit(body: JsonObject): Promise<{ readonly jobId: string; readonly runId: string | null }> {
    const answer = await this.#send("POST", "/jobs", body);
    return { jobId: String(answer.id), runId: typeof answer.run_id === "string" ? answer.run_id : null };
  }

  control(jobId: string, action: "cancel" | "pause" | "resume"): Promise<JsonObject> {
    return this.#send("POST", `/jobs/${encodeURIComponent(jobId)}/${action}`);
  }

  message(jobId: string, message: JsonObject): Promise<JsonObject> {
    return this.#send("POST", `/jobs/${encodeURIComponent(jobId)}/messages`, message);
  }

  cleanup(all: boolean): Promise<JsonObject> {
    return this.#send("POST", `/jobs/cleanup${all ? "?all=true" : ""}`);
  }

  /** Removes what is not kept any more, or tells what would go. */
  collectGarbage(request: JsonObject): Promise<JsonObject> {
    return this.#send("POST", "/system/gc", request);
  }

  /** The history so far, oldest first. */
  async events(jobId: string): Promise<readonly HistoryEvent[]> {
    const items = listOf<JsonValue>(await this.#read(`/jobs/${encodeURIComponent(jobId)}/events`));
    return items.map((item, i) => readEvent(i + 1, item));
  }

  async registerFolder(path: string): Promise<BundleRecord> {
    return (await this.#send("POST", "/bundles", { path })) as unknown as BundleRecord;
  }

  async bundles(): Promise<readonly BundleRecord[]> {
    return listOf<BundleRecord>(await this.#read("/bundles"));
  }

  reloadBundle(bundleId: string): Promise<JsonObject> {
    return this.#send("POST", `/bundles/${encodeURIComponent(bundleId)}/reload`);
  }

  /** The files that a run's workers left, oldest first. */
  async artifacts(runId: string): Promise<readonly RunArtifact[]> {
    const path = `/runs/${encodeURIComponent(runId)}/artifacts?evidence=false`;
    return listOf<RunArtifact>(await this.#read(path));
  }

  /** What a run asks people and nobody has answered yet. */
  async humanRequests(runId: string): Promise<readonly HumanRequest[]> {
    return listOf<HumanRequest>(await this.#read(`/runs/${encodeURIComponent(runId)}/human?status=pending`));
  }

  async answer(runId: string, requestId: string, answer: HumanAnswer): Promise<HumanRequest> {
    const path = `/runs/${encodeURIComponent(runId)}/human/${encodeURIComponent(requestId)}/response`;
    return (await this.#send("POST", path, answer as JsonObject)) as unknown as HumanRequest;
  }

  /** Newest first; the answer has all of them in one. @param limit null for all */
  async deadLetters(runId: string, limit: number | null): Promise<readonly DeadLetter[]> {
    const query = limit === null ? "" : `?limit=${limit}`;
    return listOf<DeadLetter>(await this.#read(`/runs/${encodeURIComponent(runId)}/dead-letters${query}`));
  }

  /** @param deadLetterId null for all that are open */
  async retryDeadLetters(runId: string, deadLetterId: string | null): Promise<Retried> {
    const one = deadLetterId === null ? "" : `/${encodeURIComponent(deadLetterId)}`;
    const path = `/runs/${encodeURIComponent(runId)}/dead-letters${one}/retry`;
    return (await this.#send("POST", path)) as unknown as Retried;
  }

  /** Downloads what a link of an answer points to; the caller reads the body to its end. */
  async download(link: string): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#fetch("GET", new URL(link, this.baseUrl).href);
    if (!response.ok) throw await refusal(response);
    if (response.body === null) throw new Unreachable(`${this.#place} sent no content for ${link}.`);
    return response.body;
  }

  /**
   * Yields a job's events from the first one on, and waits for more until the terminal event. A lost connection
   * is made again; the events so far are not repeated.
   *
   * @throws ApiError when the server refuses (no such job); Unreachable when it stays away
   */
  async *follow(jobId: string): AsyncGenerator<HistoryEvent> {
    let seen = 0;
    let connected = false;
    for (let fruitless = 0; ; fruitless++) {
      if (fruitless > 0) await this.#wait(pauseMs(fruitless), this.#signal);
      try {
        const body = await this.#openStream(jobId, seen);
        if (body === null) return;
        connected = true;
        for await (const { id, data } of readServerSentEvents(body)) {
          const sequence = Number(id);
          if (!(sequence > seen)) continue;
          const event = readEvent(sequence, JSON.parse(data));
          seen = sequence;
          fruitless = 0;
          yield event;
          if (terminalTypes.has(event.type)) return;
        }
      } catch (error) {
        const isPassing = connected ? !(error instanceof ApiError) || isBusy(error) : isBusy(error);
        if (!isPassing || this.#signal?.aborted || fruitless >= FRUITLESS_CONNECTIONS_MAX) throw error;
      }
      if (fruitless >= FRUITLESS_CONNECTIONS_MAX) {
        throw new Unreachable(`The event stream of ${jobId} at ${this.#place} ends again and again.`);
      }
    }
  }

  /** @returns the stream of the events after `seen`, or null when the job has ended and there are none */
  async #openStream(jobId: string, seen: number): Promise<ReadableStream<Uint8Array> | null> {
    const url = `${this.baseUrl}/jobs/${encodeURIComponent(jobId)}/events/stream`;
    const headers = seen > 0 ? { "last-event-id": String(seen) } : {};
    const response = await this.#fetch("GET", url, undefined, { accept: "text/event-stream", ...headers });
    if (response.status === 204) return null;
    if (!response.ok) throw await refusal(response);
    return response.body;
  }

  async #read(path: string): Promise<JsonObject> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#send("GET", path);
      } catch (error) {
        if (attempt >= ATTEMPTS || !isBusy(error)) throw error;
      }
      await this.#wait(pauseMs(attempt), this.#signal);
    }
  }

  async #send(method: string, path: string, body?: JsonObject): Promise<JsonObject> {
    const response = await this.#fetch(method, this.baseUrl + path, body);
    if (!response.ok) throw await refusal(response);
    const value = await response.json().catch(() => null);
    if (!isObject(value)) throw this.#stranger();
    return value;
  }

  #stranger(): Unreachable {
    return new Unreachable(`${this.#place} answers, but not as a Troupe runtime.`, true);
  }

  async #fetch(
    method: string,
    url: string,
    body?: JsonObject,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    try {
      return await this.#fetchOnce(url, {
        method,
        headers: {
          ...this.#authorization,
          ...headers,
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(this.#signal !== undefined && { signal: this.#signal }),
      });
    } catch (error) {
      if (this.#signal?.aborted) throw error;
      throw new Unreachable(`No Troupe runtime answers at ${this.#place} (${reasonOf(error)}).`);
    }
  }
}

/** How long to wait before attempt n + 1. */
function pauseMs(n: number): number {
  return Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** (n - 1));
}

/** Whether the server asks to try again a little later. */
function isBusy(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 503 || error.status === 429);
}

async function refusal(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  if (!isObject(body)) return new ApiError(response.status, response.statusText);
  if (typeof body.error === "string") return new ApiError(response.status, body.error);
  const detail = typeof body.detail === "string" ? body.detail : response.statusText;
  // The runtime has no problem bodies: these are the gateway's.
  const hint = "This address is a gateway's: `troupe help` lists its commands. Or give the runtime API's.";
  return new ApiError(response.status, typeof body.code === "string" ? `${detail} ${hint}` : detail);
}

function listOf<T>(answer: JsonObject): readonly T[] {
  return Array.isArray(answer.data) ? (answer.data as unknown as readonly T[]) : [];
}

function reasonOf(error: unknown): string {
  const cause =
    error instanceof Error ? (error.cause as { code?: unknown; message?: unknown } | undefined) : null;
  if (cause?.code === "ECONNREFUSED") return "connection refused";
  for (const reason of [cause?.code, cause?.message])
    if (typeof reason === "string" && reason !== "") return reason;
  return error instanceof Error ? error.message : String(error);
}
