// The runner as a whole: each start answered once, and a drain after which nothing runs.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  executorConfig,
  hastyClock,
  isRunning,
  RunnerFixture,
  taskStart,
} from "../../test/support/execution.ts";

let agents = 0;

/** Each of an agent of its own: one agent has one attempt at a time, in one workspace. */
function sh(script: string, longLived = false) {
  const config = executorConfig({ command: ["sh", "-c", script], longLived });
  return taskStart({ agentId: `worker-${++agents}`, config });
}

describe("the task runner", () => {
  it("calls nothing back from within start", async () => {
    await using fixture = new RunnerFixture();
    const tasks = [sh("true"), taskStart({ config: executorConfig({ runnerModule: "Nobody" }) })];
    for (const task of tasks) {
      fixture.runner.start(task);
      assert.equal(fixture.listener.outcomes.has(JSON.stringify(task.ref)), false);
      await fixture.listener.outcome(task.ref);
    }
  });

  it("reports a task that no runner can take, instead of throwing", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.run({ config: { kind: "router", emitType: null } });
    assert.equal(outcome.kind === "failed" && outcome.code, "executor.outcome_lost");
    assert.equal(fixture.warnings.length, 1);
  });

  it("ignores a second start of an attempt that runs, and stops and sends for nobody", async () => {
    await using fixture = new RunnerFixture();
    const task = sh("echo once");
    fixture.runner.start(task);
    fixture.runner.start(task);
    await fixture.listener.outcome(task.ref);
    fixture.runner.stop(task.ref);
    fixture.runner.send(task.ref, task.envelope);
    await fixture.runner.drain(0);
    assert.equal(fixture.listener.outcomes.get(JSON.stringify(task.ref))?.length, 1);
    assert.deepEqual(fixture.listener.logs("stdout"), ["once"]);
    assert.match(fixture.warnings[0] ?? "", /started twice/);
  });

  it("reports a workspace that cannot be made as an infrastructure failure", async () => {
    await using fixture = new RunnerFixture();
    const { writeFileSync } = await import("node:fs");
    writeFileSync(join(fixture.home, "runs"), "in the way");
    const outcome = await fixture.run({});
    assert.equal(outcome.kind === "failed" && outcome.code, "executor.workspace_failed");
    assert.match(outcome.kind === "failed" ? outcome.message : "", /could not be prepared.*ENOTDIR/);
  });
});

describe("draining", () => {
  it("lets commands end within the grace, and ends the long-lived at once", async () => {
    await using fixture = new RunnerFixture();
    const { runner, listener } = fixture;
    const finishing = sh('echo up; until [ -e "$SVC_RUN_DIR/go" ]; do sleep 0.01; done');
    const service = sh("echo up; sleep 1000", true);
    runner.start(finishing);
    runner.start(service);
    await listener.until(() => listener.logs("stdout").length === 2);
    const drained = runner.drain(600_000);
    assert.equal((await listener.outcome(service.ref)).kind, "interrupted");
    const late = sh("echo late");
    runner.start(late);
    assert.equal((await listener.outcome(late.ref)).kind, "interrupted");
    const { mkdirSync, writeFileSync } = await import("node:fs");
    mkdirSync(join(fixture.home, "runs/run_1/shared"), { recursive: true });
    writeFileSync(join(fixture.home, "runs/run_1/shared/go"), "");
    await drained;
    assert.equal((await listener.outcome(finishing.ref)).kind, "succeeded");
    assert.ok(!listener.logs("stdout").includes("late"));
  });

  it("ends what is left after the grace, also when it ignores SIGTERM, and leaves nothing behind", async () => {
    await using fixture = new RunnerFixture(undefined, hastyClock);
    const { runner, listener } = fixture;
    const stubborn = sh(
      "trap '' TERM; echo $$; setsid sh -c 'echo $$; exec sleep 1000' & while :; do sleep 1; done",
    );
    runner.start(stubborn);
    await listener.until(() => listener.logs("stdout").length === 2);
    await Promise.all([runner.drain(1), runner.drain(1)]);
    assert.equal((await listener.outcome(stubborn.ref)).kind, "interrupted");
    for (const pid of listener.logs("stdout").map(Number)) assert.equal(await isRunning(pid), false);
    assert.equal(existsSync(join(fixture.home, "tmp/pipes")), false);
    await runner.drain(0);
  });
});
