// What a server counts of its answers and connections.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import Fastify from "fastify";
import { until } from "../../../test/support/until.ts";
import { HttpCounts } from "./http-counts.ts";

test("answers count by the class of their status, streams without a duration", () => {
  const counts = new HttpCounts();
  for (const status of [101, 200, 204, 304, 404, 429, 500, 599]) counts.count(status, null);
  assert.deepEqual(counts.requests, { "1xx": 1, "2xx": 2, "3xx": 1, "4xx": 2, "5xx": 2 });
  assert.equal(counts.durationSeconds.snapshot().count, 0);
});

test("a server's answers are counted whatever gives them, and its connections while they last", async (t) => {
  const counts = new HttpCounts();
  const app = Fastify({ forceCloseConnections: true });
  t.after(() => app.close());
  counts.watch(app);
  app.get("/fine", async () => "fine");
  app.get("/broken", async () => {
    throw new Error("broken");
  });
  app.get("/stream", (_request, reply) => {
    reply.hijack();
    reply.raw.setHeader("content-type", "text/event-stream; charset=utf-8");
    reply.raw.end("retry: 1\n\n");
  });
  const url = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
  // Before there are any others, which may end of themselves meanwhile.
  const socket = connect(Number(url.port), url.hostname);
  await once(socket, "connect");
  await until("the connection is seen", () => counts.connections === 1);
  socket.destroy();
  await until("its end is seen", () => counts.connections === 0);
  for (const path of ["/fine", "/broken", "/nowhere", "/stream"]) {
    await (await fetch(new URL(path, url))).text();
  }
  const counted = () => Object.values(counts.requests).reduce((sum, count) => sum + count, 0);
  await until("all four are counted", () => counted() === 4);
  assert.deepEqual(counts.requests, { "1xx": 0, "2xx": 2, "3xx": 0, "4xx": 1, "5xx": 1 });
  assert.equal(counts.durationSeconds.snapshot().count, 3, "the stream has no duration");
});
