// The client of the runtime API, against servers whose answers each test decides.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { json, problem, serving, stream } from "../test/server.ts";

const frame = (id: number, type: string) =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ type, payload: {} })}\n\n`;

async function collect(events: AsyncIterable<{ id: number; type: string }>): Promise<string[]> {
  return (await Array.fromAsync(events)).map(({ id, type }) => `${id} ${type}`);
}

describe("following a job", () => {
  test("continues after the last event when the connection is lost, and yields nothing twice", async (t) => {
    const { runtime, requests } = await serving(
      t,
      stream(`retry: 1000\n\n${frame(1, "a")}${frame(2, "b")}id: 3\ndata: {"ty`, "cut"),
      stream(`: keep-alive\n\n${frame(2, "b")}${frame(3, "c")}`),
      stream(frame(4, "job_failed"), "open"),
    );
    assert.deepEqual(await collect(runtime.follow("j")), ["1 a", "2 b", "3 c", "4 job_failed"]);
    assert.deepEqual(
      requests.map(({ headers }) => headers["last-event-id"]),
      [undefined, "2", "3"],
    );
  });

  test("ends at 204: the job has ended and everything was seen", async (t) => {
    const { runtime } = await serving(t, stream(frame(1, "x")), (_q, r) => void r.writeHead(204).end());
    assert.deepEqual(await collect(runtime.follow("j")), ["1 x"]);
  });

  test("of a job that does not exist fails immediately", async (t) => {
    const { runtime, pauses } = await serving(t, json(404, { error: "Job j was not found" }));
    await assert.rejects(collect(runtime.follow("j")), {
      name: "TroupeProblem",
      status: 404,
      message: "Job j was not found",
    });
    assert.deepEqual(pauses, []);
  });
});

test("events that are read together have the numbers that the stream gives them", async (t) => {
  const { runtime } = await serving(t, json(200, { data: [{ type: "a" }, { type: "b" }] }));
  assert.deepEqual(await runtime.events("j"), [
    { id: 1, type: "a" },
    { id: 2, type: "b" },
  ]);
});

test("reading is tried again while the runtime is busy; writing is not", async (t) => {
  const busy = json(503, { error: "the store is full" });
  const reading = await serving(t, busy, busy, json(200, { data: [{ job_id: "a" }] }));
  assert.equal((await reading.runtime.jobs())[0]?.job_id, "a");
  const writing = await serving(t, busy);
  await assert.rejects(writing.runtime.submit({}), { status: 503, message: "the store is full" });
  await assert.rejects(writing.runtime.control("j", "cancel"), { status: 503 });
  assert.equal(writing.requests.length, 2);
});

test("what is no runtime is not taken for one, and a gateway is named", async (t) => {
  const { runtime } = await serving(t, problem(404, "not_found"), (_q, r) => void r.end("<html>hello"));
  await assert.rejects(runtime.submit({}), {
    name: "TroupeUnreachable",
    message: /not as a Troupe runtime \(HTTP 404\)\. It is a Troupe gateway's address/,
  });
  await assert.rejects(runtime.submit({}), { name: "TroupeUnreachable", message: /Check the URL/ });
});

test("ids are escaped and queries are built", async (t) => {
  const { runtime, requests } = await serving(t, json(200, { data: [] }));
  await runtime.job("a/../b?c");
  await runtime.jobs();
  await runtime.jobs({ limit: 3, include_terminal: false });
  await runtime.artifacts("r/1");
  await runtime.deadLetters("r/1", { limit: 21 });
  assert.deepEqual(
    requests.map(({ url }) => url),
    [
      "/api/v1/jobs/a%2F..%2Fb%3Fc",
      "/api/v1/jobs",
      "/api/v1/jobs?limit=3&include_terminal=false",
      "/api/v1/runs/r%2F1/artifacts?evidence=false",
      "/api/v1/runs/r%2F1/dead-letters?limit=21",
    ],
  );
});
