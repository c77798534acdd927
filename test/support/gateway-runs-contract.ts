// The part of the gateway's contract that is about one run: how it waits, follows its runtime job, and ends.

import assert from "node:assert/strict";
import type { JobProgress } from "../../src/engine/ports.ts";
import { type ContractTest, type GatewayUnderTest, withJobs, withRuns } from "./gateway-records-contract.ts";
import { advance, job, launch, run } from "./gateway-samples.ts";
import { agent, changes, message, progress } from "./journal-contract.ts";

const first = run(1, "job_0001");

async function scene(under: GatewayUnderTest, count = 1): Promise<void> {
  await withJobs(under, job(1));
  await withRuns(under, ...Array.from({ length: count }, (_, i) => run(i + 1, "job_0001")));
}

export function gatewayRunsContract(test: ContractTest): void {
  waitingContract(test);
  followerContract(test);
  derivedContract(test);
}

function waitingContract(test: ContractTest): void {
  test("a run that was inserted waits, and is its job's latest, also after reopening", async (under) => {
    const given = run(1, "job_0001", {
      configOverridesJson: '{"x":1}',
      trigger: { kind: "schedule", id: "s1" },
    });
    await withJobs(under, job(1));
    await withRuns(under, given);
    const { records } = await under.reopen();
    const expected = {
      ...given,
      status: "pending",
      desiredState: "running",
      launched: false,
      label: null,
      startedAtMs: null,
      finishedAtMs: null,
      updatedAtMs: given.createdAtMs,
      resultJson: null,
      failureJson: null,
      progress: { agentsDone: 0, messages: 0, tasksRunning: 0, eventCount: 0 },
    };
    assert.deepEqual(await records.run("run_0001"), expected);
    assert.deepEqual(await records.latestRun("job_0001"), expected);
    assert.equal(await records.run("run_0002"), null);
    const found = await records.job("job_0001");
    assert.equal(found?.activeRuns, 1);
    assert.deepEqual(found?.latestRun, {
      runId: "run_0001",
      jobId: "job_0001",
      status: "pending",
      desiredState: "running",
      trigger: given.trigger,
      createdAtMs: given.createdAtMs,
      startedAtMs: null,
      finishedAtMs: null,
      updatedAtMs: given.createdAtMs,
    });
  });

  test("a run of a job that is not there is not inserted", async ({ records }) => {
    assert.equal(await records.write((writes) => writes.insertRun(run(1, "nobody"))), false);
    assert.equal(await records.run("run_0001"), null);
  });

  test("a run that waits can be paused, told apart, and let go on", async (under) => {
    const { records } = under;
    await scene(under);
    await records.write(async (writes) => {
      await writes.setDesiredState("run_0001", "paused", 3_000);
      await writes.setWaiting("run_0001", "paused", "Waits for you", 3_001);
    });
    const paused = await records.run("run_0001");
    assert.deepEqual(
      [paused?.status, paused?.desiredState, paused?.label, paused?.updatedAtMs],
      ["paused", "paused", "Waits for you", 3_001],
    );
    await records.write((writes) => writes.setWaiting("run_0001", "pending", null, 3_002));
    const pending = await records.run("run_0001");
    assert.deepEqual([pending?.status, pending?.label], ["pending", null]);
  });

  test("G3: a run that ends before its launch is over for good, with the reason and one event", async (under) => {
    const { records, journal } = under;
    await scene(under, 2);
    const end = { status: "failed", failureJson: '{"code":"x"}' } as const;
    await records.write((writes) => writes.endUnlaunched("run_0002", end, 4_000));
    const ended = await records.run("run_0002");
    assert.equal(ended?.launched, false);
    assert.deepEqual(
      [ended?.status, ended?.finishedAtMs, ended?.failureJson],
      ["failed", 4_000, '{"code":"x"}'],
    );
    assert.equal(ended?.progress.eventCount, 1);
    const found = await records.job("job_0001");
    assert.deepEqual([found?.activeRuns, found?.latestRun?.status], [1, "failed"]);

    const before = [ended, found];
    await records.write(async (writes) => {
      await writes.endUnlaunched("run_0002", { status: "cancelled", failureJson: null }, 5_000);
      await writes.setWaiting("run_0002", "paused", "late", 5_000);
      await writes.setDesiredState("run_0002", "paused", 5_000);
    });
    await journal.commit([launch(run(2, "job_0001"))]);
    await journal.commit([advance(run(2, "job_0001"), 1, { status: "completed" })]);
    const after = await records.run("run_0002");
    assert.deepEqual({ ...after, progress: ended?.progress, updatedAtMs: 4_000 }, before[0]);
    assert.equal((await records.job("job_0001"))?.activeRuns, 1);
  });

  test("the end of a run that is not the latest leaves the job among those with an open latest run", async (under) => {
    const { records } = under;
    await scene(under, 2);
    const open = () => records.jobs({ includeTerminal: false, limit: 5, after: null });
    const cancel = (runId: string) =>
      records.write((writes) =>
        writes.endUnlaunched(runId, { status: "cancelled", failureJson: null }, 4_000),
      );
    await cancel("run_0001");
    assert.equal((await open()).length, 1);
    await cancel("run_0002");
    assert.equal((await open()).length, 0);
    await withRuns(under, run(3, "job_0001"));
    assert.deepEqual(
      (await open()).map((one) => [one.latestRun?.runId, one.activeRuns]),
      [["run_0003", 1]],
    );
  });
}

function followerContract(test: ContractTest): void {
  test("G2: a run follows its runtime job through launch, progress, pause and end, also after reopening", async (under) => {
    const { records, journal } = under;
    await scene(under);
    await records.write((writes) => writes.setWaiting("run_0001", "pending", "Preparing", 2_500));
    const begin = progress({ status: "pending", startedAtMs: null, updatedAtMs: 3_000 });
    await journal.commit([launch(first, { progress: begin })]);
    const pending = await records.run("run_0001");
    assert.deepEqual([pending?.launched, pending?.status, pending?.label], [true, "pending", null]);

    const stand = { startedAtMs: 3_100, updatedAtMs: 3_200, eventSeq: 4, messageSeq: 9, activeExecutors: 2 };
    await journal.commit([advance(first, 1, stand)]);
    const running = await records.run("run_0001");
    assert.deepEqual(
      [running?.status, running?.startedAtMs, running?.updatedAtMs],
      ["running", 3_100, 3_200],
    );
    assert.deepEqual(running?.progress, { agentsDone: 0, messages: 9, tasksRunning: 2, eventCount: 4 });

    await journal.commit([advance(first, 2, { ...stand, updatedAtMs: 3_300, eventSeq: 5 })]);
    const later = await records.run("run_0001");
    assert.deepEqual([later?.updatedAtMs, later?.progress.eventCount], [3_300, 5]);
    assert.equal((await records.job("job_0001"))?.latestRun?.updatedAtMs, 3_300);

    await journal.commit([advance(first, 3, { ...stand, status: "paused", updatedAtMs: 3_400 })]);
    assert.equal((await records.run("run_0001"))?.status, "paused");

    const end = { ...stand, status: "completed", updatedAtMs: 3_500, resultJson: '{"ok": true}' } as const;
    await journal.commit([advance(first, 4, { ...end, activeExecutors: 0 })]);
    const again = await under.reopen();
    const over = await again.records.run("run_0001");
    assert.deepEqual(
      [over?.status, over?.finishedAtMs, over?.resultJson],
      ["completed", 3_500, '{"ok": true}'],
    );
    assert.equal(over?.progress.agentsDone, first.agentsTotal);
    const found = await again.records.job("job_0001");
    assert.deepEqual(
      [found?.activeRuns, found?.latestRun?.status, found?.latestRun?.finishedAtMs],
      [0, "completed", 3_500],
    );
    assert.deepEqual(await again.records.jobs({ includeTerminal: false, limit: 5, after: null }), []);
  });

  test("G2: a run whose job is born and ends in one batch is over at once", async (under) => {
    await scene(under, 2);
    const failed: JobProgress = progress({
      status: "failed",
      failureJson: '{"code":"y"}',
      updatedAtMs: 8_000,
    });
    await under.journal.commit([launch(first, { progress: failed }), changes({ jobId: "of-no-run" })]);
    const over = await under.records.run("run_0001");
    assert.deepEqual(
      [over?.launched, over?.status, over?.finishedAtMs, over?.failureJson],
      [true, "failed", 8_000, '{"code":"y"}'],
    );
    // The other run is the latest, and open.
    const found = await under.records.job("job_0001");
    assert.deepEqual([found?.activeRuns, found?.latestRun?.runId], [1, "run_0002"]);
    assert.equal((await under.records.jobs({ includeTerminal: false, limit: 5, after: null })).length, 1);
  });

  test("G2: a lost claim changes no run, and a part that is sent again counts its end once", async (under) => {
    const { records, journal } = under;
    await scene(under, 2);
    await journal.commit([launch(first), launch(run(2, "job_0001"))]);
    const before = await records.run("run_0001");
    const stale = advance(first, 1, { status: "failed" }, { epoch: 0 });
    const strange = advance(first, 7, { status: "cancelled" });
    for (const lost of [stale, strange]) {
      assert.deepEqual(await journal.commit([lost]), { lost: ["g-0001"] });
      assert.deepEqual(await records.run("run_0001"), before);
    }
    const end = advance(first, 1, { status: "completed" });
    await journal.commit([end]);
    await journal.commit([end]);
    assert.equal((await records.job("job_0001"))?.activeRuns, 1);
  });

  test("G2: what a run waits for cannot be changed once it is launched", async (under) => {
    const { records, journal } = under;
    await scene(under);
    await journal.commit([launch(first)]);
    const before = await records.run("run_0001");
    await records.write(async (writes) => {
      await writes.setWaiting("run_0001", "paused", "late", 9_000);
      await writes.endUnlaunched("run_0001", { status: "cancelled", failureJson: null }, 9_000);
    });
    assert.deepEqual(await records.run("run_0001"), before);
    await records.write((writes) => writes.setDesiredState("run_0001", "cancelled", 9_000));
    assert.equal((await records.run("run_0001"))?.desiredState, "cancelled");
  });
}

function derivedContract(test: ContractTest): void {
  test("agents are done when they never act again, or have acted and have nothing before them", async (under) => {
    await scene(under);
    const agents = [
      agent(0, { status: "done", done: true, processedMessages: 0 }),
      agent(1, { status: "ready", processedMessages: 2 }),
      agent(2, { status: "ready", processedMessages: 0 }),
      agent(3, { status: "running", processedMessages: 4 }),
      agent(4, { status: "waiting", processedMessages: 4 }),
      agent(5, { status: "failed", done: true, processedMessages: 4 }),
      agent(6, { status: "ready", processedMessages: 4 }),
    ];
    await under.journal.commit([launch(first, { agents, messages: [message(1, 6)] })]);
    assert.equal((await under.records.run("run_0001"))?.progress.agentsDone, 2);
    const consumed = [{ agentIndex: 6, throughSeq: 1 }];
    await under.journal.commit([advance(first, 1, {}, { consumed })]);
    assert.equal((await under.records.run("run_0001"))?.progress.agentsDone, 3);
    await under.journal.commit([advance(first, 2, { status: "cancelled" })]);
    assert.equal((await under.records.run("run_0001"))?.progress.agentsDone, 3);
  });

  test("reads inside a work see what it has written of jobs and runs", async (under) => {
    await withJobs(under, job(1));
    const seen = await under.records.write(async (writes) => {
      await writes.insertRun(first);
      await writes.setDesiredState("run_0001", "paused", 3_000);
      return [(await writes.run("run_0001"))?.desiredState, (await writes.job("job_0001"))?.latestRun?.runId];
    });
    assert.deepEqual(seen, ["paused", "run_0001"]);
  });

  test("dead letters of a run are listed newest first, a page at a time, and of that run only", async (under) => {
    await scene(under, 2);
    const letter = (n: number) => ({
      deadLetterId: `dl_${n}`,
      agentId: n === 2 ? null : "a",
      reason: "ttl_expired" as const,
      attempts: n,
      message: { message_id: `m${n}` } as never,
      createdAtMs: 100 + n,
    });
    await under.journal.commit([
      launch(first, { deadLetters: [letter(1), letter(2), letter(3)] }),
      launch(run(2, "job_0001"), { deadLetters: [letter(4)] }),
    ]);
    const { records } = under;
    const newest = await records.deadLetters("run_0001", { limit: 2, after: null });
    assert.deepEqual(
      newest.map((one) => one.deadLetterId),
      ["dl_3", "dl_2"],
    );
    assert.deepEqual(await records.deadLetters("run_0001", { limit: 2, after: "dl_2" }), [
      {
        deadLetterId: "dl_1",
        runId: "run_0001",
        agentId: "a",
        reason: "ttl_expired",
        attempts: 1,
        createdAtMs: 101,
        messageJson: '{"message_id":"m1"}',
      },
    ]);
    assert.deepEqual(await records.deadLetters("nobody", { limit: 2, after: null }), []);
    await records.write((writes) => writes.deleteJob("job_0001", 1));
    assert.deepEqual(await records.deadLetters("run_0001", { limit: 2, after: null }), []);
  });
}
