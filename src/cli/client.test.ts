// The client against a real HTTP server whose answers each test decides.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { freePorts } from "../../test/support/ports.ts";
import { RuntimeClient } from "./client.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that gives its answers one after another, the last one for ever. */
async function serving(context: TestContext, ...answers: readonly Answer[]) {
  const requests: string[] = [];
  const pauses: number[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push(`${request.method} ${request.url} ${request.headers["last-event-id"] ?? "-"}`);
    answer?.(request, response);
  });
  // Or a connection could be closed just as the next request goes out on it.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`;
  const client = new RuntimeClient({ baseUrl, wait: async (ms) => void pauses.push(ms) });
  return { client, requests, pauses };
}

const json =
  (status: number, body: unknown): Answer =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

const stream =
  (text: string, ending: "end" | "cut" = "end"): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => (ending === "end" ? response.end() : response.destroy()));
  };

const frame = (id: number, type: string) =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ type, agent_id: null, payload: { id } })}\n\n`;

async function collect(events: AsyncIterable<{ sequence: number; type: string }>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events) seen.push(`${event.sequence} ${event.type}`);
  return seen;
}

describe("following a job (K3)", () => {
  test("ends by itself with the terminal event, though the stream stays open", async (t) => {
    const open: Answer = (_request, response) =>
      void response.write(frame(1, "log") + frame(2, "job_completed"));
    const { client, requests } = await serving(t, open);
    assert.deepEqual(await collect(client.follow("j")), ["1 log", "2 job_completed"]);
    assert.equal(requests.length, 1);
  });

  test("asks again from the last event when the connection is lost, and shows nothing twice", async (t) => {
    const { client, requests, pauses } = await serving(
      t,
      stream(`retry: 1000\n\n${frame(1, "a")}${frame(2, "b")}id: 3\ndata: {"ty`, "cut"),
      stream(`: keep-alive\n\n${frame(2, "b")}${frame(3, "c")}`),
      stream(frame(4, "job_failed")),
    );
    assert.deepEqual(await collect(client.follow("j")), ["1 a", "2 b", "3 c", "4 job_failed"]);
    assert.deepEqual(
      requests.map((line) => line.split(" ").at(-1)),
      ["-", "2", "3"],
    );
    assert.deepEqual(pauses, [200, 200], "an event in between starts the pauses anew");
  });

  test("ends at 204: the job has ended and everything was seen", async (t) => {
    const { client } = await serving(t, stream(frame(1, "x")), (_q, r) => void r.writeHead(204).end());
    assert.deepEqual(await collect(client.follow("j")), ["1 x"]);
  });

  test("waits longer and longer while the server is away, then gives up", async (t) => {
    const { client, pauses } = await serving(t, stream(frame(1, "a")), stream(""));
    await assert.rejects(collect(client.follow("j")), { name: "Unreachable" });
    assert.deepEqual(pauses.slice(0, 6), [200, 400, 800, 1_600, 3_200, 5_000]);
    assert.equal(pauses.length, 12);
  });

  test("a job that does not exist is an error at once", async (t) => {
    const { client, pauses } = await serving(t, json(404, { error: "Job j was not found" }));
    await assert.rejects(collect(client.follow("j")), {
      name: "ApiError",
      status: 404,
      message: "Job j was not found",
    });
    assert.deepEqual(pauses, []);
  });

  test("a server that was never there is an error at once", async () => {
    const client = new RuntimeClient({ baseUrl: `http://127.0.0.1:${await freePorts(1)}/api/v1` });
    await assert.rejects(collect(client.follow("j")), { name: "Unreachable", message: /connection refused/ });
  });

  test("an interrupt ends it", async (t) => {
    const controller = new AbortController();
    const { client } = await serving(t, (_request, response) => void response.write(frame(1, "a")));
    const following = new RuntimeClient({ baseUrl: client.baseUrl, signal: controller.signal });
    await assert.rejects(
      async () => {
        for await (const _event of following.follow("j")) controller.abort();
      },
      { name: "AbortError" },
    );
  });
});

describe("requests", () => {
  test("reading is tried again while the server is busy, a few times (K2)", async (t) => {
    const busy = json(503, { error: "the store is full" });
    const { client, pauses } = await serving(t, busy, busy, json(200, { data: [{ job_id: "a" }] }));
    assert.equal((await client.jobs({ limit: 5, openOnly: true }))[0]?.job_id, "a");
    assert.deepEqual(pauses, [200, 400]);
    const always = await serving(t, busy);
    await assert.rejects(always.client.job("j"), {
      name: "ApiError",
      status: 503,
      message: "the store is full",
    });
    assert.equal(always.requests.length, 4);
  });

  test("writing is never tried again (K2)", async (t) => {
    const { client, requests } = await serving(t, json(503, { error: "busy" }));
    await assert.rejects(client.submit({}), { status: 503 });
    await assert.rejects(client.control("j", "cancel"), { status: 503 });
    assert.equal(requests.length, 2);
  });

  test("a refusal carries the server's words, or the status text (K1)", async (t) => {
    const { client } = await serving(
      t,
      json(400, { error: "Invalid manifest: no nodes" }),
      (_q, r) => void r.writeHead(502).end("<html>"),
    );
    await assert.rejects(client.submit({}), { status: 400, message: "Invalid manifest: no nodes" });
    await assert.rejects(client.submit({}), { status: 502, message: "Bad Gateway" });
  });

  test("a server of another kind is not a runtime (K1)", async (t) => {
    const { client } = await serving(t, (_q, r) => void r.end("<html>hello"));
    await assert.rejects(client.health(), { name: "Unreachable", message: /not as a Troupe runtime/ });
  });

  test("ids are escaped and queries are built", async (t) => {
    const { client, requests } = await serving(t, json(200, { data: [] }));
    await client.job("a/../b?c");
    await client.jobs({ limit: null, openOnly: false });
    await client.jobs({ limit: 3, openOnly: true });
    await client.deadLetters("r/1", null);
    await client.deadLetters("r/1", 21);
    assert.deepEqual(requests, [
      "GET /api/v1/jobs/a%2F..%2Fb%3Fc -",
      "GET /api/v1/jobs -",
      "GET /api/v1/jobs?limit=3&include_terminal=false -",
      "GET /api/v1/runs/r%2F1/dead-letters -",
      "GET /api/v1/runs/r%2F1/dead-letters?limit=21 -",
    ]);
  });
});
