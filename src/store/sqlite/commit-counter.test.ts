// What a start notices of commits that are missing, on files that were left as a kill, a copy or damage leaves them.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sql } from "kysely";
import { flipBit } from "../../../test/support/damage.ts";
import { changes, next } from "../../../test/support/journal-records.ts";
import { commitCountFile, missingCommits } from "./commit-counter.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-commits-"));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

/** The files as they are after `commits` commits, the last half of which are in the write-ahead log only. */
async function killedAfter(commits: number): Promise<string> {
  const folder = join(root, String(++folders));
  cpSync(mkdtempSync(join(root, "empty-")), folder, { recursive: true });
  const live = openSqlite(join(folder, "live.db"));
  const journal = new SqliteJournal(live);
  await journal.commit([changes({})]);
  for (let n = 1; n < commits; n++) {
    if (n === Math.floor(commits / 2)) live.connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    if (n % 2 === 0) await live.transaction((db) => sql`INSERT INTO garbage VALUES ('x', ${n})`.execute(db));
    else await journal.commit([next((n + 1) / 2, { firstEventSeq: n + 1, eventLines: ["{}"] })]);
  }
  // What a kill leaves is what the files hold while the program has them open.
  const file = join(folder, "troupe.db");
  for (const end of ["", "-wal", "-commits"]) cpSync(join(folder, `live.db${end}`), file + end);
  await live.close();
  return file;
}

const isRefused = {
  name: "StoreUnusable",
  message:
    /lacks (\d+) of \d+ acknowledged commits.*troupe\.db-wal.*`troupe restore FILE`.*--accept-data-loss/,
};

test("no commit is missing after a kill, after a clean end, and in a copy of a closed database", async () => {
  const file = await killedAfter(20);
  assert.equal(missingCommits(file), null);
  await openSqlite(file).close();
  assert.equal(existsSync(`${file}-wal`), false);
  const copy = join(root, "copy.db");
  for (const end of ["", "-commits"]) cpSync(file + end, copy + end);
  for (const one of [file, copy]) {
    const database = openSqlite(one);
    assert.equal(database.missing, null);
    await new SqliteJournal(database).commit([changes({ jobId: "g-2" })]);
    await database.close();
  }
});

test("a removed write-ahead log is noticed, and the rest is not touched", async () => {
  const file = await killedAfter(20);
  rmSync(`${file}-wal`);
  const before = readFileSync(file);
  assert.throws(() => openSqlite(file), isRefused);
  assert.deepEqual(readFileSync(file), before);
  assert.throws(() => openSqlite(file), isRefused, "not only the first time");
});

test("a flipped bit in the write-ahead log is noticed, and the log is kept as it is", async () => {
  const file = await killedAfter(20);
  await flipBit(`${file}-wal`);
  const before = readFileSync(`${file}-wal`);
  assert.throws(() => openSqlite(file), isRefused);
  assert.deepEqual(readFileSync(`${file}-wal`), before);
});

test("an older database in the place of the newer one is noticed", async () => {
  const file = await killedAfter(20);
  await openSqlite(file).close();
  const old = await killedAfter(4);
  await openSqlite(old).close();
  cpSync(old, file);
  assert.throws(() => openSqlite(file), isRefused);
});

test("a start that accepts the loss continues, and the next start does not ask", async () => {
  const file = await killedAfter(20);
  rmSync(`${file}-wal`);
  const database = openSqlite(file, { acceptDataLoss: true });
  assert.equal(database.missing?.acknowledged, 20);
  await database.close();
  const again = openSqlite(file);
  assert.equal(again.missing, null);
  await again.close();
});

test("a count that a power cut left behind, cut off or empty raises no alarm", async () => {
  const file = await killedAfter(20);
  const count = commitCountFile(file);
  const whole = readFileSync(count, "latin1");
  const behind = await killedAfter(19);
  for (const spoil of [
    () => cpSync(commitCountFile(behind), count),
    () => truncateSync(count, 7),
    () => truncateSync(count, 0),
    () => writeFileSync(count, Buffer.alloc(whole.length)),
    () => writeFileSync(count, whole.replace("2", "9")),
    () => rmSync(count),
  ]) {
    spoil();
    assert.equal(missingCommits(file), null);
  }
  await openSqlite(file).close();
  assert.equal(readFileSync(count, "latin1"), whole, "it is right again");
});

test("a transaction that changes nothing, or is undone, is not counted", async () => {
  const file = join(root, "idle.db");
  const database = openSqlite(file);
  const count = () => readFileSync(commitCountFile(file), "latin1");
  await database.transaction((db) => sql`INSERT INTO garbage VALUES ('x', 'y')`.execute(db));
  const one = count();
  await database.transaction((db) => sql`SELECT * FROM garbage`.execute(db));
  assert.equal(count(), one);
  const undone = database.transaction(async (db) => {
    await sql`INSERT INTO garbage VALUES ('x', 'z')`.execute(db);
    throw new Error("undone");
  });
  await assert.rejects(undone, /undone/);
  assert.equal(count(), one);
  // One whose commit fails, behind it one that changes nothing.
  database.connection.exec(`
    CREATE TABLE nobody (id INTEGER PRIMARY KEY);
    CREATE TABLE broken (id INTEGER REFERENCES nobody DEFERRABLE INITIALLY DEFERRED)`);
  await assert.rejects(database.transaction((db) => sql`INSERT INTO broken VALUES (1)`.execute(db)));
  await database.transaction((db) => sql`SELECT * FROM garbage`.execute(db));
  assert.equal(count(), one);
  await database.close();
  await openSqlite(file).close();
});
