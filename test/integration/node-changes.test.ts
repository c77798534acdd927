// Real programs on one PostgreSQL that are added to a cluster, leave it, and are removed from it.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, assertProblem, call, createJob, ended, happens, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { inPostgres } from "../support/postgres.ts";
import type { Program } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

type Name = "a" | "b" | "c";
/** Of a program whose node has left as it was asked to. */
const LEFT = { code: 3, signal: null };

let gates: Gates;
let nodes: Nodes<Name>;
before(async () => {
  [gates, nodes] = await Promise.all([makeGates(), Nodes.start(["a", "b", "c"], { filesAreShared: true })]);
});
after(() => Promise.all([nodes[Symbol.asyncDispose](), gates.remove()]));

const node = (name: Name): Program => nodes.of(name);
const change = (at: Name, verb: string, body: JsonObject = {}) =>
  call(node(at), "POST", `/system/cluster/nodes:${verb}`, body);
const refused = async (at: Name, verb: string, body: JsonObject) =>
  ask(node(at), "POST", `/system/cluster/nodes:${verb}`, { body });

async function shown(at: Name, name: Name): Promise<JsonObject> {
  const { items } = await call(node(at), "GET", `/nodes?name=${name}`);
  return (items as JsonObject[])[0]!;
}

const operationEnded = (at: Name, { operation_id: id }: JsonObject) =>
  until(`the end of ${id}`, async () => {
    const operation = await call(node(at), "GET", `/operations/${id}`);
    return ["completed", "failed"].includes(String(operation.status)) && operation;
  });

async function running(at: Name, name: string) {
  const gate = gates.pipe(name);
  const runId = await startRun(
    node(at),
    await createJob(node(at), graph("gate", [executor("x", ["cat", gate])])),
  );
  await happens(node(at), runId, "sandbox_job_started");
  return { runId, open: () => gates.open(gate) };
}

const leaseIsOver = (name: Name) =>
  inPostgres(
    nodes.environmentOf(name).SVC_DATABASE_URL!,
    `UPDATE nodes SET lease_until = least(lease_until, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
      WHERE name = '${name}'`,
  );

describe("a node", () => {
  test("that leaves gives its jobs away and ends its program, and is the same node when that starts again", async () => {
    const { runId, open } = await running("b", "leaves");
    const { node_id } = await shown("a", "b");
    const leaving = startHere(["node", "leave", "--url", node("b").api], nodes.homes.b).ended;
    await until("b is drained", async () => (await shown("a", "b")).status === "draining");
    assertProblem(await refused("a", "remove", { name: "b" }), 409, "node_busy");
    const other = await change("c", "leave");
    assertProblem(await refused("a", "leave", {}), 409, "last_node");
    await until("c is drained", async () => (await shown("a", "c")).status === "draining");
    await call(node("c"), "POST", `/nodes/${(await shown("a", "c")).node_id}/undrain`);
    assert.equal((await operationEnded("c", other)).status, "failed");
    await open();
    const { code, out, err } = await leaving;
    assert.equal(code, 0, out + err);
    assert.match(err, /jobs and \d+ attempts are left/);
    assert.deepEqual(await node("b").exited, LEFT);
    assert.equal((await ended(node("a"), runId)).run.status, "completed");
    assert.equal((await shown("a", "b")).status, "left");
    await nodes.start("b");
    assert.deepEqual([(await shown("a", "b")).node_id, (await shown("a", "b")).status], [node_id, "ready"]);
  });

  test("stays when its drain is taken back", async () => {
    const { runId, open } = await running("b", "stays");
    const operation = await change("a", "remove", { name: "b" });
    assert.equal(operation.kind, "node_removal");
    await until("b is drained", async () => (await shown("a", "b")).status === "draining");
    const undrain = startHere(["node", "undrain", "b", "--url", node("a").api], nodes.homes.a).ended;
    assert.equal((await undrain).code, 0);
    const end = await operationEnded("b", operation);
    assert.deepEqual([end.status, (end.error as JsonObject).code], ["failed", "node_stays"]);
    await open();
    assert.equal((await ended(node("b"), runId)).run.status, "completed");
  });

  test("that is lost is removed at once, and its jobs go on elsewhere whatever their recovery mode", async () => {
    const { runId, open } = await running("b", "lost");
    await node("b").kill();
    await leaseIsOver("b");
    const operation = await change("a", "remove", { name: "b" });
    assert.equal((await operationEnded("a", operation)).status, "completed");
    await happens(node("a"), runId, "job_recovered");
    await open();
    assert.equal((await ended(node("a"), runId)).run.status, "completed");
    const { node_id } = await shown("a", "b");
    for (const added of [false, true]) {
      await assert.rejects(
        nodes.start("b"),
        /ended early \(3\).*was removed from the cluster.*an empty folder.*`troupe node add b`/s,
      );
      if (!added) assert.notEqual((await change("a", "add", { name: "b" })).node_id, node_id);
    }
    await rm(nodes.homes.b, { recursive: true });
    await nodes.start("b");
  });

  test("is removed also when the program that was asked for it dies, and with force while it works", async () => {
    const { runId, open } = await running("b", "carried on");
    const asked = ["node", "remove", "b", "--no-wait", "--json", "--url", node("c").api];
    const operation = JSON.parse((await startHere(asked, nodes.homes.c).ended).out) as JsonObject;
    await until("b is drained", async () => (await shown("a", "b")).status === "draining");
    await node("c").kill();
    await leaseIsOver("c");
    await open();
    assert.equal((await operationEnded("a", operation)).status, "completed");
    assert.deepEqual(await node("b").exited, LEFT);
    assert.equal((await ended(node("a"), runId)).run.status, "completed");

    assertProblem(await refused("a", "leave", {}), 409, "last_node");
    await nodes.start("c");
    const forced = await running("c", "forced");
    assert.equal(
      (await operationEnded("a", await change("a", "remove", { name: "c", force: true }))).status,
      "completed",
    );
    assert.deepEqual(await node("c").exited, LEFT);
    await happens(node("a"), forced.runId, "job_recovered");
    await forced.open();
    assert.equal((await ended(node("a"), forced.runId)).run.status, "completed");
    assertProblem(await refused("a", "remove", { name: "a" }), 409, "last_node");
  });
});

test("a node is added once, and its token is shown once", async () => {
  const headers = { "idempotency-key": "one" };
  const added = await ask(node("a"), "POST", "/system/cluster/nodes:add", { body: { name: "d" }, headers });
  assert.equal(added.status, 201, added.text);
  assert.equal(added.headers.get("location"), `/api/v1/nodes/${added.body.node_id}`);
  const again = await ask(node("a"), "POST", "/system/cluster/nodes:add", { body: { name: "d" }, headers });
  const { join_token: token, ...rest } = added.body;
  assert.match(String(token), /^node_[0-9a-z]+\.[\w-]{64}$/);
  assert.deepEqual([again.status, again.body], [201, rest]);
  const other = await change("a", "add", { name: "d", labels: { zone: "b" } });
  assert.notEqual(other.node_id, rest.node_id);
  assert.notEqual(other.join_token, token);
  await inPostgres(
    nodes.environmentOf("a").SVC_DATABASE_URL!,
    `DO $$ BEGIN
      ASSERT NOT EXISTS (SELECT FROM idempotency, expected_nodes AS nodes
        WHERE position('${String(token).split(".")[1]}' IN idempotency::text || nodes::text) > 0);
    END $$`,
  );
});

test("what is asked for is checked", async () => {
  for (const [verb, body] of [
    ["add", {}],
    ["add", { name: "" }],
    ["add", { name: "x\ny" }],
    ["add", { name: "x", labels: { "a b": "c" } }],
    ["add", { name: "x", labels: { a: "ü" } }],
    ["remove", {}],
    ["remove", { name: "a", node_id: "node_x" }],
    ["leave", { deadline_seconds: -1 }],
  ] as const)
    assertProblem(await refused("a", verb, body), 422, "validation_failed");
  assertProblem(await refused("a", "add", { name: "a" }), 409, "conflict");
  assertProblem(await refused("a", "remove", { name: "nobody" }), 404, "node_not_found");
  assertProblem(await refused("a", "remove", { node_id: "node_nobody" }), 404, "node_not_found");
});

test("the last node is removed with force", async () => {
  assert.equal((await change("a", "remove", { name: "a", force: true })).kind, "node_removal");
  assert.deepEqual(await node("a").exited, LEFT);
});
