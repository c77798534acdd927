// The watch over the store, on a real SQLite file that another connection locks.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { sql } from "kysely";
import { job } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { openSqlite } from "../sqlite/database.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { StoreWatch } from "./store-watch.ts";

async function watched(t: TestContext, nowMs: () => number) {
  const folder = await mkdtemp(join(tmpdir(), "troupe-watch-"));
  const database = openSqlite(join(folder, "troupe.db"));
  const other = new DatabaseSync(database.file);
  t.after(async () => {
    other.close();
    await database.close();
    await rm(folder, { recursive: true, force: true });
  });
  let writes = 0;
  const counting: typeof database = {
    ...database,
    transaction(work) {
      writes++;
      return database.transaction(work);
    },
  };
  const watch = new StoreWatch(counting, nowMs);
  const write = () => watch.database.transaction((db) => sql`DELETE FROM garbage`.execute(db));
  return { watch, write, other, writes: () => writes };
}

test("while writes succeed there is no problem, and asking writes nothing", async (t) => {
  const { watch, write, writes } = await watched(t, () => 0);
  assert.equal(await watch.problem(), null);
  await write();
  assert.equal(await watch.problem(), null);
  assert.equal(writes(), 1);
});

test("a failed write is a problem until a check finds that the store takes writes again", async (t) => {
  let nowMs = 0;
  const { watch, write, other, writes } = await watched(t, () => nowMs);
  other.exec("BEGIN EXCLUSIVE");
  await assert.rejects(write(), JournalUnavailable);
  assert.match((await watch.problem()) ?? "", /locked by another program/);
  assert.equal(writes(), 2);
  other.exec("ROLLBACK");
  assert.match((await watch.problem()) ?? "", /locked/, "within a second nothing is tried again");
  assert.equal(writes(), 2);
  nowMs = 1_000;
  assert.deepEqual(await Promise.all([watch.problem(), watch.problem()]), [null, null]);
  assert.equal(writes(), 3, "who asks at the same time shares the try");
});

test("anybody's write that succeeds ends the problem", async (t) => {
  const { watch, write, other } = await watched(t, () => 0);
  other.exec("BEGIN EXCLUSIVE");
  await assert.rejects(write(), JournalUnavailable);
  other.exec("ROLLBACK");
  await write();
  assert.equal(await watch.problem(), null);
});

test("an error of the work itself is no problem of the store", async (t) => {
  const { watch } = await watched(t, () => 0);
  const broken = watch.database.transaction(async () => {
    throw new Error("a mistake");
  });
  await assert.rejects(broken, /a mistake/);
  assert.equal(await watch.problem(), null);
});

test("a work that fails alone, in a transaction that ends well, is a problem too", async (t) => {
  const { watch, other } = await watched(t, () => 0);
  const records = sqlGatewayRecords(watch.database, systemClock.soon);
  other.exec("BEGIN EXCLUSIVE");
  await assert.rejects(
    records.write((writes) => writes.insertJob(job(1))),
    JournalUnavailable,
  );
  assert.match((await watch.problem()) ?? "", /locked by another program/);
  other.exec("ROLLBACK");
  await records.write((writes) => writes.insertJob(job(1)));
  assert.equal(await watch.problem(), null);
});
