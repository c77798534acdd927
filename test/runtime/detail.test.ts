// GET /jobs/:job_id: every field of the job detail. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { hostname } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { aggregator, answer, executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call } from "../support/runtime-api.ts";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere();
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const detailOf = async (jobId: string) => {
  const detail = await call(program, "GET", path(jobId));
  return {
    job: detail.job as JsonObject,
    summary: detail.summary as JsonObject,
    agents: detail.agents as readonly JsonObject[],
    recent: detail.recent_events as readonly JsonObject[],
    sandboxes: detail.sandboxes as readonly JsonObject[],
    keys: Object.keys(detail),
  };
};
const agent = (agents: readonly JsonObject[], id: string) => agents.find((one) => one.agent_id === id) ?? {};

test("the detail has exactly job, summary, agents, recent_events and sandboxes", async () => {
  const { jobId } = await run(program, graph("keys", [router("r")]));
  assert.deepEqual((await detailOf(jobId)).keys, ["job", "summary", "agents", "recent_events", "sandboxes"]);
});

test('"Job record": every field, with its type and value', async () => {
  const manifest = graph(
    "record",
    [router("a"), router("b"), aggregator("all")],
    [
      ["a", "all"],
      ["b", "all"],
    ],
    {
      job_name: "named",
      entrypoints: ["b", "a"],
      initial_inputs: { a: [1], b: [2] },
    },
  );
  const { jobId } = await run(program, manifest);
  const { submitted_at, updated_at, run_id, trace_id, observability_summary, ...job } = (
    await detailOf(jobId)
  ).job;
  assert.match(String(submitted_at), ISO);
  assert.match(String(updated_at), ISO);
  assert.ok(String(submitted_at) <= String(updated_at));
  assert.match(String(run_id), /^run_[0-9a-z]+$/);
  assert.match(String(trace_id), /^[0-9a-f]{32}$/);
  assert.equal((observability_summary as JsonObject).schema_version, "svc.observability_summary.v1");
  const { messages } = job.result as { messages: number[] };
  assert.deepEqual(job, {
    job_id: jobId,
    graph_id: "record",
    job_name: "named",
    status: "completed",
    placement_policy: "local",
    priority: "normal",
    weight: 1,
    recovery_policy: "local_restart",
    type: "batch",
    root_agent_ids: ["b", "a"],
    result: { messages, count: 2, last_message: messages[1] ?? null },
    human_pending: 0,
    partial: false,
    manifest_ref: {
      graph_id: "record",
      manifest_version: "1.0",
      manifest_path: null,
      job_path: join(program.home, "runs", String(run_id)),
      cache_path: null,
    },
  });
});

test('"result: object", also while there is none', async () => {
  const jobId = await submit(program, graph("no-result", [sensor("s")]));
  assert.deepEqual((await detailOf(jobId)).job.result, {});
});

test('"Job summary": every field, of a job at rest', async () => {
  const nodes = [router("r"), executor("e1", ["true"]), executor("e2", ["true"])];
  const { jobId } = await run(program, graph("summed", nodes, [["r", "e1"]]));
  const { summary, job } = await detailOf(jobId);
  const { last_event, ...rest } = summary;
  assert.deepEqual(rest, {
    job_id: jobId,
    graph_id: "summed",
    job_name: null,
    status: "completed",
    submitted_at: job.submitted_at ?? "",
    updated_at: job.updated_at ?? "",
    placement_policy: "local",
    priority: "normal",
    weight: 1,
    recovery_policy: "local_restart",
    executor_count: 2,
    active_executors: 0,
    nodes: [],
    sandbox_names: [],
  });
  assert.equal((last_event as JsonObject).type, "job_completed");
  assert.equal((last_event as JsonObject).timestamp, job.updated_at);
});

describe("while a command runs", () => {
  let jobId: string;
  let gate: string;
  let sandboxName: unknown;
  before(async () => {
    gate = gates.pipe("detail");
    const busy = executor("busy", ["cat", gate], { pool_slots: 2 });
    const edges = [
      ["start", "busy", "work"],
      ["start", "busy"],
      ["busy", "after"],
    ] as const;
    const start = router("start", { emit_type: "work" });
    jobId = await submit(
      program,
      graph("running", [start, { ...busy, type: "map", role: "slow" }, router("after")], edges),
    );
    sandboxName = (await happens(program, jobId, "sandbox_job_started")).payload.sandbox_name;
  });

  test('"Agent snapshot": every field, the keys literally running? and paused?, the lease an object', async () => {
    const { agents } = await detailOf(jobId);
    const { lease, ...busy } = agent(agents, "busy");
    assert.deepEqual(busy, {
      agent_id: "busy",
      agent_type: "executor",
      type: "map",
      assigned_node: hostname(),
      status: "running",
      "running?": true,
      processed_messages: 1,
      mailbox_depth: 1,
      "paused?": false,
      last_error: null,
      sandbox_name: sandboxName,
      current_state: {},
      metadata: { paused: false, outbound_edges: [{ to_node: "after" }] },
    });
    const { lease_id, ...held } = lease as JsonObject;
    assert.match(String(lease_id), /^lease_/);
    assert.deepEqual(held, { pool: "default", slots: 2 });
  });

  test('"lease is null or the object", and an agent that nothing reached yet is pending', async () => {
    const { agents } = await detailOf(jobId);
    assert.equal(agents.length, 3);
    assert.equal(agent(agents, "start").lease, null);
    const after = agent(agents, "after");
    assert.equal(after.lease, null);
    assert.equal(after.status, "pending");
    assert.equal(after["running?"], false);
    assert.equal(after.processed_messages, 0);
    assert.deepEqual((agent(agents, "start").metadata as JsonObject).outbound_edges, [
      { to_node: "busy", message_type: "work" },
      { to_node: "busy" },
    ]);
  });

  test('"sandboxes: active sandbox records", and the summary names them', async () => {
    const { summary, sandboxes } = await detailOf(jobId);
    assert.equal(sandboxes.length, 1);
    // Of the peaks, which come with the first look, sandbox.test.ts has more.
    const { started_at, peaks: _, ...sandbox } = sandboxes[0] ?? {};
    assert.match(String(started_at), ISO);
    assert.deepEqual(sandbox, {
      sandbox_name: sandboxName,
      agent_id: "busy",
      status: "running",
      attempt: 1,
      pool: "default",
    });
    assert.equal(summary.active_executors, 1);
    assert.deepEqual(summary.nodes, [hostname()]);
    assert.deepEqual(summary.sandbox_names, [sandboxName]);
  });

  test("once it has ended, no sandbox, lease or sandbox name is left", async () => {
    await gates.open(gate);
    // The second message runs the command again.
    await happens(
      program,
      jobId,
      (event) => event.type === "sandbox_job_started" && event.payload.sandbox_name !== sandboxName,
    );
    await gates.open(gate);
    assert.equal((await ended(program, jobId)).status, "completed");
    const { summary, sandboxes, agents } = await detailOf(jobId);
    assert.deepEqual(sandboxes, []);
    assert.equal(summary.active_executors, 0);
    assert.deepEqual(summary.sandbox_names, []);
    const busy = agent(agents, "busy");
    assert.equal(busy.lease, null);
    assert.equal(busy.sandbox_name, null);
    assert.equal(busy.status, "done");
    assert.equal(busy["running?"], false);
    assert.equal(busy.processed_messages, 2);
    assert.equal(busy.mailbox_depth, 0);
  });
});

test('"recent_events: up to 25", newest first, and the same objects as in the history', async () => {
  const inputs = Array.from({ length: 40 }, (_, i) => i);
  const { jobId } = await run(program, graph("recent", [router("r")], [], { initial_inputs: { r: inputs } }));
  const { recent } = await detailOf(jobId);
  const history = (await call(program, "GET", path(jobId, "/events"))).data as readonly JsonObject[];
  assert.equal(recent.length, 25);
  assert.deepEqual(recent, history.slice(-25).reverse());
  assert.equal(recent[0]?.type, "job_completed");
});

test("a short history is in recent_events as a whole", async () => {
  const jobId = await submit(program, graph("short", [sensor("s")]));
  const { recent } = await detailOf(jobId);
  const history = (await call(program, "GET", path(jobId, "/events"))).data as readonly JsonObject[];
  assert.ok(recent.length < 25);
  assert.deepEqual(recent, history.toReversed());
});

test("an agent's last error and current state are shown, and a failed job has its failure", async () => {
  const ok = executor("keeps", answer({ next_state: { page: 7 } }));
  const bad = executor("breaks", "echo no luck >&2; exit 3");
  const { jobId } = await run(
    program,
    graph(
      "shown",
      [router("r"), ok, bad],
      [
        ["r", "keeps"],
        ["keeps", "breaks"],
      ],
    ),
  );
  const { agents, job } = await detailOf(jobId);
  assert.deepEqual(agent(agents, "keeps").current_state, { page: 7 });
  assert.equal(agent(agents, "breaks").status, "failed");
  assert.equal(typeof agent(agents, "breaks").last_error, "string");
  assert.equal(job.status, "failed");
  const failure = job.failure as { code: string; details: JsonObject };
  assert.equal(failure.code, "executor.exit_nonzero");
  assert.equal(failure.details.agent_id, "breaks");
  assert.equal(failure.details.exit_code, 3);
  assert.match(String(failure.details.stderr_tail), /no luck/);
});

test('"paused?" and metadata.paused are true while the job is held', async () => {
  const jobId = await submit(program, graph("held", [sensor("s"), router("r")], [["s", "r"]]));
  await call(program, "POST", path(jobId, "/pause"));
  const { agents, job } = await detailOf(jobId);
  assert.equal(job.status, "paused");
  assert.equal(agent(agents, "s")["paused?"], true);
  assert.equal((agent(agents, "s").metadata as JsonObject).paused, true);
  assert.equal(agent(agents, "s").status, "paused");
  assert.equal(agent(agents, "s")["running?"], false);
});
