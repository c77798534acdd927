// The OpenAPI document of the gateway's own routes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { loadConfig } from "../../app/config.ts";
import { problemCodes } from "../core/problem-codes.ts";
import { type GatewayParts, gatewayServer } from "./server.ts";

interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Response {
  readonly $ref?: string;
  readonly description: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly examples?: object }>>;
}

interface Document {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, Response>>;
  };
}

let app: FastifyInstance;
let document: Document;
let text = "";
const registered: string[] = [];

before(async () => {
  const loaded = loadConfig({}, "gateway");
  assert.ok(loaded.kind === "ok");
  // Routes are registered and described; none is called, so there is nothing for them to call.
  const services = {
    config: loaded.config,
    nowMs: () => 0,
    processId: "test",
    sessions: { onEnd: () => {} },
    version: "1.2.3",
    stopping: new AbortController().signal,
  } as unknown as GatewayParts;
  app = gatewayServer(services, pino({ level: "silent" }));
  app.addHook("onRoute", ({ method, url }) => {
    // What a page is made of is its own affair.
    if (/^\/api\/v1\/runs\/:run_id\/dashboard\/|^\/console(?:$|\/\*$|\/assets\/)/.test(url)) return;
    // For clients of the protocol: an id with slashes is a path of several parts, which the document cannot have.
    if (url === "/api/v1/llm/v1/models/*") return;
    for (const name of [method].flat()) if (name !== "HEAD") registered.push(`${name} ${url}`);
  });
  ({ body: text } = await app.inject("/openapi.json"));
  document = JSON.parse(text);
});
after(() => app.close());

function operations(): readonly { readonly name: string; readonly operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
}

function resolved(response: Response): Response {
  const name = response.$ref?.split("/").at(-1);
  return name === undefined ? response : document.components.responses[name]!;
}

test("every route is in the document, and nothing else is", () => {
  const expected = registered
    .map((route) => route.replace(/(?<!:):(\w+)/g, "{$1}").replace("::", ":"))
    .sort();
  assert.ok(expected.length >= 30);
  assert.deepEqual(
    operations()
      .map(({ name }) => name)
      .sort(),
    expected,
  );
});

test("the document is OpenAPI 3.1 and describes the server that serves it, wherever that is", () => {
  assert.equal(document.openapi, "3.1.0");
  assert.deepEqual(
    document.servers.map(({ url }) => url),
    ["/"],
  );
});

test("a public linter's recommended rules find nothing in it", async () => {
  const config = await createConfig({ extends: ["recommended"] });
  const lint = async (source: string) => {
    const problems = await lintFromString({ source, absoluteRef: "/openapi.json", config });
    return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
  };
  assert.deepEqual(await lint(text), []);
  const damaged = { ...document, paths: { ...document.paths, "/x/": { get: { responses: {} } } } };
  assert.notDeepEqual(await lint(JSON.stringify(damaged)), [], "the linter looks");
});

test("every operation has an id of its own, a summary, and a tag that is described", () => {
  const ids = operations().map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length);
  const tags = document.tags.map(({ name }) => name);
  for (const { name, operation } of operations()) {
    assert.match(operation.operationId, /^[a-z][A-Za-z]+$/, name);
    assert.ok(operation.summary, name);
    assert.ok(operation.tags.length > 0 && operation.tags.every((tag) => tags.includes(tag)), name);
  }
});

test("every parameter is described, or says which values it takes", () => {
  for (const { name, operation } of operations()) {
    for (const { name: parameter, description, schema } of operation.parameters ?? []) {
      assert.ok(description !== undefined || "enum" in schema || "$ref" in schema, `${name} ${parameter}`);
    }
  }
});

test("every failure of every operation is a Problem with an example of each code", () => {
  for (const { name, operation } of operations()) {
    const failures = Object.entries(operation.responses).filter(([status]) => Number(status) >= 400);
    const ofBodies = name.startsWith("GET ") ? [] : ["413", "415", "422"];
    for (const status of ["400", "401", "403", ...ofBodies, "429", "500", "503"]) {
      assert.ok(status in operation.responses, `${name} ${status}`);
    }
    for (const [status, failure] of failures) {
      const { content, headers } = resolved(failure);
      assert.ok(headers?.["X-Request-Id"], `${name} ${status}`);
      // The health answers keep their shape while the store fails.
      if (status === "503" && /\/health$/.test(name)) continue;
      if (name.includes("/llm/")) {
        const schema = { $ref: "#/components/schemas/LlmError" };
        assert.deepEqual(content, { "application/json": { schema } }, `${name} ${status}`);
        continue;
      }
      const media = content?.["application/problem+json"];
      assert.deepEqual(media?.schema, { $ref: "#/components/schemas/Problem" }, `${name} ${status}`);
      for (const [code, { value }] of Object.entries(
        media?.examples as Record<string, { value: { status: number; code: string } }>,
      )) {
        assert.equal(value.code, code);
        assert.equal(String(value.status), status, `${name} ${code}`);
        assert.ok(code in problemCodes);
      }
    }
  }
});

test("every JSON body and every JSON answer has a name, so that clients get types with names", () => {
  for (const { name, operation } of operations()) {
    const bodies = [operation.requestBody, ...Object.values(operation.responses).map(resolved)];
    for (const body of bodies) {
      const schema = body?.content?.["application/json"]?.schema;
      if (schema !== undefined) assert.deepEqual(Object.keys(schema), ["$ref"], name);
    }
  }
});

test("health and the sign-in need no authentication, and webhooks another one; everything else does", () => {
  const open = operations().filter(({ operation }) => operation.security !== undefined);
  assert.deepEqual(
    open.map(({ name, operation }) => [name, operation.security]),
    [
      ["GET /api/v1/health", []],
      ["GET /console/session", []],
      ["POST /console/session", []],
      ["POST /hooks/{token}", []],
    ],
  );
});

test("headers of requests are parameters, under the names that people know", () => {
  const headers = operations().flatMap(({ name, operation }) =>
    (operation.parameters ?? [])
      .filter((parameter) => parameter.in === "header")
      .map((parameter) => `${name} ${parameter.name} ${parameter.required}`),
  );
  for (const expected of [
    "POST /api/v1/jobs Idempotency-Key false",
    "POST /api/v1/bundles Idempotency-Key false",
    "POST /api/v1/jobs/{job_id}/runs Idempotency-Key false",
    "POST /api/v1/jobs/{job_id}/runs Traceparent false",
    "PATCH /api/v1/jobs/{job_id} If-Match true",
    "DELETE /api/v1/jobs/{job_id} If-Match true",
    "GET /api/v1/runs/{run_id}/events/stream Last-Event-ID false",
  ]) {
    assert.ok(headers.includes(expected), expected);
  }
});

test("the upload is a multipart form with the field bundle; streams, downloads and 204 are what they are", () => {
  const at = (path: string, method: string) => document.paths[`/api/v1${path}`]?.[method] as Operation;
  const form = at("/bundles", "post").requestBody?.content["multipart/form-data"]?.schema;
  assert.deepEqual((form as { required: unknown }).required, ["bundle"]);
  const stream = at("/runs/{run_id}/events/stream", "get").responses;
  assert.deepEqual(Object.keys(stream["200"]?.content ?? {}), ["text/event-stream"]);
  assert.equal(stream["204"]?.content, undefined);
  assert.equal(at("/jobs/{job_id}", "delete").responses["204"]?.content, undefined);
  const download = at("/runs/{run_id}/artifacts/{artifact_id}", "get").responses;
  assert.deepEqual(Object.keys(download["200"]?.content ?? {}), ["application/octet-stream"]);
  assert.deepEqual(Object.keys(at("/metrics", "get").responses["200"]?.content ?? {}), [
    "application/json",
    "text/plain",
    "application/openmetrics-text",
  ]);
});

test("what is made or started has a Location, what has a version an ETag, what may be replayed Idempotency-Replayed", () => {
  const headersOf = (path: string, method: string, status: number) =>
    Object.keys(document.paths[`/api/v1${path}`]?.[method]?.responses[status]?.headers ?? {});
  assert.deepEqual(headersOf("/jobs", "post", 201), [
    "X-Request-Id",
    "Location",
    "ETag",
    "Idempotency-Replayed",
  ]);
  const ofStart = ["X-Request-Id", "Location", "Idempotency-Replayed", "Vary"];
  assert.deepEqual(headersOf("/jobs/{job_id}/runs", "post", 202), ofStart);
  assert.deepEqual(headersOf("/blueprints/{blueprint_id}/runs", "post", 202), ofStart);
  const ofEnd = ["X-Request-Id", "Idempotency-Replayed", "Vary", "Preference-Applied"];
  assert.deepEqual(headersOf("/jobs/{job_id}/runs", "post", 200), ofEnd);
  assert.deepEqual(headersOf("/jobs/{job_id}/runs:batch", "post", 200), ofEnd);
  assert.deepEqual(headersOf("/runs/{run_id}", "get", 200), ["X-Request-Id"]);
});

test("no schema is there twice: what many operations use is referred to", () => {
  const { schemas } = document.components;
  const texts = Object.values(schemas).map((schema) => JSON.stringify(schema));
  assert.equal(new Set(texts).size, texts.length);
  // The problem body alone would fill more than this if it stood in every answer.
  assert.ok(text.length < 450_000, `${text.length} characters`);
});

test("a client that has the document gets 304", async () => {
  const first = await app.inject("/openapi.json");
  const etag = String(first.headers.etag);
  assert.match(etag, /^"[\w-]{22}"$/);
  const again = await app.inject({ url: "/openapi.json", headers: { "if-none-match": etag } });
  assert.deepEqual([again.statusCode, again.body], [304, ""]);
  const other = await app.inject({ url: "/openapi.json", headers: { "if-none-match": '"other"' } });
  assert.equal(other.body, text);
});
