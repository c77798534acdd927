// Large bodies are parsed in slices, and read like small ones. The time is the test's own.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { LARGE_JSON_CHARS } from "../../engine/large-json.ts";
import { acceptJson, acceptJsonBodies, type JsonBody } from "./json-body.ts";
import { Problem } from "./problem.ts";

const large = (end: string) =>
  `{"list":[${`{"text":"${"x".repeat(1_000)}"},`.repeat((4 * LARGE_JSON_CHARS) / 1_000)}1${end}`;

/** Sends a body. @returns how often others had their turn before the route was reached, and what it was given */
async function sent(t: TestContext, accept: typeof acceptJson, body: string) {
  let nowMs = 0;
  // Every slice is over at once.
  t.mock.method(performance, "now", () => (nowMs += 10));
  let turns = 0;
  let isOver = false;
  const others = () => {
    turns++;
    if (!isOver) setImmediate(others);
  };
  const app = Fastify({ bodyLimit: 8 * LARGE_JSON_CHARS });
  accept(app);
  let given: unknown;
  app.addHook("preParsing", async () => {
    setImmediate(others);
  });
  app.post("/", { schema: { body: {} } }, async (request) => {
    given = request.body;
    isOver = true;
    return {};
  });
  app.setErrorHandler(async (error, _request, reply) => {
    given = error;
    isOver = true;
    return reply.code(400).send({});
  });
  await app.inject({
    method: "POST",
    url: "/",
    headers: { "content-type": "application/json" },
    payload: body,
  });
  await app.close();
  t.mock.restoreAll();
  return { turns, given };
}

test("a body of the runtime API is read in a turn of its own, a large one in slices; no JSON is no object", async (t) => {
  const body = await sent(t, acceptJsonBodies, large("]}"));
  assert.deepEqual((body.given as JsonBody).object, JSON.parse(large("]}")));
  const wrong = await sent(t, acceptJsonBodies, large("]"));
  assert.equal((wrong.given as JsonBody).object, null);
  const small = await sent(t, acceptJsonBodies, "{}");
  const many = JSON.stringify({ text: "x".repeat(10_000) });
  const medium = await sent(t, acceptJsonBodies, many);
  assert.equal((medium.given as JsonBody).text, many);
  assert.ok(medium.turns >= small.turns + 2, `${small.turns}, ${medium.turns} turns`);
  for (const { turns } of [body, wrong])
    assert.ok(turns >= small.turns + 8, `${small.turns}, ${turns} turns`);
});

test("a large body of the gateway is parsed in slices; where it is wrong is told", async (t) => {
  const body = await sent(t, acceptJson, large("]}"));
  assert.deepEqual(body.given, JSON.parse(large("]}")));
  const wrong = await sent(t, acceptJson, large("]"));
  assert.ok(wrong.given instanceof Problem);
  assert.match(wrong.given.message, /not valid JSON: look at line 1, column \d+/);
  const small = await sent(t, acceptJson, "{}");
  for (const { turns } of [body, wrong])
    assert.ok(turns >= small.turns + 8, `${small.turns}, ${turns} turns`);
});
