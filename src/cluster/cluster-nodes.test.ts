// How nodes are shown, and what they come to together.

import assert from "node:assert/strict";
import { test } from "node:test";
import { machineResources } from "../../test/support/machine.ts";
import { onlyNode, sharedNodes, totalsOf } from "./cluster-nodes.ts";
import type { NodeReads, NodeRecord } from "./nodes.ts";

const use = (inUse: number, queued = 0) => ({ in_use: inUse, queued, active: inUse });

const load = {
  resources: machineResources(),
  reserved: { default: use(3, 7) },
  jobsOwned: 9,
  tasksRunning: 3,
};
const own = {
  nodeId: "n1",
  name: "one",
  version: "1.0.0",
  labels: { zone: "a" },
  pools: { default: 4 },
  totals: { cpu_cores: 2 },
  load: () => load,
};

function record(nodeId: string, more: Partial<NodeRecord> = {}): NodeRecord {
  const { load: _, ...entry } = own;
  const renewed = {
    resources: null,
    reserved: { default: use(1) },
    jobsOwned: 2,
    tasksRunning: 1,
    connectedNodes: ["n1"],
  };
  const drain = { servicesOwned: 0, jobsMoved: 0, drainUntilMs: null, maintenanceReason: null };
  const times = { startedAtMs: 5, heartbeatAtMs: 6, leaseUntilMs: 7, leaseLeftMs: 1 };
  const place = { nodeId, owner: `${nodeId}/1`, address: `${nodeId}:1` };
  return { ...entry, ...place, status: "ready", ...renewed, ...drain, ...times, ...more };
}

function reading(records: readonly NodeRecord[]): NodeReads {
  return {
    present: async () => records,
    page: async () => records,
    find: async (nodeId) => records.find((one) => one.nodeId === nodeId) ?? null,
    livingFirst: async () => records,
  };
}

test("of other nodes their rows are shown, of the own one what it is doing now", async () => {
  const nodes = sharedNodes(reading([record("n1"), record("n2")]), own);
  const [first, second] = await nodes.page(10, null);
  assert.equal(first?.isSelf, true);
  assert.deepEqual(first.pools.default, { capacity: 4, available: 1, ...use(3, 7) });
  assert.deepEqual([first.jobsOwned, first.tasksRunning, first.connectedNodes], [9, 3, ["n1"]]);
  assert.equal(second?.isSelf, false);
  assert.deepEqual(second.pools.default, { capacity: 4, available: 3, ...use(1) });
  assert.deepEqual([second.jobsOwned, second.tasksRunning], [2, 1]);
  assert.deepEqual(await nodes.find("n2"), second);
  assert.equal(await nodes.find("n3"), null);
});

test("a pool that a node has not told the use of yet is unused", async () => {
  const [node] = await sharedNodes(reading([record("n2", { reserved: {} })]), own).overview();
  assert.deepEqual(node?.pools.default, { capacity: 4, available: 4, ...use(0) });
});

test("a program with a database of its own is the only node, and is draining while it stops", async () => {
  let isStopping = false;
  const nodes = onlyNode(own, 5, { isStopping: () => isStopping, nowMs: () => 8 });
  const [node, ...others] = await nodes.page(10, null);
  assert.deepEqual(others, []);
  assert.deepEqual([node?.status, node?.isSelf, node?.address, node?.jobsOwned], ["ready", true, null, 9]);
  assert.deepEqual([node?.startedAtMs, node?.heartbeatAtMs], [5, 8]);
  assert.deepEqual(node?.pools.default, { capacity: 4, available: 1, ...use(3, 7) });
  assert.deepEqual(await nodes.page(10, { name: "one", nodeId: "n1" }), []);
  assert.deepEqual([await nodes.page(10, null, own.name), await nodes.page(10, null, "x")], [[node], []]);
  assert.deepEqual(await nodes.find("n1"), node);
  assert.equal(await nodes.find("n2"), null);
  isStopping = true;
  assert.equal((await nodes.overview())[0]?.status, "draining");
});

test("what nodes come to together leaves out those that are lost or have left", async () => {
  const gpu = { pools: { default: 2, gpu: 1 }, reserved: { gpu: use(1) } };
  const records = [
    record("n1"),
    record("n2", gpu),
    record("n3", { ...gpu, status: "draining" }),
    record("n4", { status: "lost" }),
    record("n5", { status: "left" }),
    record("n6", { status: "lost" }),
  ];
  const totals = totalsOf(await sharedNodes(reading(records), { ...own, nodeId: "none" }).overview());
  assert.deepEqual(totals, {
    nodes: { ready: 2, draining: 1, maintenance: 0, lost: 2, left: 1 },
    pools: {
      default: { capacity: 8, available: 7, ...use(1) },
      gpu: { capacity: 2, available: 0, ...use(2) },
    },
    jobsOwned: 6,
    tasksRunning: 3,
  });
});
