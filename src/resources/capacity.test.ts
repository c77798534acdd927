// Graphs that no machine could ever run, and those that one could.

import assert from "node:assert/strict";
import { test } from "node:test";
import { machine, machineResources } from "../../test/support/machine.ts";
import type { NodeView } from "../cluster/cluster-nodes.ts";
import type { JsonObject } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import type { MachineTotals } from "../execution/machine-resources.ts";
import { DomainError } from "../lib/domain-error.ts";
import { Capacity } from "./capacity.ts";

const GiB = 1024 ** 3;

function node(name: string, totals: Partial<MachineTotals> | null, more: Partial<NodeView> = {}): NodeView {
  return {
    nodeId: `node_${name}`,
    name,
    address: null,
    version: "1",
    labels: {},
    pools: {},
    totals: {},
    resources: totals === null ? null : machineResources(machine(totals)),
    jobsOwned: 0,
    tasksRunning: 0,
    connectedNodes: [],
    status: "ready",
    startedAtMs: 0,
    heartbeatAtMs: 0,
    isSelf: false,
    ...more,
  };
}

/** @returns why it is refused; null when it is not */
async function refusal(
  nodes: readonly NodeView[],
  resources: JsonObject,
  nodeLabels: JsonObject = {},
): Promise<string | null> {
  const config = { command: ["true"], node_labels: nodeLabels };
  const parsed = parseManifest({
    manifest_version: "1.0",
    graph_id: "g",
    entrypoints: ["plain"],
    nodes: [
      { node_id: "plain", agent_type: "executor", config: { command: ["true"] } },
      { node_id: "train", agent_type: "executor", config, resources },
    ],
  });
  assert.ok(parsed.kind === "valid");
  try {
    await new Capacity(
      { overview: async () => nodes },
      { requireSandbox: false, sandboxRefusal: async () => null },
    ).refuseUnsatisfiable(parsed.graph);
    return null;
  } catch (error) {
    assert.ok(error instanceof DomainError);
    assert.equal(error.code, "resource_unsatisfiable");
    return error.message;
  }
}

test("what the machine has whole is accepted, and a thousandth of a core more is not", async () => {
  const one = [node("a", { cpuCores: 2, memoryBytes: GiB })];
  assert.equal(await refusal(one, { cpu: 2, memory_mb: 1_024 }), null);
  assert.match(
    (await refusal(one, { cpu: 2.001 })) ?? "",
    /^Node "train" asks for 2.001 cores; for commands the machine has 2 cores\./,
  );
  assert.match(
    (await refusal(one, { memory_mb: 1_025, cpu: 1 })) ?? "",
    /asks for 1 core and 1 GiB of memory;/,
  );
  assert.match((await refusal(one, { gpu: 1 })) ?? "", /has 0 GPUs/);
});

test("one node that could hold it is enough, but what two have together is not", async () => {
  const nodes = [
    node("a", { cpuCores: 2 }),
    node("b", { cpuCores: 4 }),
    node("c", { cpuCores: 1 }),
    node("d", { cpuCores: 1 }),
  ];
  assert.equal(await refusal(nodes, { cpu: 4 }), null);
  assert.match(
    (await refusal(nodes, { cpu: 5 })) ?? "",
    /node "a" has 2 cores, node "b" has 4 cores, node "c" has 1 core, and none of 1 others has it\./,
  );
});

test("nodes that are lost or lack its labels do not count, and one that may have it is not known to lack it", async () => {
  const large = { cpuCores: 64 };
  assert.notEqual(await refusal([node("a", {}), node("b", large, { status: "lost" })], { cpu: 8 }), null);
  const zones = [node("a", large, { labels: { zone: "a" } }), node("b", {}, { labels: { zone: "b" } })];
  assert.equal(await refusal(zones, { cpu: 8 }, { zone: "a" }), null);
  assert.notEqual(await refusal(zones, { cpu: 8 }, { zone: "b" }), null);
  assert.equal(await refusal(zones, { cpu: 8 }, { zone: "c" }), null, "such a node may join");
  assert.equal(await refusal([node("a", {}), node("old", null)], { cpu: 8 }), null);
});

const boxed = { runner_module: "Sandbox", command: ["true"] };

/** @returns what is refused, as its code and message; null when nothing is */
async function sandboxRefusal(
  nodes: readonly NodeView[],
  agents: readonly JsonObject[],
  requireSandbox = false,
): Promise<DomainError | null> {
  const parsed = parseManifest({
    manifest_version: "1.0",
    graph_id: "g",
    entrypoints: ["0"],
    nodes: agents.map((agent, i) => ({ node_id: String(i), ...agent })),
  });
  assert.ok(parsed.kind === "valid", JSON.stringify(parsed));
  const sandboxing = { requireSandbox, sandboxRefusal: async () => "bubblewrap is missing." };
  const capacity = new Capacity({ overview: async () => nodes }, sandboxing);
  return capacity.refuseUnsatisfiable(parsed.graph).then(
    () => null,
    (error: unknown) => error as DomainError,
  );
}

test("a sandbox is asked for in vain where no living node has any", async () => {
  const agents = [{ agent_type: "executor", config: boxed }];
  const having = { labels: { "troupe/sandbox": "yes" } };
  const plain = node("a", null);
  const refused = await sandboxRefusal([plain], agents);
  assert.equal(refused?.code, "resource_unsatisfiable");
  assert.match(
    refused.message,
    /^Node "0" runs in a sandbox, and this machine has none: bubblewrap is missing\./,
  );
  assert.match(
    (await sandboxRefusal([plain, node("b", null, { ...having, status: "lost" }), node("c", null)], agents))
      ?.message ?? "",
    /no node has any/,
  );
  assert.equal(await sandboxRefusal([plain, node("b", null, having)], agents), null);
  assert.equal(
    await sandboxRefusal([plain], [{ agent_type: "executor", config: { command: "true" } }]),
    null,
  );
});

test("devices in a sandbox are refused where gVisor makes those of every node that could run it", async () => {
  const labels = { "troupe/sandbox": "yes", "troupe/sandbox-engine": "gvisor" };
  const other = { ...labels, "troupe/sandbox-engine": "bubblewrap" };
  const gvisor = node("a", null, { labels });
  const agents = [
    { agent_type: "executor", config: { ...boxed, sandbox: { devices: ["/dev/full"] } } },
    { agent_type: "executor", config: { ...boxed }, resources: { devices: ["/dev/full"] } },
  ];
  for (const [index, agent] of agents.entries()) {
    const all = [{ agent_type: "router" }, agent];
    const refused = await sandboxRefusal([gvisor, node("plain", null)], all);
    assert.equal(refused?.code, "resource_unsatisfiable", String(index));
    assert.match(refused.message, /^Node "1" asks for the device "\/dev\/full" in its sandbox, which gvisor/);
    assert.equal(await sandboxRefusal([gvisor, node("b", null, { labels: other })], all), null);
  }
  assert.equal(await sandboxRefusal([gvisor], [{ agent_type: "executor", config: boxed }]), null);
});

test("where sandboxes are required, commands without one and modules are refused, each at its place", async () => {
  const nodes = [node("a", null, { labels: { "troupe/sandbox": "yes" } })];
  const agents = [
    { agent_type: "router" },
    { agent_type: "executor", config: boxed },
    { agent_type: "module", config: { module: "m.mjs", isolation: "process" } },
    { agent_type: "executor", config: { command: "true" } },
    { agent_type: "module", config: { module: "m.mjs" } },
  ];
  const refused = await sandboxRefusal(nodes, agents, true);
  assert.equal(refused?.code, "validation_failed");
  assert.deepEqual(
    refused.errors.map(({ path, code }) => `${path} ${code}`),
    ["/nodes/3 sandbox_required", "/nodes/4 sandbox_required"],
  );
  assert.equal(await sandboxRefusal(nodes, agents.slice(0, 3), true), null);
});
