// Services of jobs on other nodes, over real sockets.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { peersWith, SECRET, startNode } from "../../test/support/nodes.ts";
import { registryOf, serviceJob } from "../../test/support/services.ts";
import { systemClock } from "../app/clock.ts";
import { Services } from "../services/services.ts";
import type { NodeRecord } from "./nodes.ts";
import { nodesWithServices } from "./remote-services.ts";
import { type Peers, PeerUnreachable } from "./wire/peers.ts";

const all = { name: null, tags: [], status: null, runId: null, limit: 100, after: null };
const named = (name: string) => ({ name, tags: [], node: null });

function rowOf(name: string, address: string | null): NodeRecord {
  return { nodeId: `node_${name}`, owner: `node_${name}/1`, name, address } as NodeRecord;
}

/** Node "a", which has nothing itself and knows of these rows. */
function asked(peers: Pick<Peers, "call" | "stream">, ...rows: readonly NodeRecord[]) {
  const services = new Services({
    own: registryOf("a"),
    nodeName: "a",
    nodeId: "node_a",
    outOfService: async () => new Set(),
    clock: systemClock,
  });
  const living = async () => [rowOf("a", "127.0.0.1:1"), ...rows];
  services.askAlso(nodesWithServices({ living, owner: () => "node_a/1", peers, clock: systemClock }));
  return services;
}

test("what another node has is listed, a part of it when a part is asked for, and found by its name", async () => {
  const registry = registryOf("b");
  for (let n = 0; n < 30; n++)
    registry.jobOpened(serviceJob(`job${n}`, [{ name: `s${n % 3}`, tags: [`t${n}`] }]));
  await using node = await startNode({ parts: { services: registry } });
  using peers = peersWith();
  const services = asked(peers, rowOf("b", node.address));
  assert.deepEqual(await services.list(all), { services: registry.list(all), unreachable: [] });
  assert.deepEqual(await services.list(all, true), { services: await registry.check(all), unreachable: [] });
  const part = { ...all, name: "s1", limit: 4, after: registry.list({ ...all, name: "s1" })[2]! };
  assert.deepEqual((await services.list(part)).services, registry.list(part));
  const found = await services.resolve({ name: "s2", tags: ["t5"], node: null });
  assert.equal(found.kind === "resolved" && found.service.jobId, "job5");
  assert.equal((await services.resolve({ name: "s2", tags: ["t6"], node: null })).kind, "unknown");
});

test("a node that is gone, and one that answers no call, are named as those that do not answer", async () => {
  await using node = await startNode();
  const { address } = node;
  await node.close();
  // It takes connections, and says nothing: a program that is stopped.
  const stopped = createServer().listen(0, "127.0.0.1");
  await once(stopped, "listening");
  const { port } = stopped.address() as { port: number };
  // Nobody is waited for.
  using peers = peersWith(SECRET, { after: (_delayMs, run) => systemClock.after(0, run) });
  const services = asked(peers, rowOf("gone", address), rowOf("stopped", `127.0.0.1:${port}`));
  assert.deepEqual(await services.list(all), { services: [], unreachable: ["gone", "stopped"] });
  const found = await services.resolve(named("index"));
  assert.ok(found.kind === "not_passing");
  assert.match(found.reason, /these nodes do not answer now: "gone", "stopped"/);
  stopped.close();
});

test("a node without an address is asked by nobody", async () => {
  using peers = peersWith();
  assert.deepEqual(await asked(peers, rowOf("b", null)).list(all), { services: [], unreachable: [] });
});

test("a node that did not answer is not asked again for a while, however many ask for it", async () => {
  let nowMs = 0;
  let calls = 0;
  const peers = {
    call: async () => {
      calls++;
      throw new PeerUnreachable("It does not answer.", false);
    },
    stream: () => assert.fail("nothing is listed"),
  };
  const clock = { steadyMs: () => nowMs };
  const nodes = nodesWithServices({
    living: async () => [rowOf("b", "b:1")],
    owner: () => "node_a/1",
    peers,
    clock,
  });
  const find = async () => {
    const [b] = await nodes();
    return b?.find({ name: "index", tags: [], leftOut: [], fromElsewhere: false });
  };
  assert.deepEqual([await find(), await find()], [null, null]);
  assert.equal(calls, 1);
  nowMs = 2_000;
  assert.equal(await find(), null);
  assert.equal(calls, 2);
});
