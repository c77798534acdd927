// The contract of what retention asks of the records (src/runs/retention-records.ts).

import assert from "node:assert/strict";
import {
  type ContractTest,
  type GatewayUnderTest,
  gatewayContract,
  withJobs,
  withoutParts,
  withRuns,
} from "../../../test/support/gateway-records.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { agent, artifact, changes, next, progress } from "../../../test/support/journal-records.ts";
import type { JobProgress } from "../../engine/journal.ts";
import { newTally } from "../../engine/tally.ts";
import type { EndPosition, RetentionRecords } from "../../runs/retention-records.ts";

const numbered = (sha256: string, n = 1) => artifact(sha256, { artifactId: `art_${n}_${sha256}` });

const endedAt = (ms: number, bytes = 10): JobProgress =>
  progress({
    status: "completed",
    updatedAtMs: ms,
    tally: { ...newTally(), historyChars: bytes - 1, artifactBytes: 1 },
  });

const at = (endedAtMs: number, id = "\u{10ffff}"): EndPosition => ({ endedAtMs, id });

/** A run of job 1 that has ended then. */
async function endedRun(under: GatewayUnderTest, n: number, endedAtMs: number, sha256 = `sha-${n}`) {
  const one = run(n, "job_0001");
  await withRuns(under, one);
  await under.journal.commit([
    launch(one, { progress: endedAt(endedAtMs), agents: [agent(0)], artifacts: [numbered(sha256, n)] }),
  ]);
}

const pageOf = async ({ retention }: GatewayUnderTest, limit: number, after: EndPosition | null = null) =>
  (await retention.endedPage(limit, after)).map(({ id, storedBytes }) => `${id} ${storedBytes}`);

const removeAll = async (retention: RetentionRecords, through: EndPosition) => {
  const ids: number[] = [];
  for (;;) {
    const { count } = await retention.removeEnded(through, 2);
    if (count === 0) return ids;
    ids.push(count);
  }
};

gatewayContract("the records of retention", contract);

function contract(test: ContractTest): void {
  test("ended jobs of both APIs are listed with their sizes, newest end first; open ones are not", async (under) => {
    await withJobs(under, job(1));
    await endedRun(under, 1, 300);
    await endedRun(under, 2, 100);
    await under.journal.commit([
      changes({ jobId: "own", progress: endedAt(200, 7) }),
      changes({ jobId: "also-200", progress: endedAt(200, 5) }),
      changes({ jobId: "open", progress: progress({ updatedAtMs: 400 }) }),
    ]);
    assert.deepEqual(await pageOf(under, 9), ["g-0001 10", "own 7", "also-200 5", "g-0002 10"]);
    assert.deepEqual(await pageOf(under, 2, at(300, "g-0001")), ["own 7", "also-200 5"]);
    assert.deepEqual(await pageOf(under, 9, at(200, "also-200")), ["g-0002 10"]);
  });

  test("jobs that ended up to a position are removed, oldest first, a few at a time; later and open ones stay", async (under) => {
    const { retention, runtime, records, journal } = under;
    await withJobs(under, job(1));
    for (const [n, ms] of [
      [1, 100],
      [2, 200],
      [3, 200],
      [4, 300],
    ] as const)
      await endedRun(under, n, ms);
    const open = run(5, "job_0001");
    await withRuns(under, open);
    await journal.commit([launch(open, { progress: progress({ updatedAtMs: 1 }) })]);
    assert.deepEqual(await retention.removeEnded(at(200, "g-0002"), 1), { count: 1, bytes: 10 });
    assert.equal(await runtime.find("g-0001"), null);
    assert.deepEqual(await removeAll(retention, at(200, "g-0002")), [1]);
    const left = await records.runs({ jobId: "job_0001", status: null, limit: 9, after: null });
    assert.deepEqual(
      left.rows.map(({ runId }) => runId),
      ["run_0005", "run_0004", "run_0003"],
    );
    assert.equal((await records.job("job_0001"))?.activeRuns, 1);
    assert.deepEqual(await journal.commit([advance(open, 1, { status: "completed" })]), {
      lost: [],
      unwritable: [],
    });
    assert.equal((await records.job("job_0001"))?.activeRuns, 0);
  });

  test("a database is unused until it has a job, in either API, and again when that is removed", async (under) => {
    const { retention, journal } = under;
    assert.equal(await retention.isUnused(), true);
    await journal.commit([changes({ jobId: "own", progress: endedAt(1) })]);
    assert.equal(await retention.isUnused(), false);
    await removeAll(retention, at(1));
    assert.equal(await retention.isUnused(), true);
    await withJobs(under, job(1));
    assert.equal(await retention.isUnused(), false);
  });

  test("a removed run is gone for every reader at once, before the rest of it is removed", async (under) => {
    await withJobs(under, job(1));
    await endedRun(under, 1, 100);
    await under.retention.removeEnded(at(100), 9);
    const again = await under.reopen();
    assert.equal(await again.runtime.findRun("run_0001"), null);
    assert.equal(await again.runtime.detail("g-0001", 5), null);
    assert.deepEqual((await again.runtime.events("g-0001", 0)).lines, []);
    assert.deepEqual((await again.runtime.eventsBefore("g-0001", 9)).lines, []);
    assert.deepEqual(await again.runtime.artifactPage("run_0001", 100, null), []);
    assert.equal(await again.runtime.artifact("run_0001", "art_1_sha-1"), null);
    assert.deepEqual(await again.runtime.artifactPage("run_0001", 9, null), []);
    assert.equal(await again.records.run("run_0001"), null);
    assert.equal(await again.retention.isRunThere("run_0001"), false);
    // Its rows are still there, so its content is still named.
    assert.equal(await again.retention.isBlobNamed("sha-1", null), true);
    await withoutParts(again);
    assert.equal(await again.retention.isBlobNamed("sha-1", null), false);
  });

  test("the rows of a removed job are deleted in batches, a transaction each, and its files are recorded at the end", async (under) => {
    const { retention, journal } = under;
    const artifacts = Array.from({ length: 500 }, (_, n) => numbered(`sha-${n % 300}`, n));
    await journal.commit([changes({ jobId: "large", artifacts })]);
    for (let i = 1; i < 100; i++) {
      const events = { firstEventSeq: i + 1, eventLines: [`{"n":${i}}`] };
      await journal.commit([
        next(i, { jobId: "large", ...events, progress: i === 99 ? endedAt(1) : progress() }),
      ]);
    }
    await retention.removeEnded(at(1), 9);
    let transactions = 0;
    while (await retention.removeParts(() => true)) transactions++;
    assert.ok(transactions > 8, `${transactions} transactions`);
    const garbage = await retention.fileGarbage(1_000, null);
    assert.equal(garbage.length, 301);
    assert.equal(garbage.at(-1)?.name, "run_large");
    await retention.forgetGarbage(garbage);
    assert.deepEqual(await retention.fileGarbage(1_000, null), []);
    assert.equal(await retention.removeParts(() => false), false);
  });

  test("a job whose latest run is removed points to the latest of the others, at last to none, and does not count as open", async (under) => {
    const { retention, records } = under;
    await withJobs(under, job(1));
    await endedRun(under, 1, 300);
    await endedRun(under, 2, 200);
    await endedRun(under, 3, 100);
    const latest = async () => (await records.job("job_0001"))?.latestRun?.runId ?? null;
    const open = async () =>
      (await records.jobs({ includeTerminal: false, limit: 9, after: null })).rows.length;
    await retention.removeEnded(at(100), 9);
    assert.equal(await latest(), "run_0002");
    await retention.removeEnded(at(200), 9);
    assert.equal(await latest(), "run_0001");
    assert.equal(await open(), 0);
    await retention.removeEnded(at(300), 9);
    assert.equal(await latest(), null);
    assert.equal(await records.latestRun("job_0001"), null);
    assert.equal(await open(), 0);
    assert.equal((await records.job("job_0001"))?.activeRuns, 0);
    await withRuns(under, run(4, "job_0001"));
    assert.deepEqual([await latest(), await open()], ["run_0004", 1]);
  });

  test("a job whose latest run is removed while an earlier one is open counts as open", async (under) => {
    const { retention, records, journal } = under;
    const open = run(1, "job_0001");
    await withJobs(under, job(1));
    await withRuns(under, open);
    await journal.commit([launch(open)]);
    await endedRun(under, 2, 100);
    await retention.removeEnded(at(100), 9);
    const found = await records.job("job_0001");
    assert.deepEqual([found?.latestRun?.runId, found?.activeRuns], ["run_0001", 1]);
    assert.equal((await records.jobs({ includeTerminal: false, limit: 9, after: null })).rows.length, 1);
    await journal.commit([advance(open, 1, { status: "failed" })]);
    assert.equal((await records.jobs({ includeTerminal: false, limit: 9, after: null })).rows.length, 0);
  });

  test("a run that was never launched is removed by its own end; a waiting one is not", async (under) => {
    const { retention, records } = under;
    await withJobs(under, job(1));
    await withRuns(under, run(1, "job_0001"), run(2, "job_0001"), run(3, "job_0001"));
    const end = { status: "cancelled", failureJson: null } as const;
    await records.write(async (writes) => {
      await writes.endUnlaunched("run_0001", end, 100);
      await writes.endUnlaunched("run_0002", end, 200);
    });
    const shown = async (beforeMs: number) =>
      (await retention.unlaunchedPage(beforeMs, 9, null)).map(({ id }) => id);
    assert.deepEqual(await shown(200), ["run_0001"]);
    assert.deepEqual(await shown(201), ["run_0001", "run_0002"]);
    assert.deepEqual(await retention.removeUnlaunched(200, 9), { count: 1, bytes: 0 });
    assert.deepEqual(await shown(9_999), ["run_0002"]);
    assert.deepEqual(await retention.removeUnlaunched(9_999_999, 9), { count: 1, bytes: 0 });
    assert.deepEqual(await retention.removeUnlaunched(9_999_999, 9), { count: 0, bytes: 0 });
    assert.equal((await records.job("job_0001"))?.latestRun?.runId, "run_0003");
    assert.equal((await records.job("job_0001"))?.activeRuns, 1);
  });

  test("content of two runs is referenced until the last of them is removed", async (under) => {
    const { retention } = under;
    await withJobs(under, job(1));
    await endedRun(under, 1, 100, "shared");
    await endedRun(under, 2, 200, "shared");
    const named = () => retention.isBlobNamed("shared", null);
    assert.equal(await retention.isBlobNamed("shared", at(100)), true);
    assert.equal(await retention.isBlobNamed("shared", at(200)), false);
    assert.equal(await retention.isBlobNamed("nobody's", null), false);
    await retention.removeEnded(at(100), 9);
    await withoutParts(under);
    assert.equal(await named(), true);
    assert.deepEqual(
      (await retention.fileGarbage(9, null)).map(({ kind }) => kind),
      ["run"],
    );
    await retention.removeEnded(at(200), 9);
    assert.equal(await named(), true);
    await withoutParts(under);
    assert.equal(await named(), false);
    assert.deepEqual(
      (await retention.fileGarbage(9, null)).map(({ kind }) => kind),
      ["blob", "run", "run"],
    );
  });

  test("whether content is referenced is known, however many removed runs have it", async (under) => {
    const { retention, journal } = under;
    const many = Array.from({ length: 1_200 }, (_, n) => numbered("shared", n));
    await journal.commit([
      changes({ jobId: "a", progress: endedAt(300), artifacts: [numbered("shared")] }),
      changes({ jobId: "b", progress: endedAt(100), artifacts: many }),
    ]);
    assert.equal(await retention.isBlobNamed("shared", at(200)), true);
    assert.equal(await retention.isBlobNamed("shared", at(300)), false);
  });

  test("a snapshot is named by bundles, durable jobs, and runtime jobs that stay", async (under) => {
    const { retention, records, journal } = under;
    const named = (fingerprint: string, without: EndPosition | null) =>
      retention.isSnapshotNamed(fingerprint, without);
    const from = (jobId: string, bundleFingerprint: string) => ({
      ...changes({ jobId }).insert!,
      runId: `run_${jobId}`,
      bundleFingerprint,
    });
    await withJobs(under, job(1, { bundleFingerprint: "of-job" }));
    await records.write((writes) =>
      writes.saveBundle({
        bundleId: "b",
        fingerprint: "of-bundle",
        graphId: "g",
        name: "b",
        source: { kind: "zip" },
        sizeBytes: 1,
        createdAtMs: 1,
        updatedAtMs: 1,
      }),
    );
    await journal.commit([
      changes({ jobId: "open", insert: from("open", "of-open") }),
      changes({ jobId: "ended", insert: from("ended", "of-ended"), progress: endedAt(100) }),
    ]);
    for (const name of ["of-job", "of-bundle", "of-open"])
      assert.equal(await named(name, at(900)), true, name);
    assert.deepEqual([await named("of-ended", at(99)), await named("of-ended", at(100))], [true, false]);
    assert.deepEqual([await named("of-ended", null), await named("nobody's", null)], [true, false]);
    await retention.removeEnded(at(100), 9);
    assert.equal(await named("of-ended", null), false);
  });
}
