import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { PoolSlots } from "../../execution/pools.ts";
import { ClusterSlots } from "./slots.ts";

/** This node, "own", with `slots` slots, and what it asks of others. */
function cluster(slots: number) {
  let leases = 0;
  const labels = { zone: "a" };
  const own = new PoolSlots({ default: slots }, () => String(++leases), labels);
  const asked: string[] = [];
  const granted: string[] = [];
  const peers = {
    know: () => {},
    request: (nodeId: string, key: string) => void asked.push(`${key} at ${nodeId}`),
    release: (nodeId: string, key: string) => void asked.push(`not ${key} at ${nodeId}`),
  };
  const nodes = new ClusterSlots({ nodeId: "own", labels, own, peers, formerEndMs: () => 7 });
  nodes.onGranted = (key, { node }) => void granted.push(`${key} at ${node ?? "own"}`);
  own.onGranted = (key, lease) => nodes.granted(key, lease);
  own.onFree = (pool) => nodes.ownFree(pool);
  const looks = mock.method(own, "snapshot").mock;
  const others = (...free: readonly number[]) =>
    nodes.nodesAre(
      free.map((one, i) => ({
        nodeId: `n${i}`,
        isReady: true,
        labels: {},
        pools: { default: { capacity: 4, free: one } },
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
  nodes.nodesAre([{ nodeId: "n0", isReady: true, labels: { zone: "b" }, pools }]);
  for (let n = 0; n < 100; n++) nodes.request(`b${n}`, "default", 1, "spread", { zone: "b" });
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
  nodes.nodesAre([{ nodeId: "n0", isReady: false, labels: {}, pools }]);
  assert.deepEqual(nodes.request("a", "gpu", 1, "spread"), {
    kind: "queued",
    hint: 'No node that is ready has a slot of pool "gpu". It waits for one that has.',
  });
  assert.deepEqual(news(), [[], []]);
  nodes.nodesAre([{ nodeId: "n0", isReady: true, labels: {}, pools }]);
  assert.deepEqual(news(), [["a at n0"], []]);
  nodes.granted("a", lease("n0"));
  assert.deepEqual(news(), [[], ["a at n0"]]);
  nodes.release("a");
  assert.deepEqual(news(), [["not a at n0"], []]);
});

test("a request with labels is made at nodes that have all of them only, and waits for one to join", () => {
  const { nodes, news } = cluster(4);
  const pools = { default: { capacity: 4, free: 4 } };
  const node = (nodeId: string, labels: Record<string, string>) => ({ nodeId, isReady: true, labels, pools });
  const known = [node("n0", { zone: "b" }), node("n1", { zone: "b", disk: "ssd" })];
  nodes.nodesAre(known);
  const ask = (key: string, labels: Record<string, string>) =>
    nodes.request(key, "default", 1, "local", labels);
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
    nodes.request("e", "gpu", 1, "local", { zone: "c" }).kind,
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
  assert.equal(nodes.request("a", "default", 1, "here", { zone: "b" }).kind, "unsatisfiable");
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
