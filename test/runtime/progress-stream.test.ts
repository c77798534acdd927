// The live stream of a job's progress: the record of GET workflow-progress whenever it changes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Block, idsOf, openStream } from "../support/event-stream.ts";
import { aggregator, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, request } from "../support/runtime-api.ts";

const PERIOD_MS = 200;
/** A timer counts whole milliseconds. */
const TIMER_MS = 2;

let program: Program;
before(async () => {
  program = await startRuntimeHere();
});
after(() => program.stop());

const open = (jobId: string, lastEventId?: string) =>
  openStream(program, jobId, lastEventId, "workflow-progress");
const recordsIn = (blocks: readonly Block[]) =>
  blocks
    .filter(({ fields }) => fields.has("data"))
    .map(({ fields }) => {
      assert.equal(fields.get("event"), "workflow_progress");
      return JSON.parse(fields.get("data")!) as JsonObject;
    });
const progressOf = (jobId: string) => call(program, "GET", path(jobId, "/workflow-progress"));
const waiting = (graphId: string) => graph(graphId, [sensor("s"), router("r")], [["s", "r"]]);
const send = (jobId: string) => call(program, "POST", path(jobId, "/messages"), { agent_id: "s", body: {} });

test("every reader gets the record as it is, and as it becomes, until the job has ended", async () => {
  const jobId = await submit(program, waiting("watched"));
  await happens(program, jobId, "agent_started");
  const streams = await Promise.all([open(jobId), open(jobId)]);
  const [first] = streams;
  assert.equal(first?.status, 200);
  assert.match(first?.headers.get("content-type") ?? "", /^text\/event-stream/);
  const begun = await Promise.all(streams.map((stream) => stream.take(2)));
  for (const blocks of begun) {
    assert.equal(blocks[0]?.text, "retry: 1000");
    const [record] = recordsIn(blocks);
    assert.deepEqual([record?.job_id, record?.status], [jobId, "running"]);
    assert.deepEqual(Object.keys(record ?? {}), Object.keys(await progressOf(jobId)));
  }
  await send(jobId);
  const { events } = await ended(program, jobId);
  for (const stream of streams) {
    const blocks = await stream.rest();
    assert.deepEqual(recordsIn(blocks).at(-1), await progressOf(jobId));
    assert.equal(idsOf(blocks).at(-1), events.length);
  }
  assert.deepEqual(recordsIn(await (await open(jobId)).rest()), [await progressOf(jobId)]);
});

test("of a job with many events, records come at most every 200 ms, and each is newer than the one before", async () => {
  const edges = [["a", "all"]] as const;
  const inputs = { initial_inputs: { a: Array.from({ length: 3_000 }, (_, i) => i) } };
  const job = graph("busy", [router("a"), aggregator("all")], [...edges], inputs);
  const beganMs = performance.now();
  const jobId = await submit(program, job);
  const stream = await open(jobId);
  const ids = idsOf(await stream.rest());
  const passedMs = performance.now() - beganMs;
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
  );
  assert.ok(ids.length <= 1 + passedMs / (PERIOD_MS - TIMER_MS), `${ids.length} records in ${passedMs} ms`);
});

test("a reader that comes back gets what is newer, and 204 when nothing follows", async () => {
  const jobId = await submit(program, waiting("resumed"));
  await happens(program, jobId, "agent_started");
  const first = await open(jobId);
  const [id] = idsOf(await first.take(2));
  await first.close();
  const again = await open(jobId, String(id));
  await send(jobId);
  const { events } = await ended(program, jobId);
  const ids = idsOf(await again.rest());
  assert.ok(ids.length > 0 && ids.every((one) => one > id!), `${ids} behind ${id}`);
  assert.equal((await open(jobId, String(events.length))).status, 204);
  assert.equal((await open(jobId, String(events.length + 1))).status, 400);
  assert.equal((await open(jobId, "x")).status, 400);
  const unknown = await request(program, "GET", "/jobs/nope/workflow-progress/stream");
  assert.deepEqual([unknown.status, unknown.body], [404, { error: "Job nope was not found" }]);
});

test("the stream of a job that is cancelled and removed ends", async () => {
  const jobId = await submit(program, waiting("removed"));
  const stream = await open(jobId);
  await stream.take(2);
  await call(program, "POST", "/jobs/cleanup?all=true");
  const statuses = recordsIn(await stream.rest()).map(({ status }) => status);
  assert.ok(statuses.slice(0, -1).every((status) => status === "running"));
  assert.ok(statuses.length === 0 || ["running", "cancelled"].includes(String(statuses.at(-1))));
});
