// What removed jobs have left in the homes of several nodes: each removes its own, and no other one's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { artifact, changes, progress } from "../../../test/support/journal-records.ts";
import { inPostgres, returnPostgres, takePostgres } from "../../../test/support/postgres.ts";
import type { FileGarbage, RetentionRecords } from "../../runs/retention-records.ts";
import { sqlRetentionRecords } from "../sql/retention.ts";
import { openPostgres } from "./database.ts";
import { PostgresJournal } from "./journal.ts";
import { nodeGarbage } from "./node-garbage.ts";
import { PostgresNodes } from "./nodes.ts";

const LIMIT_MS = 10_000;
const LEASE_MS = 60_000;

/** A database with these nodes. */
async function open(...nodeIds: readonly string[]) {
  const url = await takePostgres();
  const database = await openPostgres(url);
  const journal = new PostgresJournal(database);
  const nodes = new PostgresNodes(database, LIMIT_MS, () => null);
  const said = { name: "n", address: null, version: "1", labels: {}, pools: {}, totals: {} };
  for (const nodeId of nodeIds) await nodes.register({ ...said, nodeId, owner: `${nodeId}/1` }, LEASE_MS, []);
  return {
    nodes,
    sql: (text: string) => inPostgres(url, text),
    /** The records as a node has them. */
    on: (nodeId: string, kinds: readonly FileGarbage["kind"][] = ["run", "blob"]): RetentionRecords => ({
      ...sqlRetentionRecords(database),
      ...nodeGarbage(database, { nodeId, kinds }),
    }),
    async ended(jobId: string, sha256: string) {
      const end = progress({ status: "completed" });
      await journal.commit([changes({ jobId, progress: end, artifacts: [artifact(sha256)] })]);
    },
    async [Symbol.asyncDispose]() {
      await nodes.close();
      await journal.close();
      await database.close();
      await returnPostgres(url);
    },
  };
}

async function removeAll(records: RetentionRecords): Promise<void> {
  await records.removeOwn(100);
  while (await records.removeParts(() => true)) {
    // A statement at a time.
  }
}

const seen = async (records: RetentionRecords, limit = 10, after: FileGarbage | null = null) =>
  (await records.fileGarbage(limit, after)).map(({ kind, name }) => `${kind} ${name}`);

/** Removes what a node finds, as its cleanup does. */
async function collect(records: RetentionRecords): Promise<readonly string[]> {
  const found = await records.fileGarbage(10, null);
  await records.forgetGarbage(found);
  return found.map(({ kind, name }) => `${kind} ${name}`);
}

test("what one node has removed at home is still to be removed by each of the others, once", async () => {
  await using one = await open("a", "b", "c");
  await one.ended("g-1", "sha-1");
  const [a, b, c] = [one.on("a"), one.on("b"), one.on("c")];
  await removeAll(a);
  const [run = ""] = (await seen(a)).filter((note) => note.startsWith("run"));
  const all = ["blob sha-1", run];
  for (const node of [a, b, c])
    assert.deepEqual(await seen(node), all, "until one has begun it is everyone's");
  for (const node of [b, a, c]) {
    assert.deepEqual(await collect(node), all);
    assert.deepEqual(await seen(node), []);
  }
});

test("what two nodes have removed at one moment is left for neither", async () => {
  await using one = await open("a", "b");
  await one.ended("g-1", "sha-1");
  const [a, b] = [one.on("a"), one.on("b")];
  await removeAll(a);
  await Promise.all([collect(a), collect(b)]);
  assert.deepEqual([await seen(a), await seen(b)], [[], []]);
});

test("what a node keeps for now stays noted for it, and for others", async () => {
  await using one = await open("a", "b");
  await one.ended("g-1", "sha-1");
  const [a, b] = [one.on("a"), one.on("b")];
  await removeAll(a);
  const [blob] = await a.fileGarbage(1, null);
  await b.forgetGarbage([blob!]);
  assert.equal((await seen(a)).length, 2);
  assert.equal((await seen(b)).length, 1);
  await a.forgetGarbage([blob!]);
  assert.deepEqual([(await seen(a)).length, (await seen(b)).length], [1, 1]);
});

test("a content that an artifact names again is not removed on any node", async () => {
  await using one = await open("a", "b");
  await one.ended("g-1", "sha-1");
  const [a, b] = [one.on("a"), one.on("b")];
  await removeAll(a);
  await collect(a);
  await one.ended("g-2", "sha-1");
  assert.deepEqual(
    (await seen(b)).map((note) => note.split(" ")[0]),
    ["run"],
  );
});

test("pages go through what is noted for all and for this node, in one order", async () => {
  await using one = await open("a", "b");
  for (const n of [1, 2, 3, 4]) await one.ended(`g-${n}`, `sha-${n}`);
  const [a, b] = [one.on("a"), one.on("b")];
  await removeAll(a);
  const all = await a.fileGarbage(10, null);
  await a.forgetGarbage(all.filter(({ name }) => ["sha-1", "sha-3"].includes(name)));
  const paged: FileGarbage[] = [];
  for (let after: FileGarbage | null = null; ; after = paged.at(-1)!) {
    const page: readonly FileGarbage[] = await b.fileGarbage(3, after);
    if (page.length === 0) break;
    paged.push(...page);
  }
  assert.deepEqual(paged, all);
});

test("files that all nodes have in one store are removed once", async () => {
  await using one = await open("a", "b");
  await one.ended("g-1", "sha-1");
  const [a, b] = [one.on("a", ["run"]), one.on("b", ["run"])];
  await removeAll(a);
  await collect(a);
  assert.deepEqual(
    (await seen(b)).map((note) => note.split(" ")[0]),
    ["run"],
  );
});

test("nothing is noted for nodes that are not seen any more, and their notes go with them", async () => {
  await using one = await open("a", "stopped", "gone");
  await one.nodes.leave({ nodeId: "stopped", owner: "stopped/1" });
  await one.sql(
    `UPDATE nodes SET heartbeat_at = heartbeat_at - ${31 * 24 * 60 * 60 * 1_000} WHERE node_id = 'gone'`,
  );
  await one.ended("g-1", "sha-1");
  await removeAll(one.on("a"));
  await collect(one.on("a"));
  assert.deepEqual(await seen(one.on("gone")), []);
  assert.equal((await seen(one.on("stopped"))).length, 2, "it comes back with its home");
  await one.sql("DELETE FROM nodes WHERE node_id = 'stopped'");
  assert.deepEqual(await seen(one.on("stopped")), []);
});
