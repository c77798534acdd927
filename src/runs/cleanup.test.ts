// Cleanup against real SQLite and real files, at the moments that a test through the API cannot hit.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { EngineHarness } from "../../test/support/engine-harness.ts";
import { artifact, changes, progress } from "../../test/support/journal-records.ts";
import { systemClock } from "../app/clock.ts";
import { FileBlobs } from "../store/blobs.ts";
import { sqlJobRecords } from "../store/sql/jobs.ts";
import { sqlRetentionRecords } from "../store/sql/retention.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { SqliteJournal } from "../store/sqlite/journal.ts";
import { Cleanup } from "./cleanup.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-cleanup-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let homes = 0;

async function scene() {
  const home = join(folder, String(++homes));
  const blobs = new FileBlobs(join(home, "blobs"));
  const blob = await blobs.putBytes(Buffer.from("the artifact"));
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const records = sqlJobRecords(database);
  const retention = sqlRetentionRecords(database);
  const removedRuns: string[] = [];
  const { engine } = new EngineHarness();
  let nowMs = Date.now();
  const cleanup = (commandsEnded: () => Promise<void> = async () => {}) =>
    new Cleanup({
      records,
      retention,
      engine,
      control: engine,
      clock: { ...systemClock, nowMs: () => nowMs },
      removeBlob: (sha256, sinceMs, options) => blobs.removeUnlessPutSince(sha256, sinceMs, options),
      removeRunFiles: async (runId) => void removedRuns.push(runId),
      commandsEnded,
    });
  const finish = (jobId: string) =>
    journal.commit([
      changes({ jobId, progress: progress({ status: "completed" }), artifacts: [artifact(blob.sha256)] }),
    ]);
  const pass = (ms: number) => {
    nowMs += ms;
  };
  const isThere = async () => (await blobs.open(blob.sha256)) !== null;
  const notes = async () => (await retention.fileGarbage(10, null)).length;
  return { cleanup, finish, pass, isThere, notes, retention, removedRuns, blobs, engine };
}

const LONG_MS = 2 * 60 * 60 * 1_000;

test("a blob that was put lately is kept, noted, and removed once it is old enough", async () => {
  const s = await scene();
  await s.finish("j-1");
  const cleanup = s.cleanup();
  assert.deepEqual(await cleanup.run({ all: false }), ["j-1"]);
  assert.deepEqual(s.removedRuns, ["run_j-1"]);
  assert.equal(await s.isThere(), true);
  assert.equal(await s.notes(), 1);
  s.pass(LONG_MS);
  assert.deepEqual(await cleanup.collectGarbage(), { count: 1, bytes: 12, refusal: null });
  assert.equal(await s.isThere(), false);
  assert.equal(await s.notes(), 0);
});

test("what a killed cleanup had noted is removed by the next start", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.retention.removeOwn(10);
  assert.deepEqual(s.removedRuns, []);
  s.pass(LONG_MS);
  await s.cleanup().collectGarbage();
  assert.deepEqual(s.removedRuns, ["run_j-1"]);
  assert.equal(await s.isThere(), false);
  assert.equal(await s.notes(), 0);
});

test("a cleanup that was killed while it removed a job's rows goes on with them", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.retention.removeOwn(10);
  await s.retention.removeParts(() => true);
  s.pass(LONG_MS);
  await s.cleanup().collectGarbage();
  assert.equal(await s.retention.removeParts(() => false), false);
  assert.equal(await s.isThere(), false);
});

test("a blob that another job's artifact names is kept until that job goes too", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.retention.removeOwn(10);
  await s.finish("j-2");
  s.pass(LONG_MS);
  await s.cleanup().collectGarbage();
  assert.equal(await s.isThere(), true);
  await s.cleanup().run({ all: false });
  assert.equal(await s.isThere(), false);
});

test("a content that is put again while it is garbage stays for who put it", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.retention.removeOwn(10);
  s.pass(60_000);
  await s.blobs.putBytes(Buffer.from("the artifact"));
  await s.cleanup().collectGarbage();
  assert.equal(await s.isThere(), true);
  await s.finish("j-2");
  s.pass(LONG_MS);
  await s.cleanup().collectGarbage();
  assert.equal(await s.isThere(), true);
});

test("no blob is removed while the store takes no writes: a commit that names it may be waiting", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.retention.removeOwn(10);
  s.pass(LONG_MS);
  s.engine.stop("the store is away");
  await s.cleanup().collectGarbage();
  assert.equal(await s.isThere(), true);
  assert.equal(await s.notes(), 1);
});

test("a stop does not wait for commands of a removed run; its folders are left to the next start", async () => {
  const s = await scene();
  await s.finish("j-1");
  const reached = Promise.withResolvers<void>();
  const cleanup = s.cleanup(() => {
    reached.resolve();
    return new Promise(() => {});
  });
  const done = cleanup.run({ all: false });
  await reached.promise;
  await cleanup.stop();
  await done;
  assert.deepEqual(s.removedRuns, []);
  await s.cleanup().collectGarbage();
  assert.deepEqual(s.removedRuns, ["run_j-1"]);
});

test("a cleanup that was stopped leaves what is noted to the next start", async () => {
  const s = await scene();
  await s.finish("j-1");
  const cleanup = s.cleanup();
  await cleanup.stop();
  await cleanup.run({ all: false });
  assert.deepEqual(s.removedRuns, []);
  await s.cleanup().collectGarbage();
  assert.deepEqual(s.removedRuns, ["run_j-1"]);
});

test("a stop ends a cleanup between two of its transactions: it is held up by no number of jobs", async () => {
  const s = await scene();
  for (let i = 0; i < 60; i++) await s.finish(`j-${i}`);
  const cleanup = s.cleanup();
  const removing = cleanup.run({ all: false });
  await cleanup.stop();
  assert.equal((await removing).length, 25);
  assert.equal((await s.cleanup().run({ all: false })).length, 35);
});
