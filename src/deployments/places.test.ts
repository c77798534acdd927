// Where instances run: which nodes could hold them, how many they have room for, and which one is chosen.

import assert from "node:assert/strict";
import { test } from "node:test";
import { instance } from "../../test/support/deployment-samples.ts";
import { executor, graph } from "../../test/support/graphs.ts";
import { machine, machineResources } from "../../test/support/machine.ts";
import type { NodeRecord, NodeResources } from "../cluster/nodes.ts";
import type { JsonObject } from "../engine/json.ts";
import { parseManifest } from "../engine/manifest.ts";
import type { MachineTotals } from "../execution/machine-resources.ts";
import { type Place, placed, placesFor } from "./places.ts";

const GiB = 1024 ** 3;

/** Of a program that gives things by name. */
function resourcesOf(totals: Partial<MachineTotals>): NodeResources {
  const resources = machineResources(machine(totals));
  return { ...resources, reserved: { ...resources.reserved, claims: [] } };
}

function node(name: string, given: Partial<NodeRecord> = {}): NodeRecord {
  return {
    nodeId: `node_${name}`,
    owner: `node_${name}/1`,
    name,
    status: "ready",
    labels: {},
    pools: { default: 8 },
    reserved: {},
    resources: resourcesOf({ cpuCores: 8, memoryBytes: 8 * GiB }),
    ...given,
  } as NodeRecord;
}

function graphOf(...nodes: readonly JsonObject[]) {
  const parsed = parseManifest(graph("g", nodes, [], { type: "service" }));
  assert.ok(parsed.kind === "valid", JSON.stringify(parsed));
  return parsed.graph;
}

const server = (config: JsonObject = {}, more: JsonObject = {}): JsonObject => ({
  ...executor("web", ["true"], { lifecycle: "long_lived", ...config }),
  services: [{ name: "web", port: 80 }],
  ...more,
});

const rooms = (places: readonly Place[]) =>
  Object.fromEntries(places.map(({ node: name, room }) => [name, room]));

test("a node has room for as many instances as fit its free slots and resources", () => {
  const used = { default: { in_use: 5, queued: 0, active: 5 } };
  const plain = graphOf(server());
  assert.deepEqual(rooms(placesFor(plain, [node("a"), node("b", { reserved: used })])), { a: 8, b: 3 });
  const two = graphOf(server({ pool_slots: 2 }), { ...server({ pool_slots: 2 }), node_id: "other" });
  assert.deepEqual(rooms(placesFor(two, [node("a"), node("b", { reserved: used })])), { a: 2, b: 0 });
  const large = graphOf(server({}, { resources: { memory_mb: 3 * 1_024 } }));
  assert.deepEqual(rooms(placesFor(large, [node("a")])), { a: 2 });
});

test("nodes that could never hold one, or take nothing on, are none of them", () => {
  const nodes = [
    node("draining", { status: "draining" }),
    node("lost", { status: "lost" }),
    node("small", { pools: { default: 0 } }),
    node("elsewhere", { labels: { zone: "b" } }),
    node("weak", { labels: { zone: "a" }, resources: resourcesOf({ cpuCores: 1 }) }),
    node("untold", { labels: { zone: "a" }, resources: null }),
    node("good", { labels: { zone: "a" } }),
  ];
  const asked = graphOf(server({ node_labels: { zone: "a" } }, { resources: { cpu: 2 } }));
  assert.deepEqual(Object.keys(rooms(placesFor(asked, nodes))), ["good"]);
});

test("commands that may run elsewhere ask nothing of the node, and a volume only that it is where it is kept", () => {
  const helper = executor("helper", ["true"], { node_labels: { zone: "x" }, pool_slots: 99 });
  assert.deepEqual(Object.keys(rooms(placesFor(graphOf(server(), helper), [node("a")]))), ["a"]);
  const keeping = graphOf(server({}, { resources: { volumes: [{ name: "index", path: "index" }] } }));
  const withVolume = { ...resourcesOf({}), volumes: ["index"] };
  assert.deepEqual(Object.keys(rooms(placesFor(keeping, [node("a"), node("b")]))), ["a", "b"]);
  const kept = [node("a"), node("b", { resources: withVolume })];
  assert.deepEqual(Object.keys(rooms(placesFor(keeping, kept))), ["b"]);
  const away = [node("a"), node("b", { resources: withVolume, status: "lost" })];
  assert.deepEqual(placesFor(keeping, away), []);
});

const place = (name: string, room: number): Place => ({
  owner: `${name}/1`,
  node: name,
  address: null,
  room,
});
const starts = (count: number, version = 1) =>
  Array.from({ length: count }, (_, i) => ({ number: 100 + i, version }));
const nodesOf = (found: readonly { readonly place: Place | null }[]) =>
  found.map(({ place: at }) => at?.node ?? null).toSorted();

test("instances are spread evenly, those that serve counted, and those that leave not", () => {
  const places = new Map([[1, ["a", "b", "c"].map((name) => place(name, 20))]]);
  const twenty = nodesOf(placed(starts(20), [], places));
  const counts = ["a", "b", "c"].map((name) => twenty.filter((one) => one === name).length);
  assert.deepEqual(counts.toSorted(), [6, 7, 7]);
  const there = [
    instance(1, { node: "a", phase: "serving" }),
    instance(2, { node: "b", phase: "draining" }),
    instance(3, { node: "c" }),
  ];
  assert.deepEqual(nodesOf(placed(starts(1), there, places)), ["b"]);
  const ofTwo = new Map([...places, [2, places.get(1)!]]);
  assert.deepEqual(nodesOf(placed(starts(3, 2), there, ofTwo)), ["a", "b", "c"]);
});

test("room comes before evenness, and a full cluster is filled further evenly", () => {
  const tight = new Map([[1, [place("a", 1), place("b", 3), place("c", 0)]]]);
  assert.deepEqual(nodesOf(placed(starts(4), [], tight)), ["a", "b", "b", "b"]);
  assert.deepEqual(nodesOf(placed(starts(6), [], tight)), ["a", "a", "b", "b", "b", "c"]);
  assert.deepEqual(nodesOf(placed(starts(2), [], new Map())), [null, null]);
});
