// Launching, and what may come between: a store that takes nothing, a restart, a request that controls the run, an
// unexpected error, more runs than memory is given for.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Gate, restarted, startCore, type TestCore } from "../../test/support/core.ts";
import { executor, graph, router, sensor } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import type { NewRun } from "./records.ts";

const quick = graph("quick", [router("in")]);
const slow = graph("slow", [executor("work", ["true"])]);
const held = graph("held", [sensor("wait")]);

/** How often a runtime job was begun, which its first event says. */
async function timesBegun(core: TestCore, runtimeJobId: string): Promise<number> {
  const { lines } = await core.journal.events(runtimeJobId, 0);
  return lines.filter((line) => line.includes('"job_pending"')).length;
}

describe("a run that was accepted", () => {
  test("is launched with the identity it was given, and ends", async () => {
    await using core = await startCore();
    const job = await core.job(quick);
    const run = await core.start(job.jobId, { topic: "bees" });
    await core.launched();
    const runtimeJob = await core.journal.find(run.runtimeJobId);
    assert.deepEqual([runtimeJob?.runId, runtimeJob?.definitionId], [run.runId, job.jobId]);
    const ended = await core.ended(run.runId);
    assert.deepEqual([ended.status, ended.launched], ["completed", true]);
  });

  test("is launched once, however often it is announced", async () => {
    await using core = await startCore();
    const run = await core.accept((await core.job(held)).jobId);
    for (let i = 0; i < 5; i++) core.launcher.enqueue(run.runId);
    await core.whenRun(run.runId, (one) => one.launched);
    for (let i = 0; i < 5; i++) core.launcher.enqueue(run.runId);
    await core.launched();
    assert.equal(await timesBegun(core, run.runtimeJobId), 1);
    // Whatever its status says: the row is the judge.
    core.database.connection.exec("UPDATE runs SET status = 'pending'");
    core.launcher.enqueue(run.runId);
    await until("an idle launcher", () => core.launcher.waiting === 0 || core.plans.begun.length > 1);
    assert.equal(core.plans.begun.length, 1);
  });

  test("fails with the reason when the store will never take its job", async () => {
    await using core = await startCore();
    const run = await core.accept((await core.job(quick)).jobId);
    const other = await core.accept((await core.job(quick)).jobId);
    core.database.connection
      .prepare("INSERT INTO job_sources (job_id, manifest_json) VALUES (?, '{}')")
      .run(run.runtimeJobId);
    core.launcher.enqueue(run.runId);
    core.launcher.enqueue(other.runId);
    const ended = await core.ended(run.runId);
    assert.deepEqual([ended.status, ended.launched], ["failed", false]);
    const { code, details } = JSON.parse(ended.failureJson ?? "{}");
    assert.equal(code, "runtime.record_damaged");
    assert.match(details.message, /UNIQUE constraint failed: job_sources.job_id/);
    assert.equal((await core.ended(other.runId)).status, "completed");
  });

  test("fails with the reason when its bundle is gone, and its history has the reason", async () => {
    await using first = await startCore();
    const job = await first.job(quick);
    const run = await first.accept(job.jobId);
    await rm(join(first.home, "bundles", job.bundleFingerprint ?? ""), { recursive: true });
    await using core = await restarted(first);
    await core.recover();
    const ended = await core.ended(run.runId);
    assert.deepEqual([ended.status, ended.launched], ["failed", false]);
    assert.equal(JSON.parse(ended.failureJson ?? "{}").code, "runtime.bundle_missing");
    assert.equal((await core.records.job(job.jobId))?.activeRuns, 0);
    await core.launched();
    assert.equal(await core.journal.find(run.runtimeJobId), null);
  });

  test("fails when its inputs do not fit the bundle", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(quick);
    const run = await core.accept(jobId);
    // As a newer version of the checks would see a run that an older one accepted.
    const inputsJson = '{"$entrypoints":{"nobody":[1]}}';
    core.database.connection
      .prepare("UPDATE runs SET inputs_json = ? WHERE run_id = ?")
      .run(inputsJson, run.runId);
    core.launcher.enqueue(run.runId);
    const ended = await core.ended(run.runId);
    assert.equal(ended.status, "failed");
    const failure = JSON.parse(ended.failureJson ?? "{}");
    assert.equal(failure.code, "inputs.invalid");
    assert.match(failure.details.message, /nobody/);
  });
});

describe("while the runtime takes nothing", () => {
  test("all runs wait, and are then launched in the order of their acceptance", async () => {
    await using core = await startCore();
    const jobs = [];
    for (let n = 0; n < 3; n++) jobs.push(await core.job(quick));
    core.broken.journal = true;
    const first = await core.start(jobs[0]!.jobId);
    await until("a launch that has to wait", () => core.clock.timers === 1);
    const others = [await core.start(jobs[1]!.jobId), await core.start(jobs[2]!.jobId)];
    assert.equal(core.launcher.waiting, 3);
    assert.deepEqual(core.plans.begun, [jobs[0]!.jobId], "the others are not tried");
    core.broken.journal = false;
    await until("a store that takes writes", () => core.engine.unavailable === null);
    core.clock.fire();
    for (const run of [first, ...others]) assert.equal((await core.ended(run.runId)).status, "completed");
    assert.deepEqual(
      core.plans.begun.slice(1),
      jobs.map((job) => job.jobId),
    );
    assert.equal(await timesBegun(core, first.runtimeJobId), 1);
    await core.launched();
  });

  test("a run that is cancelled meanwhile is not launched afterwards", async () => {
    await using core = await startCore();
    core.broken.journal = true;
    const run = await core.start((await core.job(quick)).jobId);
    await until("a launch that has to wait", () => core.clock.timers === 1);
    assert.equal((await core.runs.control(run.runId, "cancelled")).status, "cancelled");
    core.broken.journal = false;
    await until("a store that takes writes", () => core.engine.unavailable === null);
    core.clock.fire();
    await core.launched();
    assert.equal(await core.journal.find(run.runtimeJobId), null);
  });
});

test("a run that meets an unexpected error waits alone, and is tried again", async () => {
  await using core = await startCore();
  const [bad, good] = [await core.job(quick), await core.job(quick)];
  core.plans.broken.add(bad.jobId);
  const waiting = await core.start(bad.jobId);
  await until("the error", () => core.clock.timers === 1);
  const run = await core.start(good.jobId);
  assert.equal((await core.ended(run.runId)).status, "completed");
  assert.equal((await core.find(waiting.runId)).status, "pending");
  core.plans.broken.clear();
  core.clock.fire();
  assert.equal((await core.ended(waiting.runId)).status, "completed");
});

describe("control and launch of one run take turns", () => {
  for (const [desired, status] of [
    ["cancelled", "cancelled"],
    ["paused", "paused"],
  ] as const) {
    test(`a launch that comes while the run is being ${desired} finds it ${status}`, async () => {
      await using core = await startCore();
      const run = await core.accept((await core.job(quick)).jobId);
      const gate = new Gate();
      core.records.gates.push(gate);
      const controlled = core.runs.control(run.runId, desired);
      await gate.reached;
      core.launcher.enqueue(run.runId);
      // What does not wait for its turn is done by now.
      await core.start((await core.job(quick)).jobId).then((other) => core.ended(other.runId));
      gate.open();
      assert.equal((await controlled).status, status);
      await core.launched();
      assert.equal((await core.find(run.runId)).status, status);
      assert.equal(await core.journal.find(run.runtimeJobId), null);
    });
  }

  test("a request that comes during the launch reaches the runtime job", async () => {
    await using core = await startCore();
    const gate = new Gate();
    core.plans.gate = gate;
    const run = await core.start((await core.job(held)).jobId);
    await gate.reached;
    const controlled = core.runs.control(run.runId, "cancelled");
    gate.open();
    const now = await controlled;
    assert.deepEqual([now.status, now.launched, now.desiredState], ["cancelled", true, "cancelled"]);
    assert.equal(core.engine.openJobs, 0);
  });

  test("a run that is paused, and resumed during the launch of others, is launched", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(quick);
    const run = await core.start(jobId);
    const states = await Promise.allSettled(
      (["paused", "running", "paused", "running"] as const).map((one) => core.runs.control(run.runId, one)),
    );
    // It may have ended by itself before it could be paused.
    for (const state of states) {
      if (state.status === "rejected") assert.match(String(state.reason), /is completed/);
    }
    assert.equal((await core.ended(run.runId)).status, "completed");
    assert.equal(await timesBegun(core, run.runtimeJobId), 1);
  });
});

describe("after a restart", () => {
  test("what was accepted only is launched, and what was launched is not launched again", async () => {
    await using first = await startCore();
    const { jobId } = await first.job(slow);
    const launched = await first.start(jobId);
    await first.whenRun(launched.runId, (run) => run.launched);
    const accepted = await first.accept(jobId);
    await using core = await restarted(first);
    await core.recover();
    for (const run of [launched, accepted]) {
      await core.endCommand(run.runId);
      assert.equal((await core.ended(run.runId)).status, "completed");
      assert.equal(await timesBegun(core, run.runtimeJobId), 1);
    }
  });

  test("a run that was paused before its launch still waits", async () => {
    await using first = await startCore();
    const run = await first.accept((await first.job(quick)).jobId);
    await first.runs.control(run.runId, "paused");
    await using core = await restarted(first);
    await core.recover();
    await core.launched();
    assert.equal((await core.find(run.runId)).status, "paused");
    await core.runs.control(run.runId, "running");
    assert.equal((await core.ended(run.runId)).status, "completed");
  });

  test("a waiting run is brought to its desired state, and is not launched before", async () => {
    await using first = await startCore();
    const { jobId } = await first.job(held);
    const [cancelled, paused, resumed] = [
      await first.accept(jobId),
      await first.accept(jobId),
      await first.accept(jobId),
    ];
    await first.runs.control(resumed.runId, "paused");
    await first.records.write(async (writes) => {
      await writes.setDesiredState(cancelled.runId, "cancelled", 1);
      await writes.setDesiredState(paused.runId, "paused", 1);
      await writes.setDesiredState(resumed.runId, "running", 1);
    });
    for (const run of [cancelled, paused]) first.launcher.enqueue(run.runId);
    await first.launched();
    await using core = await restarted(first);
    await core.recover();
    await core.whenRun(resumed.runId, (run) => run.launched);
    const found = await Promise.all([cancelled, paused, resumed].map(({ runId }) => core.find(runId)));
    assert.deepEqual(
      found.map((run) => [run.status, run.launched]),
      [
        ["cancelled", false],
        ["paused", false],
        ["running", true],
      ],
    );
  });

  test("a desired state that did not reach the runtime is applied", async () => {
    await using first = await startCore();
    const { jobId } = await first.job(held);
    const [cancelled, paused, resumed] = [
      await first.start(jobId),
      await first.start(jobId),
      await first.start(jobId),
    ];
    for (const { runId } of [cancelled, paused, resumed]) await first.whenRun(runId, (run) => run.launched);
    await first.runs.control(resumed.runId, "paused");
    await first.records.write(async (writes) => {
      await writes.setDesiredState(cancelled.runId, "cancelled", 1);
      await writes.setDesiredState(paused.runId, "paused", 1);
      await writes.setDesiredState(resumed.runId, "running", 1);
    });
    await using core = await restarted(first);
    await core.recover();
    const statuses = [];
    for (const { runId } of [cancelled, paused, resumed]) statuses.push((await core.find(runId)).status);
    assert.deepEqual(statuses, ["cancelled", "paused", "running"]);
  });
});

describe("stopping", () => {
  test("waits for the launch that is under way, and begins no other", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(held);
    const gate = new Gate();
    core.plans.gate = gate;
    const run = await core.start(jobId);
    await gate.reached;
    const stopped = core.launcher.stop();
    const late = await core.start(jobId);
    gate.open();
    await stopped;
    assert.equal((await core.find(run.runId)).launched, true);
    assert.equal((await core.find(late.runId)).launched, false);
  });

  test("cancels the retry: a launcher that has stopped launches nothing", async () => {
    await using core = await startCore();
    core.plans.broken.add((await core.job(quick)).jobId);
    const run = await core.start([...core.plans.broken][0] ?? "");
    await until("the retry", () => core.clock.timers === 1);
    await core.launcher.stop();
    assert.equal(core.clock.timers, 0);
    assert.equal((await core.find(run.runId)).status, "pending");
  });
});

/** How runs wait for the retry, and how many there are: beyond 2,000 in the queue 64 are being launched. */
const crowds = [
  {
    what: "while the store takes nothing",
    count: 2_400,
    hold: (core: TestCore) => {
      core.broken.journal = true;
    },
    release: (core: TestCore) => {
      core.broken.journal = false;
    },
  },
  {
    what: "while each one meets an error",
    count: 2_064,
    hold: (core: TestCore, jobId: string) => void core.plans.broken.add(jobId),
    release: (core: TestCore) => core.plans.broken.clear(),
  },
];

for (const { what, count, hold, release } of crowds) {
  test(`more runs than there is room for ${what} are all launched, and not remembered all at once`, async () => {
    await using core = await startCore();
    const { jobId } = await core.job(quick);
    const accepted: NewRun[] = [];
    while (accepted.length < count) {
      const some = Array.from({ length: Math.min(300, count - accepted.length) }, () => core.accept(jobId));
      accepted.push(...(await Promise.all(some)));
    }
    hold(core, jobId);
    for (const run of accepted) core.runs.accepted(run);
    assert.ok(core.launcher.waiting <= 2_064, String(core.launcher.waiting));
    await until("a launcher that can do no more", () => core.clock.timers === 1);
    release(core);
    await until("a store that takes writes", () => core.engine.unavailable === null);
    core.clock.fire();
    await core.launched();
    const pending = await core.records.runs({ jobId, status: ["pending"], limit: 1, after: null });
    assert.deepEqual(pending.rows, []);
    const newest = await core.ended(accepted.at(-1)!.runId);
    assert.equal(newest.status, "completed");
  });
}
