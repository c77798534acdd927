// Two real programs on one PostgreSQL, of which one is drained, kept in maintenance, and stopped: its jobs go on at the other
// one.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, assertProblem, call, createJob, ended, happens, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { grpcAddress, grpcClient } from "../support/grpc.ts";
import type { Program } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

type Name = "a" | "b";

let gates: Gates;
let nodes: Nodes<Name>;
const ids = {} as Record<Name, string>;

before(async () => {
  // Longer than a test waits for the end of a program.
  const env = () => ({ SVC_DRAIN_SECONDS: "300" });
  [gates, nodes] = await Promise.all([makeGates(), Nodes.start(["a", "b"], { filesAreShared: true, env })]);
  for (const name of ["a", "b"] as const) {
    const { node_id } = JSON.parse(
      await readFile(join(nodes.homes[name], "node.json"), "utf8"),
    ) as JsonObject;
    ids[name] = String(node_id);
  }
});
after(() => Promise.all([nodes[Symbol.asyncDispose](), gates.remove()]));

const node = (name: Name): Program => nodes.of(name);
const order = (at: Name, name: Name, verb: string, body: JsonObject = {}) =>
  call(node(at), "POST", `/nodes/${ids[name]}/${verb}`, body);
const drainOf = (at: Name, name: Name) => call(node(at), "GET", `/nodes/${ids[name]}/drain`);

/** Two commands, one after the other, that wait until their gates are opened. */
const twoGates = (first: string, second: string) =>
  graph(
    "gates",
    [executor("first", ["cat", first], { max_attempts: 1 }), executor("second", ["cat", second])],
    [["first", "second"]],
  );

async function running(at: Name, name: string) {
  const paths = [gates.pipe(`${name}-1`), gates.pipe(`${name}-2`)] as const;
  const runId = await startRun(node(at), await createJob(node(at), twoGates(...paths)));
  await happens(node(at), runId, "sandbox_job_started");
  return { runId, open: (n: 0 | 1) => gates.open(paths[n]) };
}

/** The events of a run that has completed, in whose history nothing is missing. */
async function completed(at: Name, runId: string) {
  const { run, events } = await ended(node(at), runId);
  assert.equal(run.status, "completed");
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, n) => n + 1),
  );
  return events;
}

describe("a node", () => {
  test("that is drained lets its attempts end, gives its jobs away, and takes no new ones until that is taken back", async () => {
    const { runId, open } = await running("a", "drained");
    const asked = await order("b", "a", "drain", { deadline_seconds: 600 });
    assert.equal(asked.state, "draining");
    assert.notEqual(asked.deadline_at, null);
    await until("a has heard of it", () => node("a").output().includes("this node is being drained"));
    const jobId = await createJob(node("a"), graph("n", [executor("n", ["true"])]));
    const refused = await ask(node("a"), "POST", `/jobs/${jobId}/runs`, { body: {} });
    assert.match(String(assertProblem(refused, 503, "unavailable").detail), /Node a is being drained/);
    assert.equal((await drainOf("a", "a")).jobs_left, 1);
    await open(0);
    await happens(node("b"), runId, "job_handed_over");
    await open(1);
    const events = await completed("b", runId);
    const recovered = events.filter(({ type }) => type === "job_recovered");
    assert.deepEqual(
      recovered.map(({ payload }) => payload.handed_over),
      [true],
    );
    assert.ok(!events.some(({ type }) => type === "executor_interrupted"));
    const done = await until("a has no job left", async () => {
      const drain = await drainOf("b", "a");
      return drain.jobs_left === 0 && drain.tasks_left === 0 && Number(drain.moved) >= 1 ? drain : null;
    });
    assert.equal(done.services_left, 0);
    const shown = await startHere(["node", "status", ids.a, "--url", node("b").api], nodes.homes.b).ended;
    assert.match(
      shown.out,
      /state +draining\n +jobs left +0\n +attempts left +0\n +jobs moved +1\n +deadline +20/,
    );
    assert.equal((await order("a", "a", "undrain")).state, "ready");
    await completed("b", await startRun(node("a"), jobId));
  });

  test("ends at its deadline what still runs, which is made again elsewhere and counts as no attempt", async () => {
    const { runId, open } = await running("a", "ended");
    await order("a", "a", "drain", { deadline_seconds: 0 });
    await happens(node("b"), runId, "executor_interrupted");
    await happens(
      node("b"),
      runId,
      ({ type, payload }) => type === "sandbox_job_started" && payload.attempt === 2,
    );
    await open(0);
    await open(1);
    await completed("b", runId);
    await order("b", "a", "undrain");
  });

  test("stays in maintenance when its program starts again", async () => {
    const asked = await order("b", "a", "maintenance", { enabled: true, reason: "new disk" });
    assert.deepEqual([asked.state, asked.reason], ["maintenance", "new disk"]);
    assertProblem(await ask(node("b"), "POST", `/nodes/${ids.a}/undrain`), 409, "conflict");
    assertProblem(await ask(node("b"), "POST", "/nodes/node_none/undrain"), 404, "node_not_found");
    assert.deepEqual(await node("a").stop(), { code: 0, signal: null });
    assert.equal((await drainOf("b", "a")).state, "left");
    assertProblem(await ask(node("b"), "POST", `/nodes/${ids.a}/drain`, { body: {} }), 409, "conflict");
    await nodes.start("a");
    assert.equal((await drainOf("a", "a")).state, "maintenance");
    const jobId = await createJob(node("a"), graph("n", [executor("n", ["true"])]));
    const refused = await ask(node("a"), "POST", `/jobs/${jobId}/runs`, { body: {} });
    assert.match(String(assertProblem(refused, 503, "unavailable").detail), /Node a is in maintenance/);
    assert.equal((await order("a", "a", "maintenance", { enabled: false })).state, "ready");
    await completed("a", await startRun(node("a"), jobId));
  });

  test("is drained and kept in maintenance over the runtime protocol of another one", async () => {
    using client = grpcClient(grpcAddress(node("b").output()), "svc.runtime.v1.NodeService");
    const state = async (method: string, fields: JsonObject = {}) =>
      (await client.call(method, { node_id: ids.a, ...fields })).drain;
    const drained = await state("DrainNode", { deadline_seconds: 600, services_last: false });
    assert.deepEqual([drained.state, drained.node_id], ["draining", ids.a]);
    assert.notEqual(drained.deadline_at, null);
    assert.equal((await state("GetNodeDrainStatus")).state, "draining");
    assert.equal((await state("CancelNodeDrain")).state, "ready");
    const kept = await state("SetNodeMaintenance", { enabled: true, reason: "new disk" });
    assert.deepEqual([kept.state, kept.reason], ["maintenance", "new disk"]);
    await assert.rejects(state("CancelNodeDrain"), { code: status.FAILED_PRECONDITION });
    await assert.rejects(state("SetNodeMaintenance"), { code: status.INVALID_ARGUMENT });
    await assert.rejects(state("DrainNode", { deadline_seconds: -1 }), { code: status.INVALID_ARGUMENT });
    assert.equal((await state("SetNodeMaintenance", { enabled: false })).state, "ready");
    const { items } = await client.call("ListNodes");
    assert.deepEqual(items.map((one: JsonObject) => [one.name, one.status]).sort(), [
      ["a", "ready"],
      ["b", "ready"],
    ]);
    assert.deepEqual((await client.call("ReconcileNode", { node_id: ids.a })).differences, []);
  });

  test("that is stopped is drained first", async () => {
    const { runId, open } = await running("b", "stopped");
    const stopped = node("b").stop();
    await until("b is drained", async () => (await drainOf("a", "b")).state === "draining");
    await open(0);
    await happens(node("a"), runId, "job_handed_over");
    assert.deepEqual(await stopped, { code: 0, signal: null });
    await open(1);
    const events = await completed("a", runId);
    assert.ok(!events.some(({ type }) => type === "executor_interrupted"));
    assert.equal((await drainOf("a", "b")).state, "left");
  });

  test("that is stopped with all others waits for none of them", async () => {
    await nodes.start("b");
    await until("b is ready", async () => (await drainOf("a", "b")).state === "ready");
    const [ofA, ofB] = [await running("a", "with-a"), await running("b", "with-b")];
    const exits = await Promise.all([node("a").stop(), node("b").stop()]);
    assert.deepEqual(exits, Array(2).fill({ code: 0, signal: null }));
    await Promise.all([nodes.start("a"), nodes.start("b")]);
    for (const { runId, open } of [ofA, ofB]) {
      await open(0);
      await open(1);
      await completed("a", runId);
    }
  });
});
