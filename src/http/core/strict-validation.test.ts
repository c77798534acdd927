// Unknown and wrong fields (CONTRACTS §2 "Errors", §6 "Gateway conventions"), over real sockets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import { type ProblemBody, problemIn, send, startApp } from "../../../test/support/api.ts";
import { countTurns } from "../../../test/support/turns.ts";

const entries = ({ errors = [] }: ProblemBody) => errors.map(({ path, code }) => `${path} ${code}`).sort();

test("validation_failed 422 names every mistake of a body at once, each by its JSON Pointer", async () => {
  await using app = await startApp();
  const body = JSON.stringify({
    name: "",
    kind: "huge",
    numbers: [1, "2", 3.5, null],
    level: "3",
    free: [],
    extra: 1,
    "a/b~c": 1,
  });
  const problem = await problemIn(await send(app, "POST", "/things", body), 422, "validation_failed");
  assert.deepEqual(entries(problem), [
    "/a~1b~0c unknown_field",
    "/extra unknown_field",
    "/free wrong_type",
    "/kind not_allowed",
    "/level wrong_type",
    "/name too_short",
    "/numbers/1 wrong_type",
    "/numbers/2 wrong_type",
    "/numbers/3 wrong_type",
  ]);
  assert.match(problem.detail, /There are 9 mistakes/);
  const kind = problem.errors?.find(({ path }) => path === "/kind");
  assert.equal(kind?.message, 'must be one of "big", "small"');
});

test("a value that is none of a choice, or of none of two types, is one mistake", async () => {
  await using app = await startApp();
  const body = JSON.stringify({ name: "a", kind: 5, note: 5 });
  const problem = await problemIn(await send(app, "POST", "/things", body), 422, "validation_failed");
  assert.deepEqual(problem.errors, [
    { path: "/kind", code: "not_allowed", message: 'must be one of "big", "small"' },
    { path: "/note", code: "wrong_type", message: "must be text or null" },
  ]);
});

test("a missing field, and a body that is no object, are named too", async () => {
  await using app = await startApp();
  const post = async (body: string) =>
    problemIn(await send(app, "POST", "/things", body), 422, "validation_failed");
  assert.deepEqual(entries(await post("{}")), ["/name missing"]);
  assert.deepEqual(entries(await post("")), ["/name missing"]);
  for (const body of ["null", "[]", '"x"', "7"]) assert.deepEqual(entries(await post(body)), [" wrong_type"]);
  const without = await fetch(`${app.url}/things`, { method: "POST" });
  assert.deepEqual(entries(await problemIn(without, 422, "validation_failed")), ["/name missing"]);
});

test("a good body arrives unconverted, with defaults", async () => {
  await using app = await startApp();
  const text = '{ "name": "a",  "free": {"x": "1"} }';
  const answer = await send(app, "POST", "/things", text);
  assert.deepEqual(await answer.json(), {
    body: { name: "a", free: { x: "1" }, level: 3 },
    principal: "anonymous",
  });
});

test("a route that takes no body refuses fields, and takes an empty object or nothing", async () => {
  await using app = await startApp();
  const stop = (body: string) => send(app, "POST", "/things/x/stop", body);
  assert.deepEqual(entries(await problemIn(await stop('{"force":true}'), 422, "validation_failed")), [
    "/force unknown_field",
  ]);
  assert.deepEqual(entries(await problemIn(await stop("[]"), 422, "validation_failed")), [" wrong_type"]);
  for (const body of ["{}", ""]) assert.equal((await stop(body)).status, 200);
  assert.equal((await fetch(`${app.url}/things/x/stop`, { method: "POST" })).status, 200);
});

test("a body with 100,000 mistakes gets a short answer: 100 of them, and how it goes on", async () => {
  await using app = await startApp();
  const numbers = JSON.stringify({ name: "a", numbers: Array.from({ length: 100_000 }, () => "x") });
  const fields = JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`f${i}`, 1])));
  const longName = JSON.stringify({ name: "a", ["k".repeat(1_000_000)]: 1 });
  for (const body of [numbers, fields]) {
    const answer = await send(app, "POST", "/things", body);
    const problem = await problemIn(answer, 422, "validation_failed");
    assert.equal(problem.errors?.length, 101);
    assert.match(problem.errors?.at(-1)?.message ?? "", /^and more than 901 more$/);
    assert.ok(JSON.stringify(problem).length < 20_000);
  }
  const problem = await problemIn(await send(app, "POST", "/things", longName), 422, "validation_failed");
  assert.ok(JSON.stringify(problem).length < 2_000);
  const long = await send(app, "POST", "/things/x/stop", longName);
  assert.ok((await long.text()).length < 2_000);
});

test("query values are converted when they look like their type", async () => {
  await using app = await startApp();
  const answer = await fetch(`${app.url}/things?limit=7&deep=true&name=5`);
  assert.deepEqual(await answer.json(), { limit: 7, deep: true, name: "5" });
});

test("wrong and unknown query values are 400 invalid_parameter, each by its name", async () => {
  await using app = await startApp();
  const cases = [
    ["limit=x&deep=1&zz=1", ["deep wrong_type", "limit wrong_type", "zz unknown_field"]],
    ["limit=0", ["limit too_small"]],
    ["limit=", ["limit wrong_type"]],
    ["limit=0x10", ["limit wrong_type"]],
    ["limit=1e3", ["limit wrong_type"]],
    ["limit=%2010", ["limit wrong_type"]],
    ["limit=9999999999999999999", ["limit wrong_type"]],
    ["deep=TRUE", ["deep wrong_type"]],
    ["name=a&name=b", ["name wrong_type"]],
    ["__proto__=1", ["__proto__ unknown_field"]],
    ["a%2Fb=1", ["a/b unknown_field"]],
  ] as const;
  for (const [query, expected] of cases) {
    const problem = await problemIn(await fetch(`${app.url}/things?${query}`), 400, "invalid_parameter");
    assert.deepEqual(entries(problem), expected, query);
  }
});

test("a described route without a schema of its query takes no parameter", async () => {
  let calls = 0;
  await using app = await startApp({}, (api) => {
    const body = { type: "object", properties: { dry_run: { type: "boolean" } } };
    api.post("/removals", { schema: { body } }, async () => ++calls);
    api.get("/plain", { schema: {} }, async () => ({}));
    api.get("/page", { schema: { hide: true } }, async () => ({}));
  });
  for (const [method, path] of [
    ["POST", "/removals?dry_run=true"],
    ["GET", "/plain?dry_run=true"],
  ] as const) {
    const answer = await fetch(app.url + path, { method });
    assert.deepEqual(entries(await problemIn(answer, 400, "invalid_parameter")), ["dry_run unknown_field"]);
  }
  assert.equal(calls, 0);
  assert.equal((await fetch(`${app.url}/plain`)).status, 200);
  assert.equal((await fetch(`${app.url}/plain?a=b`, { method: "HEAD" })).status, 400);
  // What browsers are shown is no part of the API.
  assert.equal((await fetch(`${app.url}/page?a=b`)).status, 200);
});

test("a header's schema is checked, but whether it must be there is left to the route", async () => {
  await using app = await startApp({}, (api) => {
    const headers = {
      type: "object",
      required: ["if-match"],
      properties: { "if-match": { type: "string" }, "idempotency-key": { type: "string", maxLength: 5 } },
    };
    api.get("/headed", { schema: { headers } }, async () => ({}));
  });
  assert.equal((await fetch(`${app.url}/headed`)).status, 200);
  const answer = await fetch(`${app.url}/headed`, { headers: { "idempotency-key": "123456" } });
  assert.deepEqual(entries(await problemIn(answer, 400, "invalid_parameter")), ["idempotency-key too_long"]);
});

test("each schema of a route is compiled by its first request, in a turn of its own", async (t) => {
  await using app = await startApp({}, (api) => {
    const values = { type: "object", properties: { a: { type: "string" } } };
    const schema = { body: values, querystring: values, headers: values };
    api.post("/compiled", { schema }, async () => ({}));
  });
  using counted = countTurns();
  const compiledAt: number[] = [];
  const { compile } = Ajv.prototype;
  t.mock.method(Ajv.prototype, "compile", function (this: Ajv, schema: object) {
    compiledAt.push(counted.turns);
    return compile.call(this, schema);
  });
  for (let n = 0; n < 2; n++) {
    const answer = await send(app, "POST", "/compiled", "{}");
    assert.equal(answer.status, 200);
  }
  assert.equal(compiledAt.length, 3);
  assert.equal(new Set(compiledAt).size, 3, `turns ${compiledAt}`);
});

test("answers are written as they are given: text stays text, and no field is dropped by a schema", async () => {
  await using app = await startApp({}, (api) => {
    const response = {
      200: { type: "object", properties: { a: { type: "string" } }, additionalProperties: false },
    };
    api.get("/object", { schema: { response } }, async () => ({ a: 1, b: 2 }));
    api.get("/text", { schema: { response } }, async (_request, reply) => {
      reply.type("application/json; charset=utf-8");
      return '{"b":  2}';
    });
    api.get("/bytes", { schema: { response } }, async (_request, reply) => {
      reply.type("application/json");
      return Buffer.from("[3]");
    });
  });
  const text = async (path: string) => (await fetch(`${app.url}${path}`)).text();
  assert.equal(await text("/object"), '{"a":1,"b":2}');
  assert.equal(await text("/text"), '{"b":  2}');
  assert.equal(await text("/bytes"), "[3]");
});
