// Runs: what is refused before anything is written, and control in every state, against whatever else happens.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Gate, restarted, startCore } from "../../test/support/core.ts";
import { fc } from "../../test/support/fast-check.ts";
import { executor, graph, router, sensor } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import { EngineUnavailable } from "../engine/batch.ts";
import { isTerminal, type JobStatus } from "../engine/journal.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { DesiredState, RunTrigger } from "./records.ts";
import { transition } from "./runs.ts";

const quick = graph("quick", [router("in")]);
const slow = graph("slow", [executor("work", ["true"])]);
const held = graph("held", [sensor("wait")]);
const trigger: RunTrigger = { kind: "api", id: null };

const refused = (code: string) => (error: unknown) => error instanceof DomainError && error.code === code;

describe("the matrix of run control", () => {
  const change = "change";
  const unchanged = "unchanged";
  const invalid = "invalid";
  const matrix: Readonly<Record<JobStatus, readonly [paused: string, running: string, cancelled: string]>> = {
    pending: [change, unchanged, change],
    queued: [change, unchanged, change],
    running: [change, unchanged, change],
    paused: [unchanged, change, change],
    completed: [invalid, invalid, invalid],
    failed: [invalid, invalid, invalid],
    cancelled: [invalid, invalid, unchanged],
  };
  for (const [status, [paused, running, cancelled]] of Object.entries(matrix)) {
    test(`from ${status}: paused ${paused}, running ${running}, cancelled ${cancelled}`, () => {
      const kind = (desired: DesiredState) => transition(status as JobStatus, desired);
      assert.deepEqual([kind("paused"), kind("running"), kind("cancelled")], [paused, running, cancelled]);
    });
  }
});

describe("a request for a run", () => {
  test("that cannot be is refused, and leaves nothing", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(quick);
    const request = { inputs: {}, configOverrides: null, trigger, trace: null };
    await assert.rejects(core.runs.prepare("job_0", request), refused("job_not_found"));
    await assert.rejects(
      core.runs.prepare(jobId, { ...request, configOverrides: {} }),
      (error: DomainError) =>
        error.code === "validation_failed" && error.errors[0]?.path === "/config_overrides",
    );
    const inputs = { $entrypoints: { nobody: [1], other: [2] } };
    await assert.rejects(
      core.runs.prepare(jobId, { ...request, inputs }),
      (error: DomainError) =>
        error.errors.length === 2 && error.errors.every(({ path }) => path === "/inputs"),
    );
    assert.deepEqual(await core.records.recentRuns(jobId, 5), []);
  });

  test("is refused when the job is deleted between the check and the write", async () => {
    await using core = await startCore();
    const job = await core.job(quick);
    const insert = await core.runs.prepare(job.jobId, {
      inputs: {},
      configOverrides: null,
      trigger,
      trace: null,
    });
    await core.definitions.delete(job, { force: false });
    await assert.rejects(core.records.write(insert), refused("job_not_found"));
  });

  test("is a conflict when the bundle's content was removed: nothing is wrong with the request", async () => {
    await using first = await startCore();
    const job = await first.job(quick);
    await using core = await restarted(first);
    await rm(join(core.home, "bundles", job.bundleFingerprint ?? ""), { recursive: true });
    await assert.rejects(core.accept(job.jobId), refused("conflict"));
    await core.bundle(quick);
    const run = await core.start(job.jobId);
    assert.equal((await core.ended(run.runId)).status, "completed");
  });
});

/** What the matrix makes of a run that does nothing by itself. */
function model(status: JobStatus, desired: DesiredState): JobStatus | "refused" {
  if (isTerminal(status)) return status === "cancelled" && desired === "cancelled" ? status : "refused";
  if (desired !== "running") return desired;
  return status === "paused" ? "running" : status;
}

test("any sequence of requests to control a run agrees with the matrix, before its launch, during it and after it", async () => {
  await using core = await startCore();
  const { jobId } = await core.job(held);
  const step = fc.constantFrom<DesiredState | "launch">("paused", "running", "cancelled", "launch");
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const { runId } = await core.accept(jobId);
      let status: JobStatus = "pending";
      for (const one of steps) {
        if (one === "launch") core.launcher.enqueue(runId);
        else {
          const expected = model(status, one);
          const given = await core.runs.control(runId, one).catch((error: unknown) => error);
          if (expected === "refused") assert.ok(refused("invalid_transition")(given), String(given));
          else {
            const run = given as { readonly status: JobStatus; readonly desiredState: DesiredState };
            // Whether a run that is to run has been launched already is not for the client to say.
            const seen = run.status === "pending" ? "running" : run.status;
            assert.equal(seen, expected === "pending" ? "running" : expected);
            assert.equal(run.desiredState, one);
            status = run.status;
          }
        }
      }
      await core.launched();
      const { desiredState, status: last } = await core.find(runId);
      assert.equal(last === "pending" ? "running" : last, desiredState);
    }),
    { numRuns: 30 },
  );
});

describe("control of a run", () => {
  test("that is not there: run_not_found", async () => {
    await using core = await startCore();
    await assert.rejects(core.runs.control("run_0", "paused"), refused("run_not_found"));
  });

  test("that ends at that moment is refused, with its final status", async () => {
    await using core = await startCore();
    const run = await core.start((await core.job(slow)).jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    const gate = new Gate();
    core.records.gates.push(gate);
    const controlled = core.runs.control(run.runId, "paused");
    controlled.catch(() => {});
    await gate.reached;
    await core.endCommand(run.runId);
    await core.ended(run.runId);
    gate.open();
    await assert.rejects(controlled, (error: DomainError) =>
      /is completed, which is final/.test(error.message),
    );
  });

  test("of one that was cancelled on the runtime's own API returns its status", async () => {
    await using core = await startCore();
    const run = await core.start((await core.job(held)).jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    await core.engine.cancel(run.runtimeJobId);
    assert.equal((await core.runs.control(run.runId, "cancelled")).status, "cancelled");
  });

  test("while the store takes nothing is refused, and can be asked for again", async () => {
    await using core = await startCore();
    const run = await core.start((await core.job(held)).jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    core.records.isBroken = true;
    await assert.rejects(core.runs.control(run.runId, "paused"), /has broken the store/);
    core.records.isBroken = false;
    assert.equal((await core.find(run.runId)).desiredState, "running");
    assert.equal((await core.runs.control(run.runId, "paused")).status, "paused");
  });

  test("after a restart, before the runtime has come to the run, is remembered and refused as not yet possible", async () => {
    await using first = await startCore();
    const run = await first.start((await first.job(held)).jobId);
    await first.whenRun(run.runId, (one) => one.launched);
    await using core = await restarted(first);
    await assert.rejects(
      core.runs.control(run.runId, "cancelled"),
      (error: unknown) => error instanceof EngineUnavailable && /still being recovered/.test(error.message),
    );
    await core.recover();
    assert.equal((await core.find(run.runId)).status, "cancelled");
  });
});

describe("control of all runs of a job", () => {
  test("reaches every open run, over all pages, and no other", async () => {
    await using core = await startCore();
    const [{ jobId }, other] = [await core.job(held), await core.job(held)];
    const runs = await Promise.all(Array.from({ length: 250 }, () => core.accept(jobId)));
    const elsewhere = await core.accept(other.jobId);
    await core.runs.control(runs[0]!.runId, "cancelled");
    await core.runs.control(runs[1]!.runId, "paused");
    core.runs.accepted(runs[2]!);
    await core.whenRun(runs[2]!.runId, (run) => run.launched);
    const answer = await core.runs.controlAll(jobId, "cancelled");
    assert.deepEqual(
      answer,
      runs
        .slice(1)
        .map(({ runId }) => ({ runId, status: "cancelled" }))
        .sort((a, b) => (a.runId < b.runId ? -1 : 1)),
    );
    assert.equal((await core.records.job(jobId))?.activeRuns, 0);
    assert.equal((await core.find(elsewhere.runId)).status, "pending");
  });

  test("leaves out a run that ends by itself before it is asked", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(slow);
    const [ending, other] = [await core.start(jobId), await core.start(jobId)];
    for (const { runId } of [ending, other]) await core.whenRun(runId, (one) => one.launched);
    const gate = new Gate();
    core.records.gates.push(gate);
    const controlled = core.runs.controlAll(jobId, "paused");
    await gate.reached;
    await core.endCommand(ending.runId);
    await core.ended(ending.runId);
    gate.open();
    assert.deepEqual(await controlled, [{ runId: other.runId, status: "paused" }]);
    assert.equal((await core.find(ending.runId)).status, "completed");
  });

  test("is settled though a run ends by itself between being asked and being reached", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(slow);
    const run = await core.start(jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    const asked = await core.records.write((writes) => core.runs.askAll(writes, jobId, "paused"));
    assert.deepEqual(asked, [{ runId: run.runId, status: "paused" }]);
    await core.endCommand(run.runId);
    await core.ended(run.runId);
    await core.runs.settle(jobId);
    assert.equal((await core.find(run.runId)).status, "completed");
  });

  test("returns the resulting status of each run, whether it is launched or waits", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(held);
    const launched = await core.start(jobId);
    await core.whenRun(launched.runId, (one) => one.launched);
    const waiting = await core.accept(jobId);
    const statuses = async () =>
      [(await core.find(launched.runId)).status, (await core.find(waiting.runId)).status] as const;
    const control = async (desired: DesiredState) =>
      (await core.runs.controlAll(jobId, desired)).map((run) => run.status);
    assert.deepEqual(await control("running"), ["running", "pending"]);
    await core.launched();
    const late = await core.accept(jobId);
    assert.deepEqual(await control("paused"), ["paused", "paused", "paused"]);
    assert.deepEqual([...(await statuses()), (await core.find(late.runId)).status], Array(3).fill("paused"));
    assert.deepEqual(await control("running"), ["running", "running", "pending"]);
    await core.whenRun(late.runId, (one) => one.status === "running");
    assert.deepEqual(await statuses(), ["running", "running"]);
  });

  for (const [desired, before, after] of [
    ["cancelled", "running", "cancelled"],
    ["paused", "running", "paused"],
    ["running", "paused", "running"],
  ] as const) {
    test(`to be ${desired} is brought about by the next start when the process dies right after it is on disk`, async () => {
      await using first = await startCore();
      const { jobId } = await first.job(held);
      const [launched, waiting] = [await first.start(jobId), await first.accept(jobId)];
      await first.whenRun(launched.runId, (one) => one.launched);
      if (before === "paused") await first.runs.controlAll(jobId, "paused");
      await first.records.write((writes) => first.runs.askAll(writes, jobId, desired));
      await using core = await restarted(first);
      await core.recover();
      await core.launched();
      for (const { runId } of [launched, waiting]) assert.equal((await core.find(runId)).status, after);
    });
  }

  test("reaches a run that is being launched at that moment", async () => {
    await using core = await startCore();
    const gate = new Gate();
    core.plans.gate = gate;
    const { jobId } = await core.job(held);
    const run = await core.start(jobId);
    await gate.reached;
    const controlled = core.runs.controlAll(jobId, "paused");
    await core.whenRun(run.runId, (one) => one.desiredState === "paused");
    gate.open();
    assert.deepEqual(await controlled, [{ runId: run.runId, status: "paused" }]);
    const now = await core.find(run.runId);
    assert.deepEqual([now.launched, now.status, now.desiredState], [true, "paused", "paused"]);
  });

  test("that the runtime does not take at the moment is remembered, and can be settled later", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(held);
    const run = await core.start(jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    core.broken.journal = true;
    const late = core.start(jobId);
    await until("a store that takes nothing", () => core.engine.unavailable !== null);
    await assert.rejects(
      core.runs.controlAll(jobId, "paused"),
      (error: unknown) => error instanceof EngineUnavailable,
    );
    core.broken.journal = false;
    await until("a store that takes writes", () => core.engine.unavailable === null);
    await core.runs.settle(jobId);
    for (const { runId } of [run, await late]) assert.equal((await core.find(runId)).status, "paused");
  });

  test("of a job without open runs, or that is not there, is refused", async () => {
    await using core = await startCore();
    const { jobId } = await core.job(quick);
    await assert.rejects(core.runs.controlAll(jobId, "paused"), refused("invalid_transition"));
    await assert.rejects(core.runs.controlAll("job_0", "paused"), refused("job_not_found"));
  });

  test("of a job that is deleted meanwhile: job_not_found", async () => {
    await using core = await startCore();
    const job = await core.job(held);
    const run = await core.accept(job.jobId);
    const gate = new Gate();
    core.records.gates.push(gate);
    const controlled = core.runs.controlAll(job.jobId, "paused");
    controlled.catch(() => {});
    await gate.reached;
    await core.ends.cancelled(run.runId);
    await core.definitions.delete(job, { force: false });
    gate.open();
    await assert.rejects(controlled, refused("job_not_found"));
  });
});
