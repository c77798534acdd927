// What a two-step job makes the disk write and keep, for jobs that are committed sixteen at a time. The figures follow
// from the tables, indexes and texts alone.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pair } from "../../../bench/manifests.ts";
import { idSource } from "../../engine/ids.ts";
import { takePart } from "../../engine/job/image.ts";
import { hasWork, start, step } from "../../engine/job/job.ts";
import type { JobContext } from "../../engine/job/state.ts";
import type { JobChanges } from "../../engine/journal.ts";
import { parseManifest } from "../../engine/manifest.ts";
import { defaultTerms } from "../../engine/share.ts";
import { submittedJob } from "../../engine/submission.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

const COMMITS = 60;
const JOBS_PER_COMMIT = 16;
const JOBS = COMMITS * JOBS_PER_COMMIT;

const folder = mkdtempSync(join(tmpdir(), "troupe-bytes-"));
after(() => rmSync(folder, { recursive: true }));

/** The whole life of a job in one batch. */
function twoStepJob(context: JobContext): JobChanges {
  const parsed = parseManifest(pair);
  assert.ok(parsed.kind === "valid");
  const submission = {
    graph: parsed.graph,
    identity: null,
    manifestJson: JSON.stringify(pair),
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
    trace: null,
    ...defaultTerms,
  };
  const job = submittedJob(submission, context);
  start(job);
  while (hasWork(job)) step(job);
  assert.equal(job.status, "completed");
  return takePart(job).changes;
}

/** Only what a job without tasks and timers asks for. */
function contextAt(nowMs: () => number): JobContext {
  const fraction = () => 0.5;
  const randomness = { id: idSource(nowMs, fraction), fraction };
  const clock = { nowMs, steadyMs: nowMs };
  return { owner: randomness.id(), clock, randomness } as unknown as JobContext;
}

test("a two-step job writes at most 6,000 bytes of log and keeps at most 1,650", async () => {
  const file = join(folder, "jobs.db");
  const database = openSqlite(file);
  const { connection } = database;
  connection.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF");
  const journal = new SqliteJournal(database);
  let ms = Date.parse("2026-11-21T09:30:00.000Z");
  const context = contextAt(() => ms);
  const emptyBytes = sizeOf(`${file}-wal`);
  for (let i = 0; i < COMMITS; i++) {
    ms += 3;
    await journal.commit(Array.from({ length: JOBS_PER_COMMIT }, () => twoStepJob(context)));
  }
  const writtenBytes = (sizeOf(`${file}-wal`) - emptyBytes) / JOBS;
  const kept = connection.prepare("SELECT sum(pgsize) AS bytes FROM dbstat").get() as { bytes: number };
  const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { count: number };
  // Of an empty database each table and index has a page.
  const keptBytes = (kept.bytes - tables.count * 4_096) / JOBS;
  await database.close();
  assert.ok(writtenBytes <= 6_000, `${Math.round(writtenBytes)} bytes written`);
  assert.ok(keptBytes <= 1_650, `${Math.round(keptBytes)} bytes kept`);
});

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
