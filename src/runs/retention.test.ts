// Retention against real SQLite, real files and a clock that the test moves.

import assert from "node:assert/strict";
import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { bundleFiles, writeFiles, zipOf } from "../../test/support/bundles.ts";
import { advance, job, launch, run } from "../../test/support/gateway-samples.ts";
import { changes, progress } from "../../test/support/journal-records.ts";
import { keepAll, type RetentionScene, retentionScene } from "../../test/support/retention.ts";
import { until } from "../../test/support/until.ts";
import { newTally } from "../engine/tally.ts";
import type { Retention, RetentionLimits } from "./retention.ts";

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

const counts = ({ runs, blobs, bundles, leftovers }: Awaited<ReturnType<Retention["collect"]>>) => ({
  runs,
  blobs,
  bundles,
  leftovers,
});

async function collect(s: RetentionScene, limits: RetentionLimits, isPreview = false) {
  return counts(await s.retention.collect({ limits, isPreview }));
}

test("age: what ended before goes, what ended later stays, and 0 days keep all", async () => {
  await using s = await retentionScene();
  await s.ended("old", 8 * DAY_MS, { history: 10 });
  await s.ended("young", 6 * DAY_MS, { history: 10 });
  assert.equal((await collect(s, keepAll)).runs.count, 0);
  assert.deepEqual((await collect(s, { ...keepAll, olderThanDays: 7 })).runs, { count: 1, bytes: 10 });
  assert.deepEqual(await s.left(), ["young"]);
  assert.deepEqual(s.removedRuns, ["run_old"]);
});

test("size: the oldest ends go until the rest fits, to the byte; not one more", async () => {
  for (const [bytesMax, expected] of [
    [1_000, 10],
    [999, 9],
    [500, 5],
    [499, 4],
    [99, 0],
  ] as const) {
    await using s = await retentionScene();
    for (let i = 0; i < 10; i++) await s.ended(`j-${i}`, (10 - i) * HOUR_MS, { history: 100 });
    const { runs } = await collect(s, { ...keepAll, bytesMax });
    assert.equal(runs.count, 10 - expected, `${bytesMax}`);
    assert.deepEqual(await s.left(), Array.from({ length: 10 }, (_, i) => `j-${i}`).slice(10 - expected));
  }
});

test("size counts by what was written: many that ended in one moment are cut apart by their ids", async () => {
  await using s = await retentionScene();
  const nowMs = s.clock.nowMs();
  const same = progress({
    status: "completed",
    updatedAtMs: nowMs - HOUR_MS,
    tally: { ...newTally(), historyChars: 1 },
  });
  await s.journal.commit(
    Array.from({ length: 1_200 }, (_, i) =>
      changes({ jobId: `j-${String(i).padStart(4, "0")}`, progress: same }),
    ),
  );
  const limits = { ...keepAll, bytesMax: 700 };
  assert.deepEqual((await collect(s, limits, true)).runs, { count: 500, bytes: 500 });
  assert.deepEqual((await collect(s, limits)).runs, { count: 500, bytes: 500 });
  const left = await s.left();
  assert.deepEqual([left.length, left[0]], [700, "j-0500"]);
});

test("age and size together: the stricter of the two counts", async () => {
  for (const limits of [
    { olderThanDays: 3, bytesMax: 1_000 },
    { olderThanDays: 9, bytesMax: 30 },
  ]) {
    await using s = await retentionScene();
    for (let i = 1; i <= 6; i++) await s.ended(`j-${i}`, i * DAY_MS - HOUR_MS, { history: 10 });
    assert.equal((await collect(s, limits, true)).runs.count, 3);
    assert.equal((await collect(s, limits)).runs.count, 3);
    assert.deepEqual(await s.left(), ["j-1", "j-2", "j-3"]);
  }
});

test("open runs stay, however old and large", async () => {
  await using s = await retentionScene();
  const huge = { ...newTally(), historyChars: 1_000_000 };
  await s.journal.commit([changes({ jobId: "open", progress: progress({ updatedAtMs: 1, tally: huge }) })]);
  await s.gateway.write(async (writes) => {
    await writes.insertJob(job(1));
    await writes.insertRun(run(1, "job_0001"));
    await writes.insertRun(run(2, "job_0001"));
  });
  await s.journal.commit([launch(run(1, "job_0001"), { progress: progress({ updatedAtMs: 1 }) })]);
  await s.ended("ended", DAY_MS, { history: 10 });
  const limits = { olderThanDays: 0.001, bytesMax: 1 };
  assert.equal((await collect(s, limits)).runs.count, 1);
  assert.deepEqual(await s.left(), ["g-0001", "open"]);
  assert.equal((await s.gateway.job("job_0001"))?.activeRuns, 2);
  const { lost } = await s.journal.commit([advance(run(1, "job_0001"), 1, { status: "completed" })]);
  assert.deepEqual(lost, []);
});

test("a run that ended before it came to the runtime goes by its age", async () => {
  await using s = await retentionScene();
  await s.gateway.write(async (writes) => {
    await writes.insertJob(job(1));
    for (const n of [1, 2]) await writes.insertRun(run(n, "job_0001"));
    const end = { status: "cancelled", failureJson: null } as const;
    await writes.endUnlaunched("run_0001", end, s.clock.nowMs() - 2 * DAY_MS);
    await writes.endUnlaunched("run_0002", end, s.clock.nowMs());
  });
  const limits = { ...keepAll, olderThanDays: 1 };
  assert.equal((await collect(s, limits, true)).runs.count, 1);
  assert.equal((await collect(s, limits)).runs.count, 1);
  assert.equal(await s.gateway.run("run_0001"), null);
  assert.equal((await s.gateway.job("job_0001"))?.latestRun?.runId, "run_0002");
});

/** Something of every kind, two hours before now. */
async function everything(s: RetentionScene): Promise<void> {
  for (let i = 0; i < 5; i++) {
    await s.ended(`own-${i}`, (i + 1) * DAY_MS, { history: 10, artifact: `of its own ${i}` });
    await s.ended(`same-${i}`, (i + 1) * DAY_MS + 1, { history: 10, artifact: "shared by all" });
  }
  await s.blobs.putBytes(Buffer.from("an orphan"));
  const source = join(s.home, "source");
  for (const [i, bundleId] of ["kept", "let-go"].entries()) {
    await writeFiles(source, bundleFiles({ "payloads/n.txt": String(i) }));
    await s.bundles.registerFolder({ path: source, bundleId });
  }
  await writeFiles(source, bundleFiles({ "payloads/n.txt": "another" }));
  const { fingerprint: unnamed } = await s.bundles.takeFolder(source);
  await s.bundles.snapshots.release(unnamed);
  for (const place of ["runs/run_gone/shared", "evidence/run_gone", "tmp/old", "runs/run_own-0"]) {
    await mkdir(join(s.home, place), { recursive: true });
    await writeFile(join(s.home, place, "file"), "12345");
  }
  await writeFile(join(s.home, "tmp/stray"), "123");
  for (const place of ["runs/run_gone", "evidence/run_gone", "tmp/old", "tmp/stray"])
    await utimes(join(s.home, place), 1, 1);
}

test("what nothing names is kept while it is most of the home, until a request confirms", async () => {
  await using s = await retentionScene();
  await s.ended("known", HOUR_MS, { history: 1, artifact: "known" });
  // What a lost database has left: nobody names it any more.
  for (let i = 0; i < 4; i++) await s.blobs.putBytes(Buffer.from(`of a lost database ${i}`));
  await mkdir(join(s.home, "runs/run_lost/shared"), { recursive: true });
  await utimes(join(s.home, "runs/run_lost"), 1, 1);
  s.pass(2 * DAY_MS);
  const asked = { limits: keepAll, isPreview: false };
  const preview = await s.retention.collect({ ...asked, isPreview: true });
  assert.deepEqual([preview.blobs.count, preview.leftovers.count, preview.needsConfirmation], [4, 1, true]);
  const held = await s.retention.collect(asked);
  assert.deepEqual([held.blobs.count, held.leftovers.count, held.needsConfirmation], [0, 0, true]);
  assert.match(s.warned.join(), /troupe gc --confirm/);
  assert.deepEqual(await readdir(join(s.home, "runs")), ["run_lost"]);
  const confirmed = await s.retention.collect({ ...asked, isConfirmed: true });
  assert.deepEqual(
    [confirmed.blobs.count, confirmed.leftovers.count, confirmed.needsConfirmation],
    [4, 1, false],
  );
  assert.equal((await s.retention.collect(asked)).needsConfirmation, false);
});

test("of a store that others use, an unused program removes nothing: it may be about to join their cluster", async () => {
  await using s = await retentionScene({ filesAreShared: true });
  await s.blobs.putBytes(Buffer.from("of the cluster"));
  s.pass(2 * DAY_MS);
  const asked = { limits: keepAll, isPreview: false };
  assert.equal((await s.retention.collect(asked)).blobs.count, 0);
  assert.equal((await s.retention.collect({ ...asked, isPreview: true })).blobs.count, 0);
  assert.equal((await s.retention.collect({ ...asked, isPreview: true, isConfirmed: true })).blobs.count, 1);
  await s.ended("own", HOUR_MS, { history: 1, artifact: "own" });
  assert.equal((await s.retention.collect(asked)).blobs.count, 1);
});

test("what another program has removed the rows of needs no confirmation, also when it is most of the home", async () => {
  await using s = await retentionScene();
  await s.ended("known", HOUR_MS, { history: 1, artifact: "known" });
  for (let n = 0; n < 4; n++) await s.ended(`g-${n}`, 3 * DAY_MS, { history: 1, artifact: `removed ${n}` });
  s.pass(DAY_MS);
  const through = { endedAtMs: s.clock.nowMs() - 2 * DAY_MS, id: "" };
  assert.equal((await s.retentionRecords.removeEnded(through, 10)).count, 4);
  while (await s.retentionRecords.removeParts(() => false)) {
    // Until all that is left are notes of files.
  }
  const { blobs, needsConfirmation } = await s.retention.collect({ limits: keepAll, isPreview: false });
  assert.deepEqual([blobs.count, needsConfirmation, s.warned], [4, false, []]);
});

test("a preview reports exactly what the same request then removes, and removes nothing", async () => {
  await using s = await retentionScene();
  await everything(s);
  s.pass(2 * DAY_MS);
  const limits = { olderThanDays: 4.5, bytesMax: 0 };
  const before = await readdir(s.home, { recursive: true });
  const preview = await collect(s, limits, true);
  assert.deepEqual((await readdir(s.home, { recursive: true })).sort(), before.sort());
  assert.equal((await s.left()).length, 10);
  // Two days later, three of the five pairs are too old; the content that all share has the others, too.
  assert.deepEqual(preview.runs, { count: 6, bytes: 6 * 10 + 3 * 12 + 3 * 13 });
  assert.deepEqual(preview.blobs, { count: 4, bytes: 3 * 12 + 9 });
  assert.equal(preview.bundles.count, 1);
  assert.deepEqual(preview.leftovers, { count: 4, bytes: 5 + 5 + 5 + 3 });

  assert.deepEqual(await collect(s, limits), preview);
  const nothing = { count: 0, bytes: 0 };
  const none = { runs: nothing, blobs: nothing, bundles: nothing, leftovers: nothing };
  assert.deepEqual(await collect(s, limits, true), none);
  assert.deepEqual(await collect(s, limits), none);
  const { totals } = s.retention;
  assert.deepEqual([totals.runs, totals.blobs, totals.bundles, totals.leftovers], Object.values(preview));
  assert.deepEqual(await readdir(join(s.home, "runs")), ["run_own-0"]);
  assert.deepEqual(await readdir(join(s.home, "tmp")), []);
});

test("what was just created is kept: blobs, snapshots, folders", async () => {
  await using s = await retentionScene();
  await s.blobs.putBytes(Buffer.from("about to be named"));
  await mkdir(join(s.home, "runs/run_new"), { recursive: true });
  const source = await writeFiles(join(s.home, "source"), bundleFiles());
  const taken = await s.bundles.takeFolder(source);
  await s.bundles.snapshots.release(taken.fingerprint);
  const { fingerprint } = taken;
  const { blobs, bundles, leftovers } = await collect(s, keepAll);
  assert.deepEqual([blobs.count, bundles.count, leftovers.count], [0, 0, 0]);
  assert.ok((await readdir(join(s.home, "bundles"))).includes(fingerprint));
});

test("a snapshot is removed a day after its last owner released it, and not while a job has it", async () => {
  await using s = await retentionScene();
  const source = await writeFiles(join(s.home, "source"), bundleFiles());
  const first = await s.bundles.registerFolder({ path: source, bundleId: "b" });
  const insert = { ...changes().insert!, bundleFingerprint: first.fingerprint };
  await s.journal.commit([changes({ jobId: "open", insert: { ...insert, runId: "run_open" } })]);
  s.pass(10 * DAY_MS);
  await writeFiles(source, bundleFiles({ "payloads/n.txt": "changed" }));
  await s.bundles.reload("b");
  s.pass(2 * DAY_MS);
  assert.equal((await collect(s, keepAll)).bundles.count, 0);
  await s.journal.commit([
    {
      ...changes({ jobId: "open", progress: progress({ status: "completed", updatedAtMs: 5 }) }),
      revision: 1,
      insert: null,
      firstEventSeq: 2,
    },
  ]);
  assert.equal((await collect(s, keepAll)).bundles.count, 0);
  const limits = { ...keepAll, olderThanDays: 1 };
  assert.equal((await collect(s, limits, true)).bundles.count, 1);
  assert.equal((await collect(s, limits)).bundles.count, 1);
  assert.equal((await readdir(join(s.home, "bundles"))).includes(first.fingerprint), false);
  // The same content again is a snapshot like any other.
  await writeFiles(source, bundleFiles());
  await rm(join(source, "payloads/n.txt"));
  const again = await s.bundles.registerFolder({ path: source, bundleId: "b" });
  assert.equal(again.fingerprint, first.fingerprint);
  assert.notEqual(await s.bundles.launch("b", {}), null);
});

test("a snapshot stays for a run that was accepted and not launched yet, though its bundle is gone", async () => {
  await using s = await retentionScene();
  const source = await writeFiles(join(s.home, "source"), bundleFiles());
  const { bundleId, fingerprint } = await s.bundles.registerFolder({ path: source, bundleId: "b" });
  await s.gateway.write(async (writes) => {
    await writes.insertJob({ ...job(1), bundleFingerprint: fingerprint });
    await writes.insertRun(run(1, "job_0001"));
  });
  await s.database.kysely.deleteFrom("bundles").where("bundle_id", "=", bundleId).execute();
  s.pass(10 * DAY_MS);
  const limits = { olderThanDays: 0.001, bytesMax: 1 };
  assert.equal((await collect(s, limits)).bundles.count, 0);
  assert.notEqual(await s.bundles.definition(fingerprint), null);
  await s.gateway.write(async (writes) => {
    await writes.endUnlaunched("run_0001", { status: "cancelled", failureJson: null }, s.clock.nowMs());
    await writes.deleteJob("job_0001", 1);
  });
  while (await s.gateway.purgeDeleted(10));
  assert.equal((await collect(s, limits)).bundles.count, 1);
});

test("a snapshot that a reload releases is removed at once, however new it is", async () => {
  await using s = await retentionScene();
  const source = await writeFiles(join(s.home, "source"), bundleFiles());
  await s.bundles.registerFolder({ path: source, bundleId: "b" });
  await writeFiles(source, bundleFiles({ "payloads/n.txt": "changed" }));
  const reloaded = await s.bundles.reload("b");
  assert.deepEqual(
    await readdir(join(s.home, "bundles")),
    [reloaded?.current_fingerprint, "incoming"].sort(),
  );
});

test("an upload keeps its snapshot however long its record takes, and loses it when it is refused", async () => {
  await using s = await retentionScene();
  const zip = () => Readable.from([zipOf(bundleFiles())]);
  const { record } = await s.bundles.receiveZip(zip());
  s.pass(3 * DAY_MS);
  assert.equal((await collect(s, keepAll)).bundles.count, 0);
  await s.bundles.snapshots.release(record.fingerprint);
  assert.deepEqual(await readdir(join(s.home, "bundles")), ["incoming"]);
  await s.bundles.receiveZip(zip());
  await s.gateway.write((writes) => writes.saveBundle(record));
  await s.bundles.snapshots.release(record.fingerprint);
  s.pass(3 * DAY_MS);
  assert.equal((await collect(s, keepAll)).bundles.count, 0);
  assert.notEqual(await s.bundles.launch(record.bundleId, {}), null);
});

test("a snapshot that is taken in while it is being removed is there afterwards", async () => {
  await using s = await retentionScene();
  for (let turn = 0; turn < 20; turn++) {
    const zip = () => Readable.from([zipOf(bundleFiles({ "payloads/n.txt": String(turn) }))]);
    const { record } = await s.bundles.receiveZip(zip());
    await Promise.all([
      s.bundles.receiveZip(zip()),
      s.bundles.snapshots.release(record.fingerprint),
      collect(s, keepAll),
    ]);
    assert.notEqual(await s.bundles.definition(record.fingerprint), null);
    assert.ok((await readdir(join(s.home, "bundles"))).includes(record.fingerprint));
    await s.bundles.snapshots.release(record.fingerprint);
    assert.deepEqual(await readdir(join(s.home, "bundles")), ["incoming"]);
  }
});

test("the sweep comes a while after the start and then each hour; it keeps to the program's limits", async () => {
  await using s = await retentionScene({ limits: { olderThanDays: 1, bytesMax: 0 } });
  await s.ended("old", 2 * DAY_MS, { history: 10 });
  s.retention.start();
  assert.deepEqual([...s.timers.values()], [60_000]);
  s.fire();
  await until("the end of the first sweep", () => s.timers.size === 1);
  assert.deepEqual([...s.timers.values()], [HOUR_MS]);
  assert.deepEqual(await s.left(), []);
  assert.deepEqual([s.retention.totals.sweeps, s.retention.totals.runs.count], [1, 1]);
});

test("while another program does it, a sweep removes no run, and what belongs to nothing in its own home", async () => {
  await using s = await retentionScene({ limits: { olderThanDays: 1, bytesMax: 0 } });
  await everything(s);
  await s.ended("old", 2 * DAY_MS, { history: 10 });
  s.duty.isOwn = false;
  s.pass(2 * DAY_MS);
  s.retention.start();
  const sweep = async () => {
    s.fire();
    await until("the end of a sweep", () => s.timers.size === 1);
    const { runs, leftovers } = s.retention.totals;
    return [runs.count, leftovers.count];
  };
  await sweep();
  assert.deepEqual(await sweep(), [0, 4]);
  assert.ok((await s.left()).includes("old"));
  s.duty.isOwn = true;
  const [removed = 0] = await sweep();
  assert.ok(removed > 0);
  assert.deepEqual(await s.left(), []);
});

test("the folders of the home are walked by the second sweep, not right after a start", async () => {
  await using s = await retentionScene();
  await everything(s);
  s.pass(2 * DAY_MS);
  s.retention.start();
  const sweep = async () => {
    s.fire();
    await until("the end of a sweep", () => s.timers.size === 1);
    const { blobs, leftovers } = s.retention.totals;
    return [blobs.count, leftovers.count];
  };
  assert.deepEqual(await sweep(), [0, 0]);
  assert.deepEqual(await sweep(), [1, 4]);
});

test("a sweep that fails is logged and counted, and the next one starts as usual", async () => {
  await using s = await retentionScene({ limits: { olderThanDays: 1, bytesMax: 0 } });
  await s.ended("old", 2 * DAY_MS, { history: 10 });
  const { connection } = s.database;
  connection.exec("CREATE TRIGGER no BEFORE DELETE ON jobs BEGIN SELECT RAISE(ABORT, 'no'); END");
  s.retention.start();
  s.fire();
  await until("the end of a sweep", () => s.timers.size === 1);
  assert.equal(s.warned.length, 1);
  assert.equal(s.retention.totals.failures, 1);
  connection.exec("DROP TRIGGER no");
  s.fire();
  await until("the end of a sweep", () => s.timers.size === 1);
  assert.deepEqual(await s.left(), []);
});

/** What the system says of a file of another user. */
const refused = (path: string) =>
  Object.assign(new Error(`EACCES: permission denied, unlink '${path}'`), {
    code: "EACCES",
    syscall: "unlink",
  });

test("a file that cannot be removed does not stop the others: it is logged, not counted, and retried", async () => {
  const held = new Set<string>();
  await using s = await retentionScene({
    mustRemove: (name) => {
      if (held.has(name)) throw refused(name);
    },
  });
  await everything(s);
  s.pass(2 * DAY_MS);
  const limits = { olderThanDays: 4.5, bytesMax: 0 };
  const preview = await collect(s, limits, true);
  for (const name of ["run_gone", "old", "run_own-4"]) held.add(name);
  const first = await collect(s, limits);
  assert.deepEqual([first.runs, first.blobs, first.bundles], [preview.runs, preview.blobs, preview.bundles]);
  // Of four, both folders of the run and the one in tmp/ stay.
  assert.deepEqual(first.leftovers, { count: 1, bytes: 3 });
  assert.equal(s.warned.length, 4);
  assert.equal(s.retention.totals.failures, 4);
  assert.equal(s.removedRuns.includes("run_own-4"), false);
  held.clear();
  assert.deepEqual((await collect(s, limits)).leftovers, { count: 3, bytes: 15 });
  assert.ok(s.removedRuns.includes("run_own-4"));
});

test("a preview knows what removed jobs have left, also when nothing goes for its age or size", async () => {
  await using s = await retentionScene();
  await s.ended("own", HOUR_MS, { history: 10, artifact: "its artifact" });
  s.pass(2 * HOUR_MS);
  // As a crash leaves it: the row is gone, the rest is noted.
  await s.retentionRecords.removeOwn(1);
  const preview = await collect(s, keepAll, true);
  assert.deepEqual(preview.blobs, { count: 1, bytes: "its artifact".length });
  assert.deepEqual(await collect(s, keepAll), preview);
});

test("requests take turns: the second one finds what the first has left", async () => {
  await using s = await retentionScene();
  for (let i = 0; i < 120; i++) await s.ended(`j-${i}`, 2 * DAY_MS, { history: 1 });
  const limits = { ...keepAll, olderThanDays: 1 };
  const [first, preview, second] = await Promise.all([
    collect(s, limits),
    collect(s, limits, true),
    collect(s, limits),
  ]);
  assert.deepEqual([first.runs.count, preview.runs.count, second.runs.count], [120, 0, 0]);
});

test("a stop ends a removal between two of its transactions; the next program continues it", async () => {
  await using s = await retentionScene();
  for (let i = 0; i < 300; i++) await s.ended(`j-${i}`, 2 * DAY_MS, { history: 1 });
  const collected = s.retention.collect({ limits: { ...keepAll, olderThanDays: 1 }, isPreview: false });
  await until("a first transaction", async () => (await s.left()).length < 300);
  await s.retention.stop();
  const { runs } = await collected;
  assert.equal((await s.left()).length, 300 - runs.count);
  assert.ok(runs.count > 0);
});

test("free pages are returned to the disk, except for a reserve", async () => {
  await using s = await retentionScene();
  const { connection } = s.database;
  connection.exec("CREATE TABLE filler (text TEXT)");
  const insert = connection.prepare("INSERT INTO filler VALUES (?)");
  connection.exec("BEGIN");
  for (let i = 0; i < 300; i++) insert.run("x".repeat(200_000));
  connection.exec("COMMIT; DELETE FROM filler; PRAGMA wal_checkpoint(TRUNCATE)");
  const number = (pragma: string) =>
    Number(Object.values(connection.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const before = number("page_count");
  assert.ok(before > 14_000);
  await collect(s, keepAll);
  assert.ok(number("page_count") < 5_000, `${number("page_count")} of ${before} pages`);
  assert.ok(number("freelist_count") >= 4_096);
  assert.equal(connection.prepare("PRAGMA integrity_check").get()?.integrity_check, "ok");
});
