// GET /jobs: which jobs, in which order, with which fields, however many there are. Sentences in quotes are the
// specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

/** More than two pages of the store, and no multiple of a page. */
const FINISHED = 1_003;
const OPEN = 5;
let program: Program;
const openIds: string[] = [];

before(async () => {
  program = await startRuntimeHere();
  for (let left = FINISHED; left > 0; left -= 500) {
    const items = Array.from({ length: Math.min(left, 500) }, () => graph("done", [router("r")]));
    await call(program, "POST", "/jobs:batch", { items });
  }
  await until(
    "all of them have ended",
    async () => (await list("?include_terminal=false&limit=1")).length === 0,
  );
  for (let i = 0; i < OPEN; i++) openIds.push(await submit(program, graph("open", [sensor("wait")])));
});
after(() => program.stop());

const list = async (query = "") =>
  (await call(program, "GET", `/jobs${query}`)).data as readonly JsonObject[];

test('"limit: default all", and every job is in the list once', async () => {
  const jobs = await list();
  assert.equal(jobs.length, FINISHED + OPEN);
  assert.equal(new Set(jobs.map((job) => job.job_id)).size, FINISHED + OPEN);
});

test("the newest job comes first, through all pages", async () => {
  const jobs = await list();
  assert.deepEqual(
    jobs.slice(0, OPEN).map((job) => job.job_id),
    openIds.toReversed(),
  );
  const order = jobs.map((job) => `${String(job.submitted_at)} ${String(job.job_id)}`);
  const descending = order.every((one, i) => i === 0 || (order[i - 1] ?? "") >= one);
  assert.ok(descending, "submitted_at, then job_id, never rise");
});

test('"limit (integer)": that many of the newest, also across pages', async () => {
  const all = await list();
  for (const limit of [1, 3, 500, 501, 1_000, 1_001, FINISHED + OPEN, 1_000_000]) {
    assert.deepEqual(
      (await list(`?limit=${limit}`)).map((job) => job.job_id),
      all.slice(0, limit).map((job) => job.job_id),
      String(limit),
    );
  }
});

test("limit=0 is an empty list", async () => {
  assert.deepEqual(await call(program, "GET", "/jobs?limit=0"), { data: [] });
});

test('"bad query values: 400"', async () => {
  const bad = [
    "limit=-1",
    "limit=1.5",
    "limit=",
    "limit=ten",
    "limit=1e3",
    "limit=0x10",
    "limit=%20",
    "limit=1&limit=2",
  ];
  const badBooleans = [
    "include_terminal=yes",
    "include_terminal=1",
    "include_terminal=",
    "include_terminal=TRUE",
  ];
  for (const query of [...bad, ...badBooleans, `limit=${"9".repeat(400)}`]) {
    const { status, body } = await request(program, "GET", `/jobs?${query}`);
    assert.equal(status, 400, query);
    assert.deepEqual(Object.keys(body), ["error"]);
    assert.match(String(body.error), /limit|include_terminal/);
  }
});

test('"include_terminal: default true; false excludes completed, failed, cancelled"', async () => {
  const failed = await run(program, graph("failed", [executor("bad", ["false"])]));
  assert.equal(failed.status, "failed");
  const cancelled = await submit(program, graph("cancelled", [sensor("wait")]));
  await call(program, "POST", `/jobs/${cancelled}/cancel`);
  const openOnly = (await list("?include_terminal=false")).map((job) => job.job_id);
  assert.deepEqual(openOnly, openIds.toReversed());
  const all = await list("?include_terminal=true&limit=2");
  assert.deepEqual(
    all.map((job) => job.status),
    ["cancelled", "failed"],
  );
  assert.deepEqual(
    (await list("?include_terminal=false&limit=2")).map((job) => job.job_id),
    openIds.toReversed().slice(0, 2),
  );
});

test('"items carry job_id, graph_id, status, submitted_at, updated_at", and the other fields of the summary', async () => {
  const item = (await list("?include_terminal=false&limit=1"))[0] ?? {};
  const { job_id, run_id, submitted_at, updated_at, nodes, last_event, trace_id, ...rest } = item;
  assert.equal(job_id, openIds.at(-1));
  assert.match(String(run_id), /^run_/);
  assert.match(String(trace_id), /^[0-9a-f]{32}$/);
  for (const time of [submitted_at, updated_at])
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal((nodes as readonly string[]).length, 1);
  assert.equal((last_event as JsonObject).type, "agent_message_received");
  assert.deepEqual(rest, {
    graph_id: "open",
    job_name: null,
    status: "running",
    placement_policy: "local",
    priority: "normal",
    weight: 1,
    recovery_policy: "local_restart",
    executor_count: 0,
    active_executors: 0,
    sandbox_names: [],
    human_pending: 0,
  });
});

test("a long list is streamed: it has no Content-Length, and a reader may leave in the middle", async () => {
  const whole = await fetch(`${program.api}/jobs`);
  assert.equal(whole.headers.get("content-length"), null);
  assert.match(whole.headers.get("content-type") ?? "", /^application\/json/);
  await whole.body?.cancel();
  assert.equal((await list("?limit=1")).length, 1);
});

test("jobs that arrive while the list is read change nothing about those that were there", async () => {
  const before = (await list()).map((job) => job.job_id);
  const [during] = await Promise.all([
    list(),
    ...Array.from({ length: 50 }, () => submit(program, graph("late", [router("r")]))),
  ]);
  const ids = during.map((job) => job.job_id);
  const known = new Set(before);
  assert.deepEqual(
    ids.filter((id) => known.has(id ?? null)),
    before,
  );
});
