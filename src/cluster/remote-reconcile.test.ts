// Asking another node, over a real socket, for its differences.

import assert from "node:assert/strict";
import { test } from "node:test";
import { peersWith, startNode } from "../../test/support/nodes.ts";
import { EngineUnavailable } from "../engine/batch.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { NodeRecord } from "./nodes.ts";
import type { Difference, Reconciliation } from "./reconcile.ts";
import { remoteReconcile } from "./remote-reconcile.ts";

const difference: Difference = {
  kind: "port",
  where: "port 61000",
  what: "Its run has ended.",
  fix: "It is freed.",
  isFixed: true,
};
const NOTHING: Reconciliation = { differences: [], hasMore: false };

test("another node's differences come as it found them, and an error with what it says", async () => {
  const asked: boolean[] = [];
  let answer = async (): Promise<Reconciliation> => ({ differences: [difference], hasMore: true });
  await using node = await startNode({
    parts: {
      reconcile: (fix) => {
        asked.push(fix);
        return answer();
      },
    },
  });
  using peers = peersWith();
  const record = { nodeId: "node_b", address: node.address, status: "draining" } as NodeRecord;
  const records = new Map([
    ["node_b", record],
    // Its address is another node's by now.
    ["node_c", { ...record, nodeId: "node_c" }],
    ["node_d", { ...record, nodeId: "node_d", status: "left" } as NodeRecord],
  ]);
  const reconcile = remoteReconcile({
    nodeId: "node_a",
    own: { reconcile: async () => NOTHING },
    nodes: { find: async (nodeId) => records.get(nodeId) ?? null },
    peers,
  });
  assert.deepEqual(await reconcile("node_b", true), { differences: [difference], hasMore: true });
  assert.equal(await reconcile("node_a", true), NOTHING);
  assert.equal(await reconcile("node_x", true), null);
  await assert.rejects(reconcile("node_c", true), { name: "EngineUnavailable", message: /another node/ });
  await assert.rejects(reconcile("node_d", true), { name: "DomainError", code: "conflict" });
  assert.deepEqual(asked, [true]);
  answer = async () => {
    throw new EngineUnavailable("Its lease was lost.");
  };
  await assert.rejects(reconcile("node_b", false), {
    name: "EngineUnavailable",
    message: /Its lease was lost/,
  });
  answer = async () => {
    throw new DomainError("conflict", "Eight are under way.");
  };
  await assert.rejects(reconcile("node_b", false), {
    name: "DomainError",
    code: "conflict",
    message: "Eight are under way.",
  });
  await node.close();
  await assert.rejects(reconcile("node_b", false), {
    name: "EngineUnavailable",
    message: /cannot be reached/,
  });
});
