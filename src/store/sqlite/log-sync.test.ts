// When a write is acknowledged, on a real database whose syncs the test ends.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sql } from "kysely";
import { changes, next } from "../../../test/support/journal-records.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { sqlJobRecords } from "../sql/jobs.ts";
import { commitCountFile } from "./commit-counter.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-log-sync-"));
after(() => rmSync(root, { recursive: true, force: true }));
let files = 0;

/** A database, and the ends of the syncs that have begun, in their order. */
function openHeld() {
  const file = join(root, `${++files}.db`);
  const syncs: ((error: Error | null) => void)[] = [];
  const database = openSqlite(file, { syncFile: (_, done) => syncs.push(done) });
  const acknowledged: string[] = [];
  const noting = (name: string, write: Promise<unknown>) =>
    write.then(
      () => acknowledged.push(name),
      (error: unknown) => acknowledged.push(`${name}: ${(error as JournalUnavailable).outcome}`),
    );
  const write = (name: string) =>
    noting(
      name,
      database.transaction((db) => sql`INSERT INTO garbage VALUES ('test', ${name})`.execute(db)),
    );
  const read = async () => {
    const rows = await database.read<{ name: string }>("SELECT name FROM garbage ORDER BY name", []);
    return rows.map(({ name }) => name);
  };
  return { file, database, journal: new SqliteJournal(database), syncs, acknowledged, noting, write, read };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const failure = new Error("EIO: i/o error, fdatasync");

test("a commit is acknowledged by a sync that began after it, and those made meanwhile share the next", async () => {
  const { database, journal, syncs, acknowledged, noting, write } = openHeld();
  const first = write("first");
  await settle();
  const second = write("second");
  const batch = noting("batch", journal.commit([changes({})]));
  await settle();
  assert.deepEqual([acknowledged, syncs.length], [[], 1]);
  syncs[0]!(null);
  await first;
  await settle();
  assert.deepEqual([acknowledged, syncs.length], [["first"], 2]);
  syncs[1]!(null);
  await Promise.all([second, batch]);
  assert.deepEqual(acknowledged.sort(), ["batch", "first", "second"]);
  assert.equal(syncs.length, 2, "nothing is left to sync");
  await database.close();
});

test("a read is answered while a commit is synced, and sees it", async () => {
  const { database, syncs, write, read } = openHeld();
  const first = write("first");
  await settle();
  assert.deepEqual(await read(), ["first"]);
  syncs[0]!(null);
  await first;
  await database.close();
});

test("a page of a history is answered once its events are on disk", async () => {
  const { database, journal, syncs, acknowledged, noting } = openHeld();
  const batch = noting("batch", journal.commit([changes({})]));
  await settle();
  const { events, eventsBefore } = sqlJobRecords(database);
  const { jobId } = changes({});
  const pages = [noting("forwards", events(jobId, 0)), noting("backwards", eventsBefore(jobId, 2))];
  await settle();
  assert.deepEqual(acknowledged, []);
  syncs[0]!(null);
  await Promise.all([batch, ...pages]);
  assert.deepEqual(acknowledged.sort(), ["backwards", "batch", "forwards"]);
  assert.equal((await events(jobId, 0)).lines.length, 1);
  await database.close();
});

test("a history is read while another job's commit is synced, also after that has failed", async () => {
  const { database, journal, syncs, acknowledged, noting } = openHeld();
  const { events } = sqlJobRecords(database);
  const { jobId } = changes({});
  const first = noting("first", journal.commit([changes({})]));
  await settle();
  syncs[0]!(null);
  await first;
  const other = noting("other", journal.commit([changes({ jobId: "job_other" })]));
  await settle();
  void noting("meanwhile", events(jobId, 0));
  await settle();
  assert.deepEqual(acknowledged, ["first", "meanwhile"]);
  syncs[1]!(failure);
  await other;
  void noting("afterwards", events(jobId, 0));
  void noting("of the other", events("job_other", 0));
  await settle();
  assert.deepEqual(acknowledged.slice(2), ["other: unknown", "afterwards", "of the other: damaged"]);
  await database.close();
});

test("a transaction that only reads is answered once what it has read is on disk", async () => {
  const { database, syncs, acknowledged, noting, write } = openHeld();
  const first = write("first");
  await settle();
  const look = noting(
    "look",
    database.transaction((db) => sql`SELECT * FROM garbage`.execute(db)),
  );
  const failing = noting(
    "failing",
    database.transaction(async () => {
      throw new JournalUnavailable("told by what it has read");
    }),
  );
  await settle();
  assert.deepEqual(acknowledged, []);
  syncs[0]!(null);
  await Promise.all([first, look, failing]);
  assert.deepEqual(acknowledged.sort(), ["failing: not_written", "first", "look"]);
  assert.equal(syncs.length, 1);
  await database.close();
});

test("a commit counts as acknowledged once it is synced", async () => {
  const { file, database, syncs, write } = openHeld();
  const count = () => Number(readFileSync(commitCountFile(file), "latin1").slice(0, 16));
  const first = write("first");
  await settle();
  assert.equal(count(), 0);
  syncs[0]!(null);
  await first;
  assert.equal(count(), 1);
  await database.close();
});

test("after a sync that failed nothing is acknowledged or written, and what was committed may be there", async () => {
  const { file, database, journal, syncs, acknowledged, noting, write, read } = openHeld();
  const first = write("first");
  await settle();
  const batch = noting("batch", journal.commit([changes({})]));
  await settle();
  syncs[0]!(failure);
  await Promise.all([first, batch]);
  const laterBatch = noting(
    "later batch",
    journal.commit([next(1, { firstEventSeq: 2, eventLines: ["{}"] })]),
  );
  await settle();
  const later = write("later");
  await settle();
  assert.equal(syncs.length, 1, "another sync would report success");
  await Promise.all([laterBatch, later]);
  await assert.rejects(database.durable(), { outcome: "damaged" });
  assert.deepEqual(acknowledged, [
    "first: unknown",
    "batch: unknown",
    "later batch: damaged",
    "later: damaged",
  ]);
  assert.match(database.damage() ?? "", /Syncing the database \d+\.db to the disk failed \(EIO/);
  assert.deepEqual(await read(), ["first"]);
  await database.close();
  assert.ok(existsSync(`${file}-wal`), "what may not be on disk is not copied into the database");

  const again = openSqlite(file);
  assert.equal(again.missing, null, "nothing that was acknowledged is missing");
  assert.equal(again.damage(), null);
  await again.close();
});
