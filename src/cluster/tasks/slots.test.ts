import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import type { PlacementPolicy } from "../../engine/graph.ts";
import type { Labels } from "../../engine/labels.ts";
import { noNeeds } from "../../engine/ports.ts";
import type { Claim } from "../../engine/resources.ts";
import type { Priority, Share } from "../../engine/share.ts";
import { noMachine } from "../../execution/allotment.ts";
import { FreePorts } from "../../execution/free-ports.ts";
import { HeldNames } from "../../execution/held-names.ts";
import { PoolSlots } from "../../execution/pools.ts";
import type { KnownNode } from "./known-nodes.ts";
import { ClusterSlots } from "./slots.ts";

const labelled = (nodeLabels: Labels) => ({ nodeLabels, demand: null });

/** This node, "own", with `slots` slots, and what it asks of others. */
function cluster(slots: number, cpuMillis = 0) {
  let leases = 0;
  const labels = { zone: "a" };
  const own = new PoolSlots(
    { default: slots, io: slots },
    () => String(++leases),
    () => 0,
    labels,
    {
      ...noMachine,
      cpuCores: cpuMillis / 1_000,
    },
    { ports: new FreePorts(0, () => true), hasDevice: (path) => path === "/dev/here" },
  );
  const asked: string[] = [];
  const granted: string[] = [];
  const peers = {
    know: () => {},
    request: (nodeId: string, key: string) => void asked.push(`${key} at ${nodeId}`),
    release: (nodeId: string, key: string) => void asked.push(`not ${key} at ${nodeId}`),
  };
  const hasVolume = (name: string) => name === "here";
  const nodes = new ClusterSlots({ nodeId: "own", labels, own, peers, hasVolume, formerEndMs: () => 7 });
  nodes.onGranted = (key, { node }) => void granted.push(`${key} at ${node ?? "own"}`);
  own.onGranted = (key, lease) => nodes.granted(key, lease);
  own.onFree = (pool) => nodes.ownFree(pool);
  const looks = mock.method(own, "spare").mock;
  const others = (...free: readonly number[]) =>
    nodes.nodesAre(
      free.map((one, i) => ({
        nodeId: `n${i}`,
        isReady: true,
        labels: {},
        pools: { default: { capacity: 4, free: one } },
        machine: null,
      })),
    );
  const ask = (key: string, pool = "default", count = 1) => nodes.request(key, pool, count, "spread").kind;
  const news = () => [asked.splice(0), granted.splice(0)];
  return { nodes, others, ask, news, looks };
}

const lease = (node: string) => ({ leaseId: "lease_x", pool: "default", slots: 1, node });

test("a request goes to the node with the largest share of free slots, and is counted there until it tells more", () => {
  const { others, ask, news } = cluster(1);
  others(3, 4);
  assert.deepEqual(
    ["a", "b", "c", "d"].map((key) => ask(key)),
    ["granted", "queued", "queued", "queued"],
  );
  assert.deepEqual(news(), [["b at n1", "c at n0", "d at n1"], []]);
});

test("nodes with the same share of free slots have their turns, also when their rows are read again", () => {
  const { nodes, others, ask, news } = cluster(1);
  ask("held");
  for (const [i, key] of ["a", "b", "c"].entries()) {
    others(2, 2, 2);
    ask(key);
    nodes.granted(key, lease(`n${i}`));
  }
  const [asked] = news();
  assert.deepEqual(asked, ["a at n0", "b at n1", "c at n2"]);
});

test("a request that waits at a full node is taken to the first one with a free slot", () => {
  const { nodes, others, ask, news } = cluster(1);
  others(0, 0);
  assert.deepEqual(
    ["a", "b", "c"].map((key) => ask(key)),
    ["granted", "queued", "queued"],
  );
  news();
  nodes.free("n1", { default: 1 });
  assert.deepEqual(news(), [["b at n1"], []]);
  nodes.release("a");
  assert.deepEqual(news(), [["not c at n0"], ["c at own"]]);
});

test("this node's pools are looked at once for all that waits elsewhere, and once more for what is taken here", () => {
  const { nodes, others, ask, news, looks } = cluster(3);
  ask("held", "default", 3);
  others(4);
  for (const key of ["c", "d"]) ask(key);
  const pools = { default: { capacity: 4, free: 0 } };
  nodes.nodesAre([{ nodeId: "n0", isReady: true, labels: { zone: "b" }, pools, machine: null }]);
  for (let n = 0; n < 100; n++) nodes.request(`b${n}`, "default", 1, "spread", labelled({ zone: "b" }));
  news();
  looks.resetCalls();
  nodes.release("held");
  assert.deepEqual(news(), [
    ["not c at n0", "not d at n0"],
    ["c at own", "d at own"],
  ]);
  assert.equal(looks.callCount(), 3);
});

test("a request whose node is lost is made elsewhere", () => {
  const { nodes, others, ask, news } = cluster(1);
  others(4);
  ask("a");
  ask("b");
  assert.deepEqual(news(), [["b at n0"], []]);
  nodes.lost("n0", ["b"]);
  nodes.release("a");
  assert.deepEqual(news(), [[], ["b at own"]]);
});

test("slots that no living node has are waited for while a lost node had them, and are refused otherwise", () => {
  const { nodes, ask, news } = cluster(1);
  assert.equal(ask("a", "gpu"), "unsatisfiable");
  assert.equal(ask("a", "default", 2), "unsatisfiable");
  const pools = { gpu: { capacity: 1, free: 1 } };
  nodes.nodesAre([{ nodeId: "n0", isReady: false, labels: {}, pools, machine: null }]);
  assert.deepEqual(nodes.request("a", "gpu", 1, "spread"), {
    kind: "queued",
    hint: 'No node that is ready has a slot of pool "gpu". It waits for one that has.',
  });
  assert.deepEqual(news(), [[], []]);
  nodes.nodesAre([{ nodeId: "n0", isReady: true, labels: {}, pools, machine: null }]);
  assert.deepEqual(news(), [["a at n0"], []]);
  nodes.granted("a", lease("n0"));
  assert.deepEqual(news(), [[], ["a at n0"]]);
  nodes.release("a");
  assert.deepEqual(news(), [["not a at n0"], []]);
});

test("a request with labels is made at nodes that have all of them only, and waits for one to join", () => {
  const { nodes, news } = cluster(4);
  const pools = { default: { capacity: 4, free: 4 } };
  const node = (nodeId: string, labels: Record<string, string>) => ({
    nodeId,
    isReady: true,
    labels,
    pools,
    machine: null,
  });
  const known = [node("n0", { zone: "b" }), node("n1", { zone: "b", disk: "ssd" })];
  nodes.nodesAre(known);
  const ask = (key: string, labels: Record<string, string>) =>
    nodes.request(key, "default", 1, "local", labelled(labels));
  assert.equal(ask("a", { zone: "a" }).kind, "granted");
  assert.deepEqual(ask("b", { disk: "ssd", zone: "b" }), { kind: "queued" });
  assert.deepEqual(news(), [["b at n1"], []]);
  const hint = (text: string) => ({
    kind: "queued",
    hint: `No node that is ready has a slot of pool "default" and ${text}. It waits for one that has.`,
  });
  assert.deepEqual(ask("c", { zone: "c" }), hint("the label zone=c"));
  assert.deepEqual(ask("d", { zone: "a", disk: "ssd" }), hint("the labels zone=a, disk=ssd"));
  assert.equal(
    nodes.request("e", "gpu", 1, "local", labelled({ zone: "c" })).kind,
    "queued",
    "its pool may come with it",
  );
  nodes.release("a");
  nodes.nodesAre(known);
  assert.deepEqual(news(), [[], []], "neither free slots here nor there are for them");
  nodes.nodesAre([...known, node("n2", { zone: "c" })]);
  assert.deepEqual(news(), [["c at n2"], []]);
  nodes.lost("n1", ["b"]);
  assert.deepEqual(news(), [["b at n1"], []]);
});

test("what must stay here is refused when this node lacks a label", () => {
  const { nodes, others } = cluster(1);
  others(4);
  assert.equal(nodes.request("a", "default", 1, "here", labelled({ zone: "b" })).kind, "unsatisfiable");
});

test("a node that refuses, because its pools are others now, is not asked again", () => {
  const { nodes, others, ask, news } = cluster(1);
  others(4);
  ask("a");
  ask("b");
  news();
  nodes.refused("n0", "b");
  assert.deepEqual(news(), [[], []]);
  nodes.release("a");
  assert.deepEqual(news(), [[], ["b at own"]]);
});

test("what must stay here is asked of no other node", () => {
  const { nodes, others, news } = cluster(1);
  others(4, 4);
  assert.equal(nodes.request("a", "default", 1, "here").kind, "granted");
  assert.equal(nodes.request("b", "default", 1, "here").kind, "queued");
  nodes.free("n0", { default: 4 });
  assert.deepEqual(news(), [[], []]);
});

test("an attempt of a former owner may run on another node for a while, and not on this one", () => {
  const { nodes } = cluster(1);
  assert.equal(nodes.endOfFormer(lease("n0")), 7);
  const { node, ...own } = lease("n0");
  assert.equal(node, "n0");
  assert.equal(nodes.endOfFormer(own), Number.NEGATIVE_INFINITY);
});

describe("a request for resources of a machine", () => {
  const demand = { cpuMillis: 2_000, memoryBytes: 0, diskBytes: 0, gpus: 0 };
  const amounts = (cpuMillis: number) => ({ ...demand, cpuMillis });
  const node = (nodeId: string, allowed: number, free: number, more: Partial<KnownNode> = {}): KnownNode => ({
    nodeId,
    isReady: true,
    labels: {},
    pools: { default: { capacity: 4, free: 4 } },
    machine: {
      totals: amounts(4_000),
      allowed: amounts(allowed),
      free: { amounts: amounts(free), names: new HeldNames() },
      givesNames: true,
    },
    ...more,
  });
  const needs = { nodeLabels: {}, demand };
  const withVolumes = (...names: readonly string[]) => {
    const claims = names.map((name) => ({ kind: "volume", name, isShared: true }) as const);
    return { nodeLabels: {}, demand: { ...amounts(0), named: { claims, freePorts: 0 } } };
  };
  const ask = ({ nodes }: ReturnType<typeof cluster>, key: string) =>
    nodes.request(key, "default", 1, "spread", needs);

  test("goes to a node that has them free, and what it asked for is not counted as free until that tells more", () => {
    const under = cluster(4, 1_000);
    under.nodes.nodesAre([node("n0", 4_000, 1_999), node("n1", 4_000, 4_000), node("n2", 1_000, 1_000)]);
    assert.deepEqual(
      ["a", "b", "c"].map((key) => ask(under, key)),
      [
        { kind: "queued" },
        { kind: "queued" },
        { kind: "queued", hint: "It waits for 2 cores of a machine." },
      ],
    );
    assert.deepEqual(under.news()[0]?.slice(0, 2), ["a at n1", "b at n1"]);
  });

  test("waits at a machine that could hold it, and is taken to the first one that has it free", () => {
    const under = cluster(4, 1_000);
    const known = [node("n0", 4_000, 0), node("n1", 4_000, 0)];
    under.nodes.nodesAre(known);
    assert.deepEqual(ask(under, "a"), { kind: "queued", hint: "It waits for 2 cores of a machine." });
    const [[place]] = under.news() as [[string]];
    const other = place === "a at n0" ? "n1" : "n0";
    under.nodes.nodesAre(known.map((one) => (one.nodeId === other ? node(other, 4_000, 2_000) : one)));
    assert.deepEqual(under.news()[0]?.at(-1), `a at ${other}`);
  });

  test("is this node's when it has them, and is taken here when they are free again", () => {
    const under = cluster(4, 2_000);
    under.nodes.nodesAre([node("n0", 2_000, 0)]);
    assert.equal(ask(under, "a").kind, "granted");
    assert.equal(ask(under, "b").kind, "queued");
    under.news();
    under.nodes.release("a");
    under.nodes.nodesAre([node("n0", 2_000, 0)]);
    assert.deepEqual(under.news()[1], ["b at own"]);
  });

  test("is taken here, too, when they were freed by one of another pool", () => {
    const under = cluster(4, 2_000);
    const known = [node("n0", 2_000, 0)];
    under.nodes.nodesAre(known);
    under.nodes.request("a", "io", 1, "here", needs);
    under.nodes.request("fills", "default", 1, "here");
    assert.equal(ask(under, "b").kind, "queued");
    assert.deepEqual(under.news()[0], ["b at n0"]);
    under.nodes.release("a");
    under.nodes.nodesAre(known);
    assert.deepEqual(under.news()[1], ["b at own"]);
  });

  test("is refused when no node could hold it, and waits for one that is lost and could", () => {
    const under = cluster(4, 1_000);
    const free = { amounts: amounts(1_000), names: new HeldNames() };
    const small = { totals: amounts(1_000), allowed: amounts(1_000), free, givesNames: true };
    under.nodes.nodesAre([
      node("n0", 1_000, 1_000, { machine: small }),
      node("old", 0, 0, { machine: null }),
    ]);
    assert.deepEqual(ask(under, "a"), {
      kind: "unsatisfiable",
      reason: "It needs 2 cores, and this machine has 1 core.",
    });
    under.nodes.nodesAre([node("n0", 4_000, 4_000, { isReady: false })]);
    assert.deepEqual(ask(under, "a"), {
      kind: "queued",
      hint: 'No node that is ready has a slot of pool "default" and 2 cores for commands. It waits for one that has.',
    });
    under.nodes.nodesAre([node("n0", 4_000, 4_000)]);
    assert.deepEqual(under.news()[0], ["a at n0"]);
  });

  test("for a port goes to a machine on which it is free, and to none whose program gives nothing by name", () => {
    const under = cluster(0, 0);
    const claim = { kind: "port", name: "8080", isShared: false } as const;
    const having = (nodeId: string, claims: readonly Claim[], givesNames: boolean) => {
      const free = { amounts: amounts(4_000), names: new HeldNames(claims) };
      const machine = { totals: amounts(4_000), allowed: amounts(4_000), free, givesNames };
      return node(nodeId, 4_000, 4_000, { machine });
    };
    const nodes = [having("old", [], false), having("n0", [claim], true), having("n1", [], true)];
    under.nodes.nodesAre(nodes);
    const askFor = (key: string) =>
      under.nodes.request(key, "default", 1, "spread", {
        nodeLabels: {},
        demand: { ...amounts(0), named: { claims: [claim], freePorts: 0 } },
      });
    assert.deepEqual(askFor("a"), { kind: "queued" });
    assert.deepEqual(askFor("b"), { kind: "queued", hint: "It waits for port 8080 of a machine." });
    assert.deepEqual(under.news()[0]?.[0], "a at n1");
  });

  test("for a device goes to a machine that has it, and fails when none has", () => {
    const under = cluster(4, 4_000);
    const free = { amounts: amounts(4_000), names: new HeldNames() };
    const having = (...devices: readonly string[]) => ({
      machine: { totals: amounts(4_000), allowed: amounts(4_000), free, devices, givesNames: true },
    });
    under.nodes.nodesAre([node("n0", 0, 0, having()), node("n1", 0, 0, having("/dev/there"))]);
    const askFor = (name: string) => {
      const named = { claims: [{ kind: "device", name, isShared: false } as const], freePorts: 0 };
      return under.nodes.request(name, "default", 1, "spread", {
        nodeLabels: {},
        demand: { ...amounts(0), named },
      });
    };
    assert.equal(askFor("/dev/there").kind, "queued");
    assert.equal(askFor("/dev/here").kind, "granted");
    assert.deepEqual(under.news()[0], ["/dev/there at n1"]);
    assert.equal(askFor("/dev/none").kind, "unsatisfiable");
  });

  test("for a volume goes to the node that has it, whatever the policy, and waits for it while it is lost", () => {
    const under = cluster(4, 4_000);
    const known = [node("n0", 4_000, 4_000, { volumes: ["there"] }), node("n1", 4_000, 4_000)];
    under.nodes.nodesAre(known);
    const askFor = (key: string, placement: PlacementPolicy | "here", ...names: readonly string[]) =>
      under.nodes.request(key, "default", 1, placement, withVolumes(...names));
    assert.equal(askFor("a", "local", "there").kind, "queued");
    assert.equal(askFor("b", "spread", "here").kind, "granted");
    assert.equal(askFor("c", "local", "new", "here2").kind, "granted", "this node makes it");
    assert.deepEqual(under.news(), [["a at n0"], []]);
    assert.deepEqual(askFor("d", "local", "here", "there"), {
      kind: "unsatisfiable",
      reason: 'Its volumes are on different nodes: "there" on n0, and another one on own.',
    });
    assert.deepEqual(askFor("e", "here", "there"), {
      kind: "unsatisfiable",
      reason:
        "Its volume is on the node n0, and a command that offers services runs on its job's node: submit the job there.",
    });
    under.nodes.nodesAre([{ ...known[0]!, isReady: false }, known[1]!]);
    assert.deepEqual(askFor("f", "local", "there"), {
      kind: "queued",
      hint:
        'The node n0, which has the volume, is not ready or has not a slot of pool "default" and volume there for commands. ' +
        "It waits for that.",
    });
    assert.deepEqual(under.news(), [[], []]);
    under.nodes.nodesAre(known);
    assert.deepEqual(under.news()[0], ["f at n0"]);
  });

  test("for a volume that is new goes where another one has been sent that makes it", () => {
    const under = cluster(0, 0);
    const known = [node("n0", 4_000, 4_000), node("n1", 4_000, 4_000)];
    under.nodes.nodesAre(known);
    const askFor = (key: string) => under.nodes.request(key, "default", 1, "spread", withVolumes("new"));
    for (const key of ["a", "b"]) askFor(key);
    under.nodes.nodesAre(known);
    askFor("c");
    const places = under.news()[0]?.map((text) => text.split(" ").at(-1));
    assert.deepEqual([places?.length, new Set(places).size], [3, 1]);
  });

  test("waits while only limits keep nodes from holding it", () => {
    const under = cluster(4, 1_000);
    under.nodes.nodesAre([node("n0", 1_000, 1_000)]);
    assert.equal(ask(under, "a").kind, "queued");
    assert.deepEqual(under.news(), [[], []]);
    under.nodes.nodesAre([node("n0", 4_000, 4_000)]);
    assert.deepEqual(under.news()[0], ["a at n0"]);
  });

  test("that a node refuses is made elsewhere, and that node keeps its slots for others", () => {
    const under = cluster(0, 0);
    under.nodes.nodesAre([node("n0", 4_000, 4_000), node("n1", 4_000, 3_000)]);
    ask(under, "a");
    const [[place]] = under.news() as [[string]];
    under.nodes.refused(place.slice(5), "a");
    const other = place === "a at n0" ? "n1" : "n0";
    assert.deepEqual(under.news()[0], [`a at ${other}`]);
    assert.equal(under.nodes.request("b", "default", 1, "spread").kind, "queued");
    assert.equal(under.news()[0]?.[0], `b at ${place.slice(5)}`);
  });
});

test("requests are taken to free slots by priority and by turns of their jobs", () => {
  const { nodes, others, news } = cluster(1);
  others(0);
  const share = (job: string, weight = 1, priority: Priority = "normal") => ({ job, priority, weight });
  const ask = (key: string, by: Share) => nodes.request(key, "default", 1, "local", noNeeds, by);
  ask("runs", share("a"));
  for (let n = 0; n < 9; n++) ask(`a${n}`, share("a", 2));
  ask("b0", share("b"));
  ask("c0", share("c", 1, "high"));
  news();
  nodes.free("n0", { default: 4 });
  assert.deepEqual(
    news()[0],
    ["c0", "a0", "a1", "b0"].map((key) => `${key} at n0`),
  );
});

test("a request that is made twice, and taken back, is taken nowhere", () => {
  const { nodes, others, ask, news } = cluster(1);
  others(0);
  ask("runs");
  assert.deepEqual([ask("a"), ask("a")], ["queued", "queued"]);
  nodes.release("a");
  news();
  nodes.free("n0", { default: 4 });
  assert.deepEqual(news(), [[], []]);
});
