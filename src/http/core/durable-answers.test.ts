// Answers while a commit is being synced; the test says when that ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify from "fastify";
import { answerWhenDurable } from "./durable-answers.ts";

function server() {
  const sync = Promise.withResolvers<void>();
  const app = Fastify();
  answerWhenDurable(app, () => sync.promise);
  app.get("/job", async () => "running");
  app.post("/job", async (_request, reply) => reply.code(409).send("it has ended"));
  return { app, sync };
}

test("a read is answered while a commit is being synced", async () => {
  const { app } = server();
  assert.equal((await app.inject({ method: "GET", url: "/job" })).body, "running");
  await app.close();
});

test("any other request is answered once the sync has ended, a refusal too", async () => {
  const { app, sync } = server();
  let isAnswered = false;
  const answering = app.inject({ method: "POST", url: "/job" }).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await app.inject({ method: "GET", url: "/job" });
  assert.equal(isAnswered, false);
  sync.resolve();
  const { statusCode, body } = await answering;
  assert.deepEqual([statusCode, body], [409, "it has ended"]);
  await app.close();
});

test("the answer is the error when the sync fails", async () => {
  const { app, sync } = server();
  app.setErrorHandler((error: Error, _request, reply) => reply.code(503).send(error.message));
  sync.reject(new Error("the disk failed"));
  const { statusCode, body } = await app.inject({ method: "POST", url: "/job" });
  assert.deepEqual([statusCode, body], [503, "the disk failed"]);
  await app.close();
});
