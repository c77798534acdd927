// Cleanup against real SQLite and real files, at the moments that a test through the API cannot hit.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { EngineHarness } from "../../test/support/engine-harness.ts";
import { changes, progress } from "../../test/support/journal-contract.ts";
import type { ArtifactRecord } from "../engine/ports.ts";
import { FileBlobs } from "../store/blobs.ts";
import { SqlJobRecords } from "../store/job-records.ts";
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
  const records = new SqlJobRecords(database);
  const removedRuns: string[] = [];
  let nowMs = Date.now();
  const later: (() => void)[] = [];
  const log: string[] = [];
  const cleanup = () =>
    new Cleanup({
      records,
      engine: new EngineHarness().engine,
      clock: {
        nowMs: () => nowMs,
        after: (_delayMs, run) => {
          later.push(run);
          return () => {};
        },
        soon: () => {},
      },
      log: { warn: (_fields, message) => log.push(message), error: (_fields, message) => log.push(message) },
      removeBlob: (sha256, sinceMs) => blobs.removeUnlessPutSince(sha256, sinceMs),
      removeRunFiles: async (runId) => void removedRuns.push(runId),
      commandsEnded: async () => {},
    });
  const finish = (jobId: string) =>
    journal.commit([
      changes({ jobId, progress: progress({ status: "completed" }), artifacts: [artifact(blob.sha256)] }),
    ]);
  const tick = async (ms: number) => {
    nowMs += ms;
    for (const run of later.splice(0)) run();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const isThere = async () => (await blobs.open(blob.sha256)) !== null;
  const untilGone = async () => {
    while ((await records.garbage(10, null)).length > 0)
      await new Promise((resolve) => setImmediate(resolve));
  };
  return { cleanup, finish, tick, isThere, untilGone, records, removedRuns, later, log, database };
}

function artifact(sha256: string): ArtifactRecord {
  const shown = { name: "a.txt", title: null, contentType: "text/plain" };
  return {
    ...shown,
    artifactId: "art_1",
    agentId: "w",
    kind: "artifact",
    primary: false,
    size: 12,
    sha256,
    createdAtMs: 1,
  };
}

test("a blob that was put just now is kept, noted, and removed once it is old enough (U2)", async () => {
  const s = await scene();
  await s.finish("j-1");
  assert.deepEqual(await s.cleanup().run({ all: false }), ["j-1"]);
  assert.deepEqual(s.removedRuns, ["run_j-1"]);
  assert.equal(await s.isThere(), true);
  assert.equal((await s.records.garbage(10, null)).length, 1);
  await s.tick(120_000);
  await s.untilGone();
  assert.equal(await s.isThere(), false);
});

test("what a killed cleanup had noted is removed by the next start (U1)", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.records.deleteTerminal(10);
  assert.deepEqual(s.removedRuns, []);
  await s.tick(120_000);
  await s.cleanup().collectGarbage();
  assert.deepEqual(s.removedRuns, ["run_j-1"]);
  assert.equal(await s.isThere(), false);
  assert.deepEqual(await s.records.garbage(10, null), []);
});

test("a blob that another job's artifact names is kept until that job goes too (U2)", async () => {
  const s = await scene();
  await s.finish("j-1");
  await s.records.deleteTerminal(10);
  await s.finish("j-2");
  await s.tick(120_000);
  await s.cleanup().collectGarbage();
  assert.equal(await s.isThere(), true);
  await s.cleanup().run({ all: false });
  assert.equal(await s.isThere(), false);
});

test("a cleanup that was stopped does not look again", async () => {
  const s = await scene();
  await s.finish("j-1");
  const cleanup = s.cleanup();
  cleanup.stop();
  await cleanup.run({ all: false });
  assert.equal(s.later.length, 0);
});
