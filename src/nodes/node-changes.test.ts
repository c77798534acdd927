// Requests that change which nodes there are, with rows of nodes that the test sets, and operations on a real store.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HandClock } from "../../test/support/core.ts";
import { until } from "../../test/support/until.ts";
import { systemClock, systemRandomness } from "../app/clock.ts";
import type { NodeRecord, NodeStatus } from "../cluster/nodes.ts";
import { eventLine, isOpen, pending } from "../operations/operation-change.ts";
import { alone } from "../operations/ownership.ts";
import type { Operation } from "../operations/records.ts";
import { EventFeed } from "../runs/feed.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { sqlOperationRecords } from "../store/sql/operations.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { joinSteps } from "./joining.ts";
import { NodeChanges, type WriteChange } from "./node-changes.ts";

const node = (nodeId: string, status: NodeStatus = "ready") =>
  ({
    nodeId,
    name: nodeId,
    owner: `${nodeId}/1`,
    status,
    jobsOwned: 1,
    tasksRunning: 0,
    heartbeatAtMs: 1,
    drainUntilMs: null,
  }) as NodeRecord;

function start(rows: readonly NodeRecord[]) {
  const database = openSqlite(":memory:");
  const gateway = sqlGatewayRecords(database, systemClock.soon);
  const records = sqlOperationRecords(database);
  const find = async (nodeId: string) => rows.find((row) => row.nodeId === nodeId) ?? null;
  const removed: string[] = [];
  const nodes = { remove: async (nodeId: string) => void removed.push(nodeId) } as never;
  const changes = new NodeChanges({
    records,
    write: (work) => gateway.write((writes) => work({ operations: writes.operations, nodes })),
    place: {
      kind: "node",
      cluster: {
        nodeId: "a",
        orders: { find, order: async (nodeId) => ({ ...(await find(nodeId))!, drainUntilMs: 60_000 }) },
        reads: { present: async () => rows, page: async () => [] },
        sealingKeyId: "",
        joined: null,
      },
    },
    ownership: alone,
    feed: new EventFeed(),
    clock: new HandClock(),
    newId: systemRandomness.id,
    log: { warn: () => {}, error: () => {} },
  });
  const ask = async (prepared: Promise<WriteChange>) => {
    const write = await prepared;
    const operation = await gateway.write((writes) => write({ operations: writes.operations, nodes }));
    changes.begin(operation);
    return operation;
  };
  return {
    removed,
    leave: () => ask(changes.prepareLeave({ deadline_seconds: 60 })),
    remove: (nodeId: string, force = false) =>
      ask(changes.prepareRemoval({ nodeId }, { force, deadline_seconds: 60 })),
    joins: (nodeId: string) =>
      gateway.write(({ operations }) => {
        const request = { operationId: "op_join", kind: "node_join", target: nodeId, request: {} } as const;
        const change = pending({ ...request, steps: joinSteps, owner: null, nowMs: 1 });
        return operations.insert(change.operation, eventLine(change));
      }),
    ended: ({ operationId }: Operation) =>
      until(`the end of ${operationId}`, async () => {
        const found = await records.operation(operationId);
        return found !== null && !isOpen(found) && found;
      }),
    hasBegun: ({ operationId }: Operation) =>
      until(
        `the begin of ${operationId}`,
        async () => (await records.operation(operationId))?.status === "running",
      ),
    async [Symbol.asyncDispose]() {
      await changes.stop();
      await database.close();
    },
  };
}

for (const status of ["draining", "maintenance", "lost"] as const) {
  test(`the last node that takes jobs stays when another one is ${status}`, async () => {
    await using under = start([node("a"), node("b", status)]);
    await assert.rejects(under.leave(), { code: "last_node", message: /No other node is ready/ });
    await assert.rejects(under.remove("a"), { code: "last_node" });
  });
}

test("a node that is about to leave or to be removed does not count as staying; one that has just joined does", async () => {
  await using under = start([node("a"), node("b"), node("c")]);
  await under.remove("b");
  await under.remove("c");
  await assert.rejects(under.leave(), { code: "last_node" });
  await using joined = start([node("a"), node("b")]);
  await joined.joins("b");
  await joined.leave();
});

test("nodes that wait for their jobs to go do not keep another one from its removal", async () => {
  const names = ["b", "c", "d", "e", "f", "g"];
  await using under = start(["a", ...names].map((name) => node(name)));
  for (const name of names) await under.hasBegun(await under.remove(name));
  await under.ended(await under.remove("a", true));
  assert.deepEqual(under.removed, ["a"]);
});
