// The part of the gateway's contract that is about one run: how it waits, follows its runtime job, and ends.

import assert from "node:assert/strict";
import {
  type ContractTest,
  type GatewayUnderTest,
  gatewayContract,
  withJobs,
  withRuns,
} from "../../../test/support/gateway-records.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { agent, changes, humanRequest, message, progress } from "../../../test/support/journal-records.ts";
import type { JobProgress } from "../../engine/journal.ts";
import { newTally, readTally } from "../../engine/tally.ts";

const first = run(1, "job_0001");
const nothingYet = {
  agentsDone: 0,
  agentEnds: null,
  messages: 0,
  tasksRunning: 0,
  humanPending: 0,
  humanPrompt: null,
  eventCount: 0,
};

async function scene(under: GatewayUnderTest, count = 1): Promise<void> {
  await withJobs(under, job(1));
  await withRuns(under, ...Array.from({ length: count }, (_, i) => run(i + 1, "job_0001")));
}

gatewayContract("the gateway's records, of one run", contract);

function contract(test: ContractTest): void {
  waitingContract(test);
  askedContract(test);
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
      tallyJson: null,
      progress: nothingYet,
      openLetters: 0,
    };
    assert.deepEqual(await records.run("run_0001"), expected);
    assert.deepEqual(await records.latestRun("job_0001"), expected);
    assert.equal(await records.run("run_0002"), null);
    const found = await records.job("job_0001");
    assert.equal(found?.activeRuns, 1);
    const summary = {
      runId: "run_0001",
      jobId: "job_0001",
      status: "pending",
      desiredState: "running",
      trigger: given.trigger,
      createdAtMs: given.createdAtMs,
      startedAtMs: null,
      finishedAtMs: null,
      updatedAtMs: given.createdAtMs,
    };
    assert.deepEqual(found?.latestRun, summary);
    assert.deepEqual(await records.recentRuns("job_0001", 5), [summary]);
  });

  test("a run of a job that is not there is not inserted", async ({ records }) => {
    assert.equal(await records.write((writes) => writes.insertRun(run(1, "nobody"))), false);
    assert.equal(await records.run("run_0001"), null);
  });

  test("a waiting run can be paused and resumed", async (under) => {
    const { records } = under;
    await scene(under);
    await records.write(async (writes) => {
      await writes.setDesiredState("run_0001", "paused", 3_000);
      await writes.setWaiting("run_0001", { status: "paused", label: "Waits for you", owner: null }, 3_001);
    });
    const paused = await records.run("run_0001");
    assert.deepEqual(
      [paused?.status, paused?.desiredState, paused?.label, paused?.updatedAtMs],
      ["paused", "paused", "Waits for you", 3_001],
    );
    await records.write((writes) =>
      writes.setWaiting("run_0001", { status: "pending", label: null, owner: null }, 3_002),
    );
    const pending = await records.run("run_0001");
    assert.deepEqual([pending?.status, pending?.label], ["pending", null]);
  });

  test("a waiting run can be given another priority; a launched one has that of its runtime job", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1));
    await withRuns(under, run(1, "job_0001"));
    const priority = async () => (await records.run("run_0001"))?.priority;
    const setLow = () => records.write((writes) => writes.setPriority("run_0001", "low"));
    assert.equal(await priority(), "high");
    await setLow();
    assert.equal(await priority(), "low");
    const first = launch(run(1, "job_0001"));
    await journal.commit([{ ...first, insert: { ...first.insert!, priority: "low" } }]);
    assert.equal(await priority(), "low");
    await journal.commit([advance(run(1, "job_0001"), 1, {}, { priority: "normal" })]);
    await setLow();
    assert.equal(await priority(), "normal");
  });

  test("a waiting run has a label, set at its creation or later, whatever its status; a launched one has none", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1));
    await withRuns(under, run(1, "job_0001", { label: "Waits" }), run(2, "job_0001"));
    assert.equal((await records.run("run_0001"))?.label, "Waits");
    await records.write(async (writes) => {
      await writes.setWaiting("run_0001", { status: "paused", label: null, owner: null }, 3_000);
      await writes.setLabel("run_0001", "Copying", 3_001);
    });
    const paused = await records.run("run_0001");
    assert.deepEqual([paused?.status, paused?.label, paused?.updatedAtMs], ["paused", "Copying", 3_001]);
    await journal.commit([launch(run(2, "job_0001"))]);
    await records.write((writes) => writes.setLabel("run_0002", "late", 9_000));
    assert.equal((await records.run("run_0002"))?.label, null);
  });

  test("a run that ends before its launch is over for good, with the reason and one event", async (under) => {
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
      await writes.setWaiting("run_0002", { status: "paused", label: "late", owner: null }, 5_000);
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
    const open = async () => (await records.jobs({ includeTerminal: false, limit: 5, after: null })).rows;
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

function askedContract(test: ContractTest): void {
  test("a desired state for all open runs of a job is set in each of them, and in no other run", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1), job(2));
    const runs = [1, 2, 3, 4].map((n) => run(n, n === 4 ? "job_0002" : "job_0001"));
    await withRuns(under, ...runs);
    await journal.commit([launch(runs[1]!)]);
    const end = { status: "failed", failureJson: null } as const;
    const seen = await records.write(async (writes) => {
      await writes.endUnlaunched("run_0003", end, 5_000);
      await writes.setDesiredStates("job_0001", "paused", 6_000);
      return writes.openRuns("job_0001");
    });
    assert.deepEqual(seen, [
      {
        runId: "run_0001",
        runtimeJobId: "g-0001",
        status: "pending",
        desiredState: "paused",
        launched: false,
        owner: null,
      },
      {
        runId: "run_0002",
        runtimeJobId: "g-0002",
        status: "running",
        desiredState: "paused",
        launched: true,
        owner: null,
      },
    ]);
    assert.deepEqual(await records.openRun("run_0002"), seen[1]);
    for (const runId of ["run_0003", "run_9999"]) assert.equal(await records.openRun(runId), null);
    const wanted = async (runId: string) => (await records.run(runId))?.desiredState;
    assert.deepEqual([await wanted("run_0003"), await wanted("run_0004")], ["running", "running"]);
    // Asked again for the same, a run is as it was.
    const before = await records.run("run_0001");
    await records.write((writes) => writes.setDesiredStates("job_0001", "paused", 7_000));
    assert.deepEqual(await records.run("run_0001"), before);
    assert.equal(before?.updatedAtMs, 6_000);
  });
}

function followerContract(test: ContractTest): void {
  test("a run follows its runtime job through launch, progress, pause and end, also after reopening", async (under) => {
    const { records, journal } = under;
    await scene(under);
    await records.write((writes) =>
      writes.setWaiting("run_0001", { status: "pending", label: "Preparing", owner: null }, 2_500),
    );
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
    assert.deepEqual(running?.progress, {
      ...nothingYet,
      messages: 9,
      tasksRunning: 2,
      humanPending: 1,
      eventCount: 4,
    });

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
    const open = await again.records.jobs({ includeTerminal: false, limit: 5, after: null });
    assert.deepEqual(open.rows, []);
  });

  test("a run whose job is born and ends in one batch is over at once", async (under) => {
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
    const open = await under.records.jobs({ includeTerminal: false, limit: 5, after: null });
    assert.equal(open.rows.length, 1);
  });

  test("a lost claim changes no run, and a part that is sent again counts its end once", async (under) => {
    const { records, journal } = under;
    await scene(under, 2);
    await journal.commit([launch(first), launch(run(2, "job_0001"))]);
    const before = await records.run("run_0001");
    const stale = advance(first, 1, { status: "failed" }, { epoch: 0 });
    const strange = advance(first, 7, { status: "cancelled" });
    for (const lost of [stale, strange]) {
      assert.deepEqual(await journal.commit([lost]), { lost: ["g-0001"], unwritable: [] });
      assert.deepEqual(await records.run("run_0001"), before);
    }
    const end = advance(first, 1, { status: "completed" });
    await journal.commit([end]);
    await journal.commit([end]);
    assert.equal((await records.job("job_0001"))?.activeRuns, 1);
  });

  test("ends are told once, in the order of the runs' ids, with what they came to", async (under) => {
    await scene(under, 4);
    const { records, journal } = under;
    const long = JSON.stringify({ text: "x".repeat(200_001) });
    assert.deepEqual(await records.untoldEnds(9), []);
    await journal.commit([
      launch(run(3, "job_0001"), { progress: progress({ status: "completed", resultJson: '{"ok": true}' }) }),
      launch(run(1, "job_0001"), { progress: progress({ status: "completed", resultJson: long }) }),
    ]);
    await records.write((writes) =>
      writes.endUnlaunched("run_0002", { status: "failed", failureJson: '{"code":"y"}' }, 9),
    );
    const end = { jobId: "job_0001", blueprintId: null, isOfEvent: false };
    const completed = { ...end, status: "completed", failureJson: null };
    const told = [
      { ...completed, runId: "run_0001", resultJson: null },
      { ...end, runId: "run_0002", status: "failed", resultJson: null, failureJson: '{"code":"y"}' },
      { ...completed, runId: "run_0003", resultJson: '{"ok": true}' },
    ];
    assert.deepEqual(await records.untoldEnds(9), told);
    assert.deepEqual(await records.untoldEnds(1), told.slice(0, 1));
    const tell = (runId: string) => records.write((writes) => writes.tellEnd(runId));
    assert.deepEqual(await Promise.all([tell("run_0001"), tell("run_0001"), tell("none")]), [
      true,
      false,
      false,
    ]);
    assert.deepEqual(await (await under.reopen()).records.untoldEnds(9), told.slice(1));
  });

  test("the label of a launched run cannot be changed", async (under) => {
    const { records, journal } = under;
    await scene(under);
    await journal.commit([launch(first)]);
    const before = await records.run("run_0001");
    await records.write(async (writes) => {
      await writes.setWaiting("run_0001", { status: "paused", label: "late", owner: null }, 9_000);
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

  test("a launched run has the tally of its runtime job", async (under) => {
    await scene(under);
    const tally = { ...newTally(), logs: 7, tokensInput: 3 };
    await under.journal.commit([launch(first, { progress: progress({ tally }) })]);
    assert.deepEqual(readTally((await under.records.run("run_0001"))?.tallyJson ?? "null"), tally);
    assert.deepEqual(readTally((await under.records.latestRun("job_0001"))?.tallyJson ?? "null"), tally);
  });

  test("a run with one open human request has its prompt; with several it has their number", async (under) => {
    await scene(under);
    const prompt = "x".repeat(5_000);
    const ask = (n: number, given = {}) => humanRequest(n, { prompt, ...given });
    const asked = async () => {
      const [listed] = (await under.records.runs({ jobId: null, status: null, limit: 1, after: null })).rows;
      const one = (await under.records.run("run_0001"))?.progress;
      assert.deepEqual(listed?.progress, one);
      return [one?.humanPending, one?.humanPrompt];
    };
    const answered = ask(1, { status: "answered" });
    await under.journal.commit([
      launch(first, { humanRequests: [answered, ask(2)], progress: progress({ humanPending: 1 }) }),
    ]);
    assert.deepEqual(await asked(), [1, "x".repeat(200)]);
    await under.journal.commit([advance(first, 1, { humanPending: 2 }, { humanRequests: [ask(3)] })]);
    assert.deepEqual(await asked(), [2, null]);
  });

  test("how long a job's newest completed runs took: neither others nor those of other jobs count", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1), job(2));
    const took = [1_000, 40, 300, 20];
    const ends = ["completed", "completed", "failed", "completed"] as const;
    for (const [i, ms] of took.entries()) {
      const one = run(i + 1, i === 3 ? "job_0002" : "job_0001");
      await withRuns(under, one);
      const status = ends[i] ?? "completed";
      await journal.commit([
        launch(one, { progress: progress({ status, startedAtMs: 5_000, updatedAtMs: 5_000 + ms }) }),
      ]);
    }
    assert.deepEqual(await records.completedDurations("job_0001", 10), [40, 1_000]);
    assert.deepEqual(await records.completedDurations("job_0001", 1), [40]);
    assert.deepEqual(await records.completedDurations("nobody", 10), []);
  });

  test("reads inside a work see its own writes of jobs and runs", async (under) => {
    await withJobs(under, job(1));
    const seen = await under.records.write(async (writes) => {
      await writes.insertRun(first);
      await writes.setDesiredState("run_0001", "paused", 3_000);
      return [(await writes.run("run_0001"))?.desiredState, (await writes.job("job_0001"))?.latestRun?.runId];
    });
    assert.deepEqual(seen, ["paused", "run_0001"]);
  });
}
