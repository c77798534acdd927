// Runs that two programs with one PostgreSQL know of: whichever of them accepts, controls, launches or dies, a run is launched once.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Gate } from "../../test/support/core.ts";
import { executor, graph, router } from "../../test/support/graphs.ts";
import { type SharedProgram, startPrograms } from "../../test/support/shared-programs.ts";
import { EngineUnavailable } from "../engine/batch.ts";
import { IdempotentRequests } from "../http/core/idempotency.ts";

const quick = graph("quick", [router("in")]);
const slow = graph("slow", [executor("work", ["true"])]);

/** A job whose package both programs have. */
async function jobOf(manifest: typeof quick, a: SharedProgram, b: SharedProgram) {
  await b.bundle(manifest);
  return a.job(manifest);
}

async function timesBegun({ journal }: SharedProgram, runtimeJobId: string): Promise<number> {
  const { lines } = await journal.events(runtimeJobId, 0);
  return lines.filter((line) => line.includes('"job_pending"')).length;
}

describe("a run", () => {
  test("that a lost program has accepted is launched by the one that is left", async () => {
    await using programs = await startPrograms();
    const { a, b, living } = programs;
    const job = await jobOf(quick, a, b);
    const run = await a.accept(job.jobId);
    await b.takeover.start();
    await b.launcher.recover();
    b.launcher.enqueue(run.runId);
    await b.launched();
    const found = await b.find(run.runId);
    assert.deepEqual([found.owner, found.launched], ["a/1", false], "it is its owner's while that is alive");
    living.delete("a/1");
    b.takeover.lost();
    const ended = await b.ended(run.runId);
    assert.deepEqual([ended.status, ended.owner], ["completed", "b/1"]);
    await b.takeover.stop();
  });

  test("whose program pauses before its launch is launched once, by the one that has taken it over", async () => {
    await using programs = await startPrograms();
    const { a, b, living } = programs;
    const job = await jobOf(slow, a, b);
    const paused = new Gate();
    a.plans.gate = paused;
    const run = await a.start(job.jobId);
    await paused.reached;
    living.delete("a/1");
    b.takeover.lost();
    await b.whenRun(run.runId, (one) => one.launched);
    paused.open();
    // The runtime refuses its job; when it is looked at again, it is launched.
    await a.clock.whenTimers(1);
    a.clock.fire();
    await a.launched();
    assert.equal(a.engine.openJobs, 0);
    assert.deepEqual([a.starts.length, await timesBegun(b, run.runtimeJobId)], [0, 1]);
    await b.endCommand(run.runId);
    assert.equal((await b.ended(run.runId)).status, "completed");
    assert.equal((await b.records.job(job.jobId))?.activeRuns, 0);
    await b.takeover.stop();
  });

  test("that one program cancels while the other launches it is cancelled, and its command is never started", async () => {
    await using programs = await startPrograms();
    const { a, b } = programs;
    const job = await jobOf(slow, a, b);
    const launching = new Gate();
    a.plans.gate = launching;
    const run = await a.start(job.jobId);
    await launching.reached;
    assert.equal((await b.runs.control(run.runId, "cancelled")).status, "cancelled");
    launching.open();
    await a.clock.whenTimers(1);
    a.clock.fire();
    await a.launched();
    assert.equal(await a.journal.find(run.runtimeJobId), null);
    assert.deepEqual([a.starts.length, (await a.find(run.runId)).status], [0, "cancelled"]);
  });

  test("that was launched since another program has read it is noted as cancelled, and its owner does it", async () => {
    await using programs = await startPrograms();
    const { a, b } = programs;
    const job = await jobOf(slow, a, b);
    const run = await a.accept(job.jobId);
    const read = new Gate();
    b.records.readGate = { runId: run.runId, gate: read };
    const ends: string[] = [];
    b.feed.subscribe(run.runtimeJobId, (_, isEnd) => void (isEnd && ends.push("told")));
    const cancelled = b.runs.control(run.runId, "cancelled");
    await read.reached;
    a.runs.accepted(run);
    await a.whenRun(run.runId, (one) => one.launched);
    read.open();
    // Nothing leads from one program of this test to the other.
    await assert.rejects(cancelled, EngineUnavailable);
    const found = await b.find(run.runId);
    assert.deepEqual([found.launched, found.desiredState, ends.length], [true, "cancelled", 0]);
    await a.launcher.recover();
    assert.equal(
      (await a.find(run.runId)).finishedAtMs,
      null,
      "the program that has asked may be about to do it",
    );
    a.clock.aheadMs = 10_000;
    await a.launcher.recover();
    assert.equal((await a.ended(run.runId)).status, "cancelled");
  });

  test("that was paused before its launch is launched by the program that is asked to resume it", async () => {
    await using programs = await startPrograms();
    const { a, b } = programs;
    const job = await jobOf(quick, a, b);
    const run = await a.accept(job.jobId);
    await a.runs.control(run.runId, "paused");
    await b.runs.control(run.runId, "running");
    assert.equal((await b.ended(run.runId)).owner, "b/1");
  });

  test("of a job that became ready is launched by the program that made it so", async () => {
    await using programs = await startPrograms();
    const { a, b } = programs;
    const job = await jobOf(quick, a, b);
    const run = await a.accept(job.jobId);
    b.launcher.settleSoon(job.jobId);
    assert.equal((await b.ended(run.runId)).owner, "b/1");
  });

  test("that another program has taken over does not fail for what this one has met", async () => {
    await using programs = await startPrograms();
    const { a, b } = programs;
    const job = await jobOf(slow, a, b);
    const run = await a.accept(job.jobId);
    const before = await a.find(run.runId);
    await a.records.write((writes) => writes.adoptRuns(job.jobId, "b/1"));
    await a.ends.failed(before, a.ends.makeFailure(before, "inputs.invalid", "wrong"));
    assert.equal((await a.find(run.runId)).status, "pending");
  });
});

test("keys that two programs are sent at one moment have one effect each, and one answer", async () => {
  await using programs = await startPrograms();
  const { a, b } = programs;
  const job = await jobOf(quick, a, b);
  const { jobId } = job;
  const asked = {
    inputs: {},
    configOverrides: null,
    trigger: { kind: "api", id: null },
    trace: null,
  } as const;
  const doors = [a, b].map(({ records, runs }) => {
    const requests = new IdempotentRequests({ records, nowMs: () => 1_000 });
    return (key: string) => {
      const path = `/api/v1/jobs/${jobId}/runs`;
      return requests.answer({ principal: "p", method: "POST", path, key, content: {} }, async () => {
        const insert = await runs.prepare(jobId, asked);
        return async (writes) => ({ status: 202, headers: {}, body: (await insert(writes)).runId });
      });
    };
  });
  const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
  const given = await Promise.all(keys.map((key) => Promise.all(doors.map((send) => send(key)))));
  for (const answers of given) {
    assert.equal(new Set(answers.map(({ answer }) => answer.body)).size, 1);
    assert.deepEqual(answers.map(({ isReplay }) => isReplay).toSorted(), [false, true]);
  }
  assert.equal((await b.records.recentRuns(jobId, 100)).length, keys.length);
});
