// Errors (CONTRACTS §2): whatever goes wrong, the answer is a problem body. A small server, real sockets.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import {
  BODY_BYTES_MAX,
  parseAnswer,
  problemIn,
  problemInRaw,
  send,
  sendRaw,
  startApp,
} from "../../../test/support/api.ts";
import { BundleProblem } from "../../bundles/problem.ts";
import { EngineUnavailable } from "../../engine/batch.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { Problem } from "./problem.ts";

const head = (line: string, ...headers: readonly string[]) =>
  [line, "Host: 127.0.0.1", ...headers, "", ""].join("\r\n");

test("an unknown path is 404 not_found, whatever the method, the content type and the body", async () => {
  await using app = await startApp();
  for (const method of ["GET", "POST", "PROPFIND", "DELETE", "OPTIONS"]) {
    const { detail } = await problemIn(await fetch(`${app.url}/nope`, { method }), 404, "not_found");
    assert.match(detail, new RegExp(`${method} /api/v1/nope`));
  }
  await problemIn(await send(app, "POST", "/nope", "{x"), 404, "not_found");
  await problemIn(await send(app, "POST", "/nope", "x", { "content-type": "a/b" }), 404, "not_found");
  await problemIn(await fetch(`${app.url}/nope/${"x".repeat(5_000)}/%41`), 404, "not_found");
  await problemIn(await send(app, "POST", "/nope", "x", { "content-type": "nonsense" }), 404, "not_found");
  for (const line of ["OPTIONS *", "QUERY /api/v1/nope"]) {
    problemInRaw(await sendRaw(app, head(`${line} HTTP/1.1`)), 404, "not_found");
  }
});

test("a known path with another method is 405 with Allow", async () => {
  await using app = await startApp();
  const cases = [
    ["PUT", "/things", "GET, HEAD, POST"],
    ["PATCH", "/things/a%20b", "DELETE, GET, HEAD"],
    ["GET", "/things/x/stop", "POST"],
    ["PROPFIND", "/health", "GET, HEAD"],
    ["PUT", "/%74hings", "GET, HEAD, POST"],
  ] as const;
  for (const [method, path, allow] of cases) {
    const answer = await fetch(`${app.url}${path}`, { method });
    assert.equal(answer.headers.get("allow"), allow);
    await problemIn(answer, 405, "method_not_allowed");
  }
});

test("HEAD of a GET route works, and HEAD of an unknown path has the headers of a problem and no body", async () => {
  await using app = await startApp();
  assert.equal((await fetch(`${app.url}/health`, { method: "HEAD" })).status, 200);
  const answer = await fetch(`${app.url}/nope`, { method: "HEAD" });
  assert.equal(answer.status, 404);
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  assert.equal(await answer.text(), "");
});

test("request_id is also the header X-Request-Id; a client's own sane one is kept, another is replaced", async () => {
  await using app = await startApp();
  const idOf = async (given: string) =>
    (await fetch(`${app.url}/health`, { headers: { "x-request-id": given } })).headers.get("x-request-id");
  for (const sane of ["a", "A-1._z", "x".repeat(128)]) assert.equal(await idOf(sane), sane);
  const made = new Set<string | null>();
  for (const odd of ["x".repeat(129), "a b", "a/b", "ü", ""]) made.add(await idOf(odd));
  assert.equal(made.size, 5);
  for (const id of made) assert.match(id ?? "", /^req_test_[a-z0-9]+$/);
  const answer = await fetch(`${app.url}/nope`, { headers: { "x-request-id": "mine-7" } });
  assert.equal((await problemIn(answer, 404, "not_found")).request_id, "mine-7");
});

test("bad JSON is 400 malformed_json and says where", async () => {
  await using app = await startApp();
  const { detail } = await problemIn(
    await send(app, "POST", "/things", '{\n  "name": oops\n}'),
    400,
    "malformed_json",
  );
  assert.match(detail, /line 2, column 11/);
  for (const text of ["{", "nul", '{"a":1}}', "\ufeff{}", "'a'", '{"name":"\u0001"}']) {
    await problemIn(await send(app, "POST", "/things", text), 400, "malformed_json");
  }
  const latin1 = Buffer.from('{"name":"\xe9"}', "latin1");
  const answer = await fetch(`${app.url}/things`, {
    method: "POST",
    body: latin1,
    headers: { "content-type": "application/json" },
  });
  await problemIn(answer, 400, "malformed_json");
});

test("JSON that nests too deep is refused, and __proto__ in a body neither crashes nor pollutes", async () => {
  await using app = await startApp();
  const deep = "[".repeat(1_000_000);
  const { detail } = await problemIn(await send(app, "POST", "/things", deep), 400, "malformed_json");
  assert.match(detail, /deeper than 100 levels: look at line 1, column 101/);
  const odd = '{"name":"a","__proto__":{"polluted":1}}';
  const { errors } = await problemIn(await send(app, "POST", "/things", odd), 422, "validation_failed");
  assert.deepEqual(
    errors?.map(({ path, code }) => [path, code]),
    [["/__proto__", "unknown_field"]],
  );
  const free = '{"name":"a","free":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}';
  const answer = await send(app, "POST", "/things", free);
  assert.equal(answer.status, 201);
  assert.ok((await answer.text()).includes('"__proto__":{"polluted":1}'));
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

test("another content type or coding, and no type with a body, is 415; merge patches are for PATCH", async () => {
  await using app = await startApp();
  for (const type of ["text/plain", "application/jsonx", "nonsense", "application/merge-patch+json"]) {
    const answer = await send(app, "POST", "/things", "{}", { "content-type": type });
    await problemIn(answer, 415, "unsupported_media_type");
  }
  const packed = await send(app, "POST", "/things", '{"name":"a"}', { "content-encoding": "gzip" });
  assert.match((await problemIn(packed, 415, "unsupported_media_type")).detail, /Content-Encoding "gzip"/);
  const plain = await send(app, "POST", "/things", '{"name":"a"}', { "content-encoding": "Identity" });
  assert.equal(plain.status, 201);
  const bare = `${head("POST /api/v1/things HTTP/1.1", "Content-Length: 2")}{}`;
  problemInRaw(await sendRaw(app, bare), 415, "unsupported_media_type");
  await problemIn(await send(app, "POST", "/uploads", '{"a":1}'), 415, "unsupported_media_type");
});

test("a body over the limit is 413, also for a client that sends all of it before it reads", async () => {
  await using app = await startApp();
  const large = JSON.stringify({ name: "x".repeat(BODY_BYTES_MAX) });
  await problemIn(await send(app, "POST", "/things", large), 413, "payload_too_large");
  const bytes = Buffer.alloc(0x200_0000, " ");
  const start = ["POST /api/v1/things HTTP/1.1", "Content-Type: application/json"] as const;
  const sized = Buffer.concat([Buffer.from(head(...start, `Content-Length: ${bytes.length}`)), bytes]);
  const chunked = Buffer.concat([
    Buffer.from(`${head(...start, "Transfer-Encoding: chunked")}2000000\r\n`),
    bytes,
    Buffer.from("\r\n0\r\n\r\n"),
  ]);
  for (const request of [sized, chunked]) {
    const socket = connect(app.port, "127.0.0.1");
    await new Promise<void>((resolve, reject) => {
      socket.write(request, (error) => (error ? reject(error) : resolve()));
    });
    const text = Buffer.concat(await socket.toArray()).toString();
    problemInRaw(parseAnswer(text) ?? assert.fail(text), 413, "payload_too_large");
  }
});

test("what features throw is answered by its code; a full disk and a stopped engine are 503 with Retry-After", async () => {
  const thrown: Record<string, () => Error> = {
    problem: () => new Problem("conflict", "The thing is busy. Wait."),
    refusal: () =>
      new DomainError("validation_failed", "No such bundle.", [
        { path: "/bundle_id", code: "unknown", message: "m" },
      ]),
    long: () =>
      new DomainError("validation_failed", `No ${"x".repeat(1_000_000)}.`, [
        { path: "/bundle_id", code: "unknown", message: `no ${"x".repeat(1_000_000)}` },
      ]),
    bundle: () => BundleProblem.of("/nodes/0", "missing", "node_id is missing"),
    engine: () => new EngineUnavailable("The engine is stopping."),
    journal: () => new JournalUnavailable("The database cannot commit."),
    disk: () => Object.assign(new Error("ENOSPC: /secret/path"), { code: "ENOSPC" }),
    bug: () => new TypeError("cannot read /secret/path of undefined"),
    status: () => Object.assign(new Error("/secret/path"), { statusCode: 418 }),
    library: () => Object.assign(new Error("/secret/path"), { statusCode: 404, code: "LIB_ERR" }),
  };
  await using app = await startApp({}, (api) => {
    api.get<{ Params: { what: string } }>("/throw/:what", async (request, reply) => {
      reply.header("etag", '"1"').header("content-disposition", "attachment").type("application/zip");
      throw thrown[request.params.what]?.();
    });
  });
  const get = async (what: string, status: number, code: string) => {
    const answer = await fetch(`${app.url}/throw/${what}`);
    for (const name of ["etag", "content-disposition"]) assert.equal(answer.headers.get(name), null);
    assert.equal(answer.headers.get("retry-after"), status === 503 ? "2" : null);
    const body = await problemIn(answer, status, code);
    assert.ok(!JSON.stringify(body).includes("secret"));
    return body;
  };
  await get("problem", 409, "conflict");
  assert.equal((await get("refusal", 422, "validation_failed")).errors?.[0]?.path, "/bundle_id");
  // What was sent may be quoted, and comes back shortened.
  assert.ok(JSON.stringify(await get("long", 422, "validation_failed")).length < 5_000);
  assert.equal((await get("bundle", 422, "validation_failed")).errors?.[0]?.path, "/nodes/0");
  await get("engine", 503, "unavailable");
  await get("journal", 503, "unavailable");
  await get("disk", 503, "unavailable");
  assert.deepEqual(
    app.logged.filter((line) => line.includes('"level":50')),
    [],
  );
  const { request_id: id } = await get("bug", 500, "internal");
  await get("status", 500, "internal");
  await get("library", 500, "internal");
  const entry = app.logged.find((line) => line.includes(`"${id}"`)) ?? "";
  assert.match(entry, /TypeError.*secret/, "the log has the cause under the request id");
  assert.equal((await fetch(`${app.url}/throw/nothing`)).status, 500);
});

test("bytes that are no HTTP, too many headers, slow and hostless requests, tunnels: a problem, and the end", async () => {
  await using app = await startApp();
  const cases = [
    ["GARBAGE\r\n\r\n", 400, "malformed_request"],
    ["GET / HTTP/9.9\r\n\r\n", 400, "malformed_request"],
    [head("GET /api/v1/health HTTP/1.1", `X-Big: ${"x".repeat(20_000)}`), 431, "headers_too_large"],
    [
      head("POST /api/v1/things HTTP/1.1", "Content-Length: 5", "Transfer-Encoding: chunked"),
      400,
      "malformed_request",
    ],
    ["GET /api/v1/health HTTP/1.1\r\n\r\n", 400, "malformed_request"],
    [head("CONNECT a:80 HTTP/1.1"), 400, "malformed_request"],
    [head("GET /api/v1/things/%zz HTTP/1.1"), 400, "malformed_request"],
    [head("GET /api/v1/things/%ff HTTP/1.1"), 400, "malformed_request"],
    [head(`GET /api/v1/${"x".repeat(9_000)} HTTP/1.1`), 414, "uri_too_long"],
  ] as const;
  for (const [bytes, status, code] of cases) problemInRaw(await sendRaw(app, bytes), status, code);
  // On a server of its own: nobody else's request is late because the machine stood still.
  await using hasty = await startApp({}, () => {}, { headersTimeout: 500 });
  const half = "GET /api/v1/health HTTP/1.1\r\nHost: 127";
  problemInRaw(await sendRaw(hasty, half), 408, "request_timeout");
  // Node's own refusals of these have no body: an unknown expectation is ignored, HTTP/1.0 needs no host.
  assert.equal((await sendRaw(app, head("GET /api/v1/health HTTP/1.1", "Expect: wonders"))).status, 200);
  assert.equal((await sendRaw(app, "GET /api/v1/health HTTP/1.0\r\n\r\n")).status, 200);
  assert.equal((await sendRaw(app, head("GET http://127.0.0.1/api/v1/health HTTP/1.1"))).status, 200);
});

test("an upgrade to a WebSocket is answered as the plain request it also is", async () => {
  await using app = await startApp();
  const upgrade = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: x",
    "Sec-WebSocket-Version: 13",
  ];
  problemInRaw(await sendRaw(app, head("GET /api/v1/ws HTTP/1.1", ...upgrade)), 404, "not_found");
});

test("garbage behind a request whose answer is being streamed ends the stream and is not answered into it", async () => {
  await using app = await startApp();
  const socket = connect(app.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(head("GET /api/v1/stream HTTP/1.1"));
  let text = "";
  for await (const chunk of socket) {
    if (text === "") socket.write("GARBAGE\r\n\r\n");
    text += String(chunk);
  }
  assert.match(text, /^HTTP\/1.1 200 OK/);
  assert.equal(text.split("HTTP/1.1 ").length, 2);
});
