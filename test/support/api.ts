// For tests of the conventions: a small server with a few routes of each kind, on a real socket.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { type ConventionSettings, gatewayConventions } from "../../src/http/core/conventions.ts";
import { etagOf, knowsCurrent, notModified, stale } from "../../src/http/core/etag.ts";
import { RunTokens } from "../../src/http/core/run-token.ts";

export const TOKEN = "correct-horse-battery-staple";
export const BODY_BYTES_MAX = 2 * 1024 * 1024;

export interface TestApp extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** What the server's log was told. */
  readonly logged: readonly string[];
}

/**
 * Starts the server; it ends with the scope of `await using`.
 *
 * @param limits.headersTimeout what a request's head may take, in ms; longer than any machine stands still when absent
 */
export async function startApp(
  settings: Partial<ConventionSettings> = {},
  addRoutes: (app: FastifyInstance) => void = () => {},
  { headersTimeout = 60_000 }: { readonly headersTimeout?: number } = {},
): Promise<TestApp> {
  const conventions = gatewayConventions({
    apiTokens: [],
    runTokens: new RunTokens(Buffer.alloc(32)),
    sessions: { find: async () => ({ kind: "none" }), isGood: async () => false, onEnd: () => {} },
    tickets: { take: () => null },
    boundHost: "127.0.0.1",
    allowedHosts: [],
    corsOrigins: [],
    requestsPerMinuteMax: 0,
    nowMs: () => 0,
    processId: "test",
    ...settings,
  });
  const logged: string[] = [];
  const app = Fastify({
    ...conventions.serverOptions,
    http: { ...conventions.serverOptions.http, headersTimeout, connectionsCheckingInterval: 50 },
    bodyLimit: BODY_BYTES_MAX,
    forceCloseConnections: true,
    logger: { level: "warn", stream: { write: (line: string) => void logged.push(line) } },
  }) as unknown as FastifyInstance;
  conventions.install(app);
  app.register(
    async (api) => {
      someRoutes(api);
      addRoutes(api);
    },
    { prefix: "/api/v1" },
  );
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url: `${url}/api/v1`,
    port: Number(new URL(url).port),
    logged,
    [Symbol.asyncDispose]: () => app.close(),
  };
}

const strict = { type: "object", additionalProperties: false } as const;

function someRoutes(api: FastifyInstance): void {
  api.get("/health", async () => ({ status: "ok" }));
  api.get("/whoami", async (request) => ({ principal: request.principal }));
  const body = {
    ...strict,
    required: ["name"],
    properties: {
      name: { type: "string", minLength: 1, maxLength: 10 },
      kind: { type: "string", enum: ["big", "small"] },
      note: { type: ["string", "null"] },
      numbers: { type: "array", items: { type: "integer" } },
      free: { type: "object", additionalProperties: true },
      level: { type: "integer", default: 3, minimum: 1 },
    },
  };
  api.post("/things", { schema: { body } }, async (request, reply) =>
    reply.code(201).send({ body: request.body, principal: request.principal }),
  );
  const querystring = {
    ...strict,
    properties: {
      limit: { type: "integer", minimum: 1 },
      deep: { type: "boolean" },
      name: { type: "string" },
    },
  };
  api.get("/things", { schema: { querystring } }, async (request) => request.query);
  api.post("/things/:id/stop", async () => ({ stopped: true }));
  api.post("/uploads", { schema: { consumes: ["multipart/form-data"] } as object }, async () => ({}));
  let revision = 7;
  const thing = () => etagOf({ id: "x", revision }, "shown");
  api.get("/things/:id", async (request, reply) => {
    const etag = thing();
    reply.header("etag", etag);
    return notModified(request, etag) ? reply.code(304).send() : { revision };
  });
  api.delete("/things/:id", async (request, reply) => {
    if (!knowsCurrent(request, { id: "x", revision })) throw stale(thing());
    revision++;
    return reply.code(204).send();
  });
  api.get("/stream", (_request, reply) => {
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value ?? "");
    reply.raw.writeHead(200, { "content-type": "text/event-stream" });
    reply.raw.write("retry: 1000\n\n");
  });
}

export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly request_id: string;
  readonly errors?: readonly { readonly path: string; readonly code: string; readonly message: string }[];
}

/** Checks that an answer is a problem as CONTRACTS wants it, and returns its body. */
export async function problemIn(answer: Response, status: number, code: string): Promise<ProblemBody> {
  const text = await answer.text();
  assert.equal(answer.status, status, text);
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  return checked(JSON.parse(text), status, code, answer.headers.get("x-request-id"));
}

function checked(
  body: ProblemBody,
  status: number,
  code: string,
  requestId: string | null | undefined,
): ProblemBody {
  const { errors: _errors, ...rest } = body;
  assert.deepEqual(Object.keys(rest), ["type", "title", "status", "code", "detail", "request_id"]);
  assert.equal(body.status, status);
  assert.equal(body.code, code);
  assert.equal(body.request_id, requestId);
  assert.ok(body.detail.length > 10 && body.detail.length <= 2_000, body.detail);
  return body;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends bytes as they are, and reads until the server closes or one whole answer has come. */
export async function sendRaw(app: TestApp, bytes: string | Buffer): Promise<RawAnswer> {
  const socket = connect(app.port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(bytes);
  let text = "";
  for await (const chunk of socket) {
    text += String(chunk);
    const answer = parseAnswer(text);
    if (answer !== null) return answer;
  }
  throw new Error(`no whole answer came: ${JSON.stringify(text)}`);
}

export function parseAnswer(text: string): RawAnswer | null {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const [start = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = new Map(
    lines.map((line) => [
      line.slice(0, line.indexOf(":")).toLowerCase(),
      line.slice(line.indexOf(":") + 1).trim(),
    ]),
  );
  const body = text.slice(end + 4);
  if (Buffer.byteLength(body) < Number(headers.get("content-length") ?? 0)) return null;
  return { status: Number(start.split(" ")[1]), headers, body };
}

/** As problemIn, for bytes. */
export function problemInRaw(answer: RawAnswer, status: number, code: string): ProblemBody {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  return checked(JSON.parse(answer.body), status, code, answer.headers.get("x-request-id"));
}

/** Sends JSON text. */
export function send(
  app: TestApp,
  method: string,
  path: string,
  body: string,
  headers: Record<string, string> = {},
) {
  return fetch(`${app.url}${path}`, {
    method,
    body,
    headers: { "content-type": "application/json", ...headers },
  });
}
