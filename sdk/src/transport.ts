// One request: its URL, token, idempotency key, retries and errors.
//
// - What can be repeated without a second effect is retried while the gateway is unreachable or busy: reading, and
//   POSTs under an Idempotency-Key, which is the same for all attempts. Anything else is retried only when the
//   gateway says that it did nothing (429).
// - It ends after `retries` further attempts, at an error that another attempt would not help, or when the gateway asks
//   for a pause longer than RETRY_AFTER_MAX_MS.
// - The token goes to the gateway's own origin and nowhere else.

import { isObject, readRetryAfter, reasonOf, TroupeProblem, TroupeUnreachable } from "./errors.ts";
import { type Followed, followEvents } from "./follow.ts";
import { type OperationShape, type Operations, operations } from "./generated.ts";
import { backoffMs, realTiming, type Timing } from "./timing.ts";

const RETRIES = 4;
const RETRY_AFTER_MAX_MS = 30_000;
/** What a proxy answers when its gateway is unreachable or slow, and the gateway while it cannot write. */
const passingStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

export type OperationId = keyof Operations;
export type RequestOf<Id extends OperationId> = Operations[Id]["request"];
export type AnswerOf<Id extends OperationId> = Operations[Id]["answer"];

/** What every method takes beside its own arguments. */
export interface CallOptions {
  /** Ends the call, its retries included, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What a method takes that creates or starts something. */
export interface KeyedOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters: the effect happens once, however often the call is made with them within 24
   * hours. Without it each call has a fresh one; give your own to repeat a call safely after a crash of your program.
   */
  readonly idempotencyKey?: string | undefined;
}

/** What a method takes that starts runs. */
export interface StartOptions extends KeyedOptions {
  /**
   * Seconds, at most 60: the answer comes when what was started has ended, or after that time as without waiting. Proxies
   * see no byte meanwhile: keep it below their timeouts.
   */
  readonly wait?: number | undefined;
}

/** The header that asks to wait. */
export const waitHeaders = (wait: number | undefined) =>
  wait === undefined ? {} : { headers: { prefer: `wait=${Math.ceil(wait)}` } };

/** When an operation may be sent again: always; only when the server did nothing (429); never. */
export type Repeat = "always" | "when_refused" | "never";

export interface Extras extends KeyedOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Makes the body of each attempt, when it is not JSON. */
  readonly content?: () => Content;
  /** In place of what the operation's method and key say. */
  readonly repeat?: Repeat;
}

/** The part of a request that holds its body; fetch needs `duplex` for streams. */
export type Content = Pick<RequestInit, "body" | "redirect"> & {
  readonly headers?: Readonly<Record<string, string>>;
  readonly duplex?: "half";
};

export interface TroupeClientOptions {
  /** Where the server is, with or without /api/v1; in a page of the gateway itself `location.origin`. */
  readonly baseUrl: string | URL;
  /** The server's SVC_API_TOKEN, or SVC_RUNTIME_API_TOKEN for its runtime API, if it has one. */
  readonly token?: string | undefined;
  /** In place of the global fetch. */
  readonly fetch?: typeof fetch | undefined;
  /** Ends every call of this client. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How many retries a call makes while the server is unreachable or busy; 4 when absent, which takes up to 4 s. 0:
   * none. Only what is safe to repeat is retried.
   */
  readonly retries?: number | undefined;
  /** Clock and randomness, for tests. */
  readonly timing?: Timing | undefined;
}

/** The two servers, each with the field of its errors that no other server's answer has. */
const servers = {
  gateway: { name: "Troupe gateway", errorField: "code" },
  runtime: { name: "Troupe runtime", errorField: "error" },
} as const;

interface TransportSettings {
  readonly server: keyof typeof servers;
  /** Where the server is, ending with /api/v1. */
  readonly baseUrl: string;
  readonly token: string | null;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal | undefined;
  /** Further attempts after the first. */
  readonly retries: number;
  readonly timing: Timing;
}

/** @throws TypeError when the options are invalid */
export function openTransport(server: keyof typeof servers, options: TroupeClientOptions): Transport {
  const retries = options.retries ?? RETRIES;
  if (!Number.isInteger(retries) || retries < 0)
    throw new TypeError("retries must be 0 or more, a whole number.");
  return new Transport({
    server,
    baseUrl: withPrefix(options.baseUrl),
    token: options.token ?? null,
    // The global fetch must be called as a plain function, and may be replaced later.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    signal: options.signal,
    retries,
    timing: options.timing ?? realTiming,
  });
}

/** @throws TypeError when it is no absolute http URL */
function withPrefix(given: string | URL): string {
  const url = new URL(given);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError(`baseUrl must be an http or https URL, not ${url.href}`);
  }
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path}${path.endsWith("/api/v1") ? "" : "/api/v1"}`;
}

/**
 * The address of a link in an answer, such as the `url` of an artifact.
 *
 * @param baseUrl of the client that got the answer
 */
export function addressOf(baseUrl: string, link: string): string {
  // Behind a proxy that adds a prefix, links still begin at /api/v1.
  const isOwn = link.startsWith("/api/v1/");
  return isOwn ? baseUrl + link.slice("/api/v1".length) : new URL(link, baseUrl).href;
}

/** Any operation's request, as they have it in common. */
export interface LooseRequest {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly body?: unknown;
}

export class Transport {
  readonly settings: TransportSettings;

  constructor(settings: TransportSettings) {
    this.settings = settings;
  }

  /** Sends an operation and reads its JSON answer, if it has one. */
  json<Id extends OperationId>(
    id: Id,
    request: RequestOf<Id>,
    extras: Extras = {},
  ): Promise<{ readonly value: AnswerOf<Id>; readonly headers: Headers }> {
    return this.call<AnswerOf<Id>>(operations[id], request, extras);
  }

  /** The same without the headers. */
  async value<Id extends OperationId>(
    id: Id,
    request: RequestOf<Id>,
    extras: Extras = {},
  ): Promise<AnswerOf<Id>> {
    return (await this.json(id, request, extras)).value;
  }

  /** The same with an operation that the gateway's document does not have. */
  call<Answer>(
    shape: OperationShape,
    request: LooseRequest,
    extras: Extras = {},
  ): Promise<{ readonly value: Answer; readonly headers: Headers }> {
    return this.#send(shape, request, extras, async (response, signal) => {
      const value = shape.answer === "none" ? undefined : await this.#readJson(response, signal);
      return { value: value as Answer, headers: response.headers };
    });
  }

  /** Sends an operation and returns its answer with the body unread. */
  open(shape: OperationShape, request: LooseRequest, extras: Extras = {}): Promise<Response> {
    return this.#send(shape, request, extras, async (response) => response);
  }

  /**
   * Opens an operation's stream of events and yields them until the terminal one, over however many connections it takes.
   *
   * @param stream.read makes an event of a frame's data and id
   */
  follow<Event>(
    shape: OperationShape,
    request: LooseRequest,
    { after = 0, ...options }: CallOptions & { readonly after?: string | number | undefined },
    stream: Pick<Followed<Event>, "isGapless" | "isEndless" | "terminalTypes" | "read">,
  ): AsyncGenerator<Event, undefined> {
    const open = (lastId: string, isFirst: boolean) =>
      this.open(shape, request, {
        ...options,
        ...(lastId !== "" && { headers: { "last-event-id": lastId } }),
        ...(!isFirst && { repeat: "never" }),
      });
    const { timing } = this.settings;
    return followEvents(
      { open, timing, signal: this.signalOf(options), ...stream },
      after === 0 ? "" : String(after),
    );
  }

  /** Opens what a link of an answer points to. */
  openLink(link: string, options: CallOptions): Promise<Response> {
    const url = addressOf(this.settings.baseUrl, link);
    const signal = this.signalOf(options);
    return this.#repeat("always", signal, () => this.#fetch(url, { method: "GET" }, signal));
  }

  #send<Result>(
    shape: OperationShape,
    { path, query, headers, body }: LooseRequest,
    extras: Extras,
    read: (response: Response, signal: AbortSignal | undefined) => Promise<Result>,
  ): Promise<Result> {
    const url = this.settings.baseUrl + pathOf(shape.path, path ?? {}) + searchOf(query ?? {});
    const sent = withoutUndefined({ accept: acceptOf(shape), ...headers, ...extras.headers });
    if (shape.takesKey) sent["idempotency-key"] = extras.idempotencyKey ?? freshKey();
    const contentOf = extras.content ?? (() => jsonContent(shape, body));
    const byShape = shape.method === "GET" || shape.takesKey ? "always" : "when_refused";
    const signal = this.signalOf(extras);
    return this.#repeat(extras.repeat ?? byShape, signal, async () => {
      const { headers: about, ...content } = contentOf();
      const init = { ...content, method: shape.method, headers: { ...sent, ...about } };
      return read(await this.#fetch(url, init, signal, shape.alsoAnswers), signal);
    });
  }

  /** Makes attempts until one succeeds, or another one would not help. */
  async #repeat<Result>(
    repeat: Repeat,
    signal: AbortSignal | undefined,
    attempt: () => Promise<Result>,
  ): Promise<Result> {
    const { retries, timing } = this.settings;
    for (let n = 1; ; n++) {
      try {
        return await attempt();
      } catch (error) {
        const askedMs = n > retries ? null : pauseAskedMs(error, repeat);
        if (askedMs === null || askedMs > RETRY_AFTER_MAX_MS) throw error;
        await timing.pause(askedMs + backoffMs(n, timing), signal);
      }
    }
  }

  /** @returns a successful answer; everything else is thrown */
  async #fetch(
    url: string,
    init: RequestInit,
    signal: AbortSignal | undefined,
    alsoAnswers: readonly number[] = [],
  ): Promise<Response> {
    let response: Response;
    try {
      response = await this.settings.fetch(url, {
        ...init,
        headers: this.#withToken(url, init.headers as Readonly<Record<string, string>>),
        ...(signal !== undefined && { signal }),
      });
    } catch (cause) {
      throw this.#lost(cause, signal, `No ${this.#name} answers at`);
    }
    const isAnswer = alsoAnswers.includes(response.status) && isPlainJson(response);
    if (response.status < 400 || isAnswer) return response;
    throw await this.#problemOf(response, signal);
  }

  #withToken(url: string, headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const { token, baseUrl } = this.settings;
    if (token === null || new URL(url).origin !== new URL(baseUrl).origin) return headers;
    return { ...headers, authorization: `Bearer ${token}` };
  }

  async #readJson(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
    let text: string;
    try {
      text = await response.text();
    } catch (cause) {
      throw this.#lost(cause, signal, "The connection was lost in the middle of an answer of");
    }
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw this.#foreignAnswer(response, cause);
    }
  }

  async #problemOf(response: Response, signal: AbortSignal | undefined): Promise<Error> {
    let body: unknown = null;
    try {
      body = JSON.parse(await response.text());
    } catch (cause) {
      if (signal?.aborted) return signal.reason;
      return this.#foreignAnswer(response, cause);
    }
    const { server, timing } = this.settings;
    if (!isObject(body) || typeof body[servers[server].errorField] !== "string") {
      return this.#foreignAnswer(response, null, body);
    }
    const problem = server === "runtime" ? { ...body, detail: body.error } : body;
    return new TroupeProblem(response, problem, timing.nowMs());
  }

  #lost(cause: unknown, signal: AbortSignal | undefined, what: string): unknown {
    if (signal?.aborted) return signal.reason;
    return new TroupeUnreachable(`${what} ${this.settings.baseUrl} (${reasonOf(cause)}).`, { cause });
  }

  /** @param body what it answered, if that was JSON */
  #foreignAnswer({ status, headers }: Response, cause: unknown, body?: unknown): TroupeUnreachable {
    const { server, baseUrl, timing } = this.settings;
    const retryAfterMs = readRetryAfter(headers.get("retry-after"), timing.nowMs());
    const other = Object.values(servers).find(
      (one) => one !== servers[server] && isObject(body) && typeof body[one.errorField] === "string",
    );
    const advice =
      other === undefined ? "Check the URL and any proxy in between." : `It is a ${other.name}'s address.`;
    const message = `${baseUrl} answers, but not as a ${this.#name} (HTTP ${status}). ${advice}`;
    return new TroupeUnreachable(message, { status, retryAfterMs, cause });
  }

  get #name(): string {
    return servers[this.settings.server].name;
  }

  /** Follows the client's own signal and the call's. */
  signalOf({ signal }: CallOptions): AbortSignal | undefined {
    const own = this.settings.signal;
    return own === undefined || signal === undefined ? (own ?? signal) : AbortSignal.any([own, signal]);
  }
}

/** What to add to the pause before the next attempt, or null when there is none. */
function pauseAskedMs(error: unknown, repeat: Repeat): number | null {
  const isAnswer = error instanceof TroupeProblem || error instanceof TroupeUnreachable;
  if (!isAnswer || repeat === "never") return null;
  const { status, retryAfterMs } = error;
  // Without a status, or with a success that is cut short, the connection was lost.
  const isPassing = status === null || status < 400 || passingStatuses.has(status);
  return status === 429 || (isPassing && repeat === "always") ? (retryAfterMs ?? 0) : null;
}

function isPlainJson({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("application/json") === true;
}

function pathOf(template: string, values: Readonly<Record<string, string>>): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(values[name] ?? "");
    // An empty value would name another resource, and fetch resolves "." and ".." in the path.
    if (value === "" || value === "." || value === "..") {
      throw new TypeError(`${name} must be an id, not ${JSON.stringify(value)}.`);
    }
    return encodeURIComponent(value);
  });
  return path.replace(/^\/api\/v1/, "");
}

function searchOf(query: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size > 0 ? `?${search}` : "";
}

function acceptOf({ answer }: OperationShape): string | undefined {
  if (answer === "events") return "text/event-stream, application/problem+json";
  return answer === "json" ? "application/json, application/problem+json" : undefined;
}

function jsonContent({ body }: OperationShape, value: unknown): Content {
  if (body !== "json") return {};
  return { body: JSON.stringify(value ?? {}), headers: { "content-type": "application/json" } };
}

function withoutUndefined(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return Object.fromEntries(entries);
}

/** 128 random bits. `crypto.randomUUID` is missing in pages that were loaded over plain HTTP; this is not. */
function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
