// The runtime API's frame: health, the system summary, error bodies, and who may call at all. Sentences in
// quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { hostname } from "node:os";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import { freePorts } from "../support/ports.ts";
import type { Program } from "../support/program.ts";
import { exchange, request as rawRequest } from "../support/raw-http.ts";
import { call, request } from "../support/runtime-api.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere({ env: { SVC_EXECUTOR_POOL_CAPACITIES: "default=3,gpu=2" } });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

test('"the port is changed with the environment variable SVC_API_PORT"', async () => {
  const port = await freePorts(1);
  await using other = await startRuntimeHere({ env: { SVC_API_PORT: String(port) } });
  assert.equal(new URL(other.url).port, String(port));
  assert.equal((await call(other, "GET", "/health")).status, "ok");
});

interface Summary {
  readonly nodes: readonly JsonObject[];
  readonly jobs: readonly JsonObject[];
}
const summary = async () => (await call(program, "GET", "/system/summary")) as unknown as Summary;
const poolsOf = (of: Summary) => of.nodes[0]?.executor_pools as Record<string, JsonObject>;

test('"GET /health: 200, object with status (string)"', async () => {
  const { status, body } = await request(program, "GET", "/health");
  assert.equal(status, 200);
  assert.equal(body.status, "ok");
  assert.equal(typeof body.version, "string");
  assert.ok(Number.isInteger(body.uptime_seconds));
});

test('"System summary: nodes and jobs (objects with job_id and status)", and of a node every field of the spec', async () => {
  const { jobId } = await run(program, graph("summary", [router("r")]));
  const seen = await summary();
  assert.deepEqual(Object.keys(seen).sort(), ["jobs", "nodes"]);
  assert.equal(seen.nodes.length, 1);
  const {
    executor_pools,
    name,
    connected_nodes,
    "self?": self,
    scheduler_hint,
    ...more
  } = seen.nodes[0] ?? {};
  const node = { name, connected_nodes, self, scheduler_hint };
  assert.deepEqual(node, { name: hostname(), connected_nodes: [], self: true, scheduler_hint: "local" });
  assert.deepEqual(Object.keys(executor_pools as JsonObject).sort(), ["@web-ui", "default", "gpu"]);
  const { node_id: id, status, jobs_owned, tasks_running } = more;
  assert.deepEqual([typeof id, status, jobs_owned, tasks_running], ["string", "ready", 0, 0]);
  for (const field of ["pools", "self"]) assert.ok(!(field in more), `${field} has another name here`);
  assert.deepEqual(
    seen.jobs.find((job) => job.job_id === jobId),
    { job_id: jobId, status: "completed" },
  );
});

test('"executor_pools: capacity, available, in_use, queued, active, all integers", and they follow the leases', async () => {
  assert.deepEqual(poolsOf(await summary()), {
    default: { capacity: 3, available: 3, in_use: 0, queued: 0, active: 0 },
    gpu: { capacity: 2, available: 2, in_use: 0, queued: 0, active: 0 },
    // For the dashboards of runs.
    "@web-ui": { capacity: 50, available: 50, in_use: 0, queued: 0, active: 0 },
  });
  const gate = gates.pipe("pools");
  const holder = executor("holder", ["cat", gate], { pool: "gpu", pool_slots: 2 });
  const waiter = executor("waiter", ["true"], { pool: "gpu" });
  const jobId = await submit(
    program,
    graph(
      "pools",
      [router("r"), holder, waiter],
      [
        ["r", "holder"],
        ["r", "waiter"],
      ],
    ),
  );
  await happens(
    program,
    jobId,
    (event) => event.type === "executor_lease_requested" && event.agent_id === "waiter",
  );
  assert.deepEqual(poolsOf(await summary()).gpu, {
    capacity: 2,
    available: 0,
    in_use: 2,
    queued: 1,
    active: 1,
  });
  await gates.open(gate);
  assert.equal((await ended(program, jobId)).status, "completed");
  assert.deepEqual(poolsOf(await summary()).gpu, {
    capacity: 2,
    available: 2,
    in_use: 0,
    queued: 0,
    active: 0,
  });
});

const wrong: readonly [method: string, path: string, status: number, error: RegExp][] = [
  ["GET", "/nothing", 404, /no GET \/api\/v1\/nothing/],
  ["DELETE", "/jobs", 404, /no DELETE/],
  ["PUT", "/jobs/x/cancel", 404, /no PUT/],
  ["GET", "/jobs/nope", 404, /^Job nope was not found$/],
  ["GET", "/jobs/nope/events", 404, /^Job nope was not found$/],
  ["GET", "/jobs/nope/events/stream", 404, /^Job nope was not found$/],
  ["POST", "/jobs/nope/cancel", 404, /^Job nope was not found$/],
  ["POST", "/jobs/nope/pause", 404, /^Job nope was not found$/],
  ["POST", "/jobs/nope/resume", 404, /^Job nope was not found$/],
  ["POST", "/bundles/nope/reload", 404, /^Bundle nope not found$/],
  ["GET", "/runs/nope/artifacts", 404, /^Run nope was not found$/],
  ["GET", "/runs/nope/artifacts/x", 404, /Run "nope" has no artifact "x"/],
  ["GET", "/jobs?limit=many", 400, /limit/],
  ["POST", "/jobs", 400, /^Invalid or missing JSON payload$/],
];
for (const [method, where, status, error] of wrong) {
  test(`"error bodies have the shape {error: string}": ${method} ${where} answers ${status}`, async () => {
    const answer = await request(program, method, where);
    assert.equal(answer.status, status);
    assert.deepEqual(Object.keys(answer.body), ["error"]);
    assert.match(String(answer.body.error), error);
  });
}

test("unknown routes outside the prefix answer 404 {error}, as JSON", async () => {
  for (const url of [`${program.url}/`, `${program.url}/api/v2/jobs`, `${program.url}/health`]) {
    const answer = await fetch(url);
    assert.equal(answer.status, 404, url);
    assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
    assert.deepEqual(Object.keys((await answer.json()) as object), ["error"]);
  }
});

test("a Host that is not loopback is refused with 403, so that a rebound DNS name reaches nothing", async () => {
  for (const host of [
    "evil.example",
    "evil.example:4000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
  ]) {
    const [answer] = await exchange(
      program,
      rawRequest("GET", "/api/v1/health", [`Host: ${host}`, "Connection: close"]),
    );
    assert.equal(answer?.status, 403, host);
    assert.deepEqual(Object.keys(JSON.parse(answer.body) as object), ["error"]);
  }
});

test("every loopback name is served", async () => {
  for (const host of [
    "localhost",
    "LOCALHOST:4000",
    "127.0.0.1",
    "127.8.8.8:1",
    "[::1]:4000",
    "troupe.localhost",
  ]) {
    const [answer] = await exchange(
      program,
      rawRequest("GET", "/api/v1/health", [`Host: ${host}`, "Connection: close"]),
    );
    assert.equal(answer?.status, 200, host);
  }
});

test("a web page of another origin can neither read nor change anything: 403", async () => {
  const jobs = (await summary()).jobs.length;
  for (const origin of [
    "http://evil.example",
    "null",
    "https://127.0.0.1",
    program.url.replace(/\d+$/, "1"),
  ]) {
    const headers = { origin, "content-type": "application/json" };
    const body = JSON.stringify(graph("foreign", [router("r")]));
    const post = await fetch(`${program.api}/jobs`, { method: "POST", headers, body });
    assert.equal(post.status, 403, origin);
    assert.deepEqual(Object.keys((await post.json()) as object), ["error"]);
    const get = await fetch(`${program.api}/jobs`, { headers: { origin } });
    assert.equal(get.status, 403, origin);
    await get.body?.cancel();
  }
  assert.equal((await summary()).jobs.length, jobs);
});

test("the server's own origin is welcome", async () => {
  const answer = await fetch(`${program.api}/health`, { headers: { origin: program.url } });
  assert.equal(answer.status, 200);
  await answer.body?.cancel();
});

test("no route of a job is found under another job's id", async () => {
  const { jobId } = await run(program, graph("mine", [router("r")]));
  assert.equal((await request(program, "GET", path(`${jobId}x`))).status, 404);
  assert.equal((await request(program, "GET", path(jobId.toUpperCase()))).status, 404);
});
