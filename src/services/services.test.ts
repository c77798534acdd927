// Services of several nodes, the others played by the test.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { registryOf, serviceJob } from "../../test/support/services.ts";
import { systemClock } from "../app/clock.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Found, ServicePage } from "./registry.ts";
import type { ServiceView } from "./service-view.ts";
import { type ServiceNode, Services } from "./services.ts";

const all = { name: null, tags: [], status: null, runId: null, limit: 100, after: null };

/** Of node "a", which is asked, and others that a test gives. */
function cluster(nodes: readonly ServiceNode[], nowMs = () => 0, leftOut: ReadonlySet<string> = new Set()) {
  const own = registryOf("a");
  const services = new Services({
    own,
    nodeName: "a",
    nodeId: "node_a",
    outOfService: async () => leftOut,
    clock: { steadyMs: nowMs },
  });
  services.askAlso(async () => nodes);
  return { own, services };
}

test("services of runs that are out of service are found on no node", async () => {
  const b = nodeWith("b", true);
  const { own, services } = cluster([b.node], () => 0, new Set(["run-of-old", "run-of-far"]));
  own.jobOpened(serviceJob("old", [{ name: "index" }]));
  b.registry.jobOpened(serviceJob("far", [{ name: "index" }]));
  const none = await services.resolve(named("index"));
  assert.deepEqual(none.kind, "not_passing");
  own.jobOpened(serviceJob("new", [{ name: "index" }]));
  const found = await services.resolve(named("index"));
  assert.ok(found.kind === "resolved");
  assert.equal(found.service.runId, "run-of-new");
});

/** A node with a registry of its own; on another machine unless it is said to be on this one. */
function nodeWith(name: string, isSameMachine = false) {
  const registry = registryOf(name, { node: { name, host: `${name}.example.org` } });
  const node: ServiceNode = {
    nodeId: `node_${name}`,
    name,
    isSameMachine,
    find: async (wanted) => registry.find(wanted),
    list: async (page) => registry.list(page),
  };
  return { registry, node };
}

const silent: ServiceNode = {
  nodeId: "node_s",
  name: "silent",
  isSameMachine: false,
  find: async () => null,
  list: async () => null,
};

const named = (name: string, more: { tags?: readonly string[]; node?: string } = {}) => ({
  name,
  tags: more.tags ?? [],
  node: more.node ?? null,
});

const beyond = (name: string, more: JsonObject = {}) => ({ name, address: "0.0.0.0", ...more });

test("what passes on any node is resolved, the newest first, where it is reached from here", async () => {
  const b = nodeWith("b");
  const { own, services } = cluster([b.node, silent]);
  b.registry.jobOpened(serviceJob("far", [beyond("index")]));
  const far = await services.resolve(named("index"));
  assert.ok(far.kind === "resolved");
  assert.deepEqual([far.service.node, far.service.address], ["b", "b.example.org"]);
  const later = registryOf("a", { clock: { ...systemClock, nowMs: () => far.service.registeredAtMs + 1 } });
  later.jobOpened(serviceJob("near", [beyond("index")]));
  const both = new Services({
    own: later,
    nodeName: "a",
    nodeId: "node_a",
    outOfService: async () => new Set(),
    clock: systemClock,
  });
  both.askAlso(async () => [b.node]);
  for (const [wanted, jobId] of [
    [named("index"), "near"],
    [named("index", { node: "a" }), "near"],
    [named("index", { node: "node_a" }), "near"],
    [named("index", { node: "b" }), "far"],
    [named("index", { node: "node_b" }), "far"],
  ] as const) {
    const found = await both.resolve(wanted);
    assert.equal(found.kind === "resolved" && found.service.jobId, jobId);
  }
  own.stop();
});

test("what listens on the loopback of another machine is found by those who ask for that node", async () => {
  const b = nodeWith("b");
  const { services } = cluster([b.node]);
  b.registry.jobOpened(serviceJob("far", [{ name: "index" }]));
  const far = await services.resolve(named("index"));
  assert.ok(far.kind === "unknown");
  assert.match(far.reason, /the one on "b" listens on loopback alone.*"address": "0\.0\.0\.0"/);
  assert.equal((await services.resolve(named("index", { node: "b" }))).kind, "resolved");
  b.registry.jobOpened(serviceJob("reached", [beyond("index")]));
  const reached = await services.resolve(named("index"));
  assert.equal(reached.kind === "resolved" && reached.service.jobId, "reached");
  b.registry.jobOpened(serviceJob("shown", [{ name: "page", public_url: "http://desk.example.org/" }]));
  b.registry.jobOpened(serviceJob("hidden", [{ name: "page", public_url: "http://[::1]:80/" }]));
  const shown = await services.resolve(named("page"));
  assert.equal(shown.kind === "resolved" && shown.service.jobId, "shown");
  const same = nodeWith("c", true);
  same.registry.jobOpened(serviceJob("beside", [{ name: "beside" }]));
  assert.equal((await cluster([same.node]).services.resolve(named("beside"))).kind, "resolved");
});

test("nothing is said to be missing that a node may have which does not answer", async () => {
  const b = nodeWith("b");
  const { services } = cluster([b.node, silent]);
  const waiting = await services.resolve(named("index"));
  assert.ok(waiting.kind === "not_passing");
  assert.match(waiting.reason, /these nodes do not answer now: "silent"/);
  const elsewhere = await services.resolve(named("index", { node: "b" }));
  assert.ok(elsewhere.kind === "unknown");
  const nowhere = await services.resolve(named("index", { node: "z" }));
  assert.ok(nowhere.kind === "unknown");
  assert.match(nowhere.reason, /the nodes are "a", "b", "silent"/);
  b.registry.jobOpened(serviceJob("far", [beyond("index", { port: 1, checks: [{ type: "tcp" }] })]));
  const failing = await services.resolve(named("index"));
  assert.ok(failing.kind === "not_passing");
  assert.match(failing.reason, /tcp: not checked yet/);
  b.registry.stop();
});

test("a list names the nodes that do not answer, and has what the others offer", async () => {
  const b = nodeWith("b");
  const { own, services } = cluster([silent, b.node]);
  own.jobOpened(serviceJob("near", [{ name: "n" }]));
  b.registry.jobOpened(serviceJob("far", [{ name: "f" }]));
  const { services: listed, unreachable } = await services.list(all);
  assert.deepEqual(
    listed.map(({ name, node }) => [name, node]),
    [
      ["f", "b"],
      ["n", "a"],
    ],
  );
  assert.deepEqual(unreachable, ["silent"]);
});

test("what two nodes have while a job goes from one to the other is listed once, as the newer one has it", async () => {
  const b = nodeWith("b");
  const job = serviceJob("moving", [{ name: "index" }]);
  b.registry.jobOpened(job);
  const [old] = b.registry.list(all);
  const own = registryOf("a", { clock: { ...systemClock, nowMs: () => old!.registeredAtMs + 1 } });
  own.jobOpened(job);
  const services = new Services({
    own,
    nodeName: "a",
    nodeId: "node_a",
    outOfService: async () => new Set(),
    clock: systemClock,
  });
  services.askAlso(async () => [b.node]);
  assert.deepEqual(
    (await services.list(all)).services.map(({ node }) => node),
    ["a"],
  );
});

test("pages over many nodes have everything once, in order", async () => {
  const at = fc.record({
    node: fc.nat({ max: 3 }),
    name: fc.constantFrom("a", "b", "c"),
    id: fc.nat({ max: 99 }),
  });
  const kinds = fc.uniqueArray(at, { selector: ({ id }) => id, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(kinds, fc.integer({ min: 1, max: 7 }), async (offered, limit) => {
      const nodes = ["b", "c", "d"].map((name) => nodeWith(name));
      const { own, services } = cluster(nodes.map(({ node }) => node));
      const registries = [own, ...nodes.map(({ registry }) => registry)];
      for (const { node, name, id } of offered)
        registries[node]!.jobOpened(serviceJob(`job${id}`, [{ name }]));
      const walked: ServiceView[] = [];
      for (;;) {
        const after: ServicePage["after"] = walked.at(-1) ?? null;
        const { services: page } = await services.list({ ...all, limit, after });
        walked.push(...page);
        if (page.length < limit) break;
      }
      const key = ({ name, serviceId }: ServiceView) => `${name} ${serviceId}`;
      const expected = registries.flatMap((registry) => registry.list(all)).map(key);
      assert.deepEqual(walked.map(key), expected.toSorted());
    }),
    { numRuns: 100 },
  );
});

test("those who wait for a service make one look a second, and those who ask now look now", async () => {
  let asked = 0;
  let nowMs = 0;
  const counting: ServiceNode = {
    ...silent,
    async find(): Promise<Found> {
      asked++;
      return { kind: "none", hasOthers: false };
    },
  };
  const { services } = cluster([counting], () => nowMs);
  const required = [named("index")];
  for (let waiting = 0; waiting < 1_000; waiting++) {
    assert.equal((await services.unmetLately(required)).length, 1);
  }
  assert.equal(asked, 1);
  await services.unmet(required);
  assert.equal(asked, 2);
  nowMs = 1_000;
  await services.unmetLately(required);
  assert.equal(asked, 3);
});
