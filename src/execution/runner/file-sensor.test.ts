import assert from "node:assert/strict";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  eventually,
  RunnerFixture,
  realClock,
  type TaskChanges,
  taskStart,
} from "../../../test/support/execution.ts";
import type { SensorConfig } from "../../engine/graph.ts";

function fileTask(file: string | null, changes: TaskChanges = {}) {
  const config: SensorConfig = {
    kind: "sensor",
    outputMessageType: "sensor_ready",
    completeAfter: 1,
    intervalMs: null,
    runAtMs: null,
    file,
  };
  return taskStart({ kind: "file", bundleFingerprint: "f", ...changes, config });
}

/** A clock that looks after 1 ms where the sensor would after 500. */
const quickClock = {
  ...realClock,
  after: (delayMs: number, run: () => void) => realClock.after(delayMs === 500 ? 1 : delayMs, run),
};

describe("a file sensor", () => {
  it("observes a file of the payload that is there already", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("in/data.csv", "12345");
    const task = fileTask("in/data.csv");
    fixture.runner.start(task);
    const outcome = await fixture.listener.outcome(task.ref);
    const modified_at = statSync(join(fixture.payload, "in/data.csv")).mtime.toISOString();
    assert.deepEqual(outcome.kind === "succeeded" && outcome.observation, {
      path: "in/data.csv",
      size: 5,
      modified_at,
    });
  });

  it("waits for an absolute path to appear", async () => {
    const looks: number[] = [];
    const after = (delayMs: number, run: () => void) => {
      looks.push(delayMs);
      return quickClock.after(delayMs, run);
    };
    await using fixture = new RunnerFixture(undefined, { ...quickClock, after });
    const path = join(fixture.home, "late", "file");
    const task = fileTask(path, { bundleFingerprint: null });
    fixture.runner.start(task);
    await eventually(() => looks.length >= 3);
    assert.equal(fixture.listener.outcomes.size, 0);
    mkdirSync(join(path, ".."));
    writeFileSync(path, "x");
    const outcome = await fixture.listener.outcome(task.ref);
    assert.equal(outcome.kind, "succeeded");
    assert.ok(looks.every((delayMs) => delayMs === 500));
  });

  it("is interrupted by a stop and by a drain", async () => {
    await using fixture = new RunnerFixture();
    const [stopped, drained] = [fileTask("absent"), fileTask("absent")];
    for (const task of [stopped, drained]) fixture.runner.start(task);
    fixture.runner.stop(stopped.ref);
    assert.equal((await fixture.listener.outcome(stopped.ref)).kind, "interrupted");
    await fixture.runner.drain(60_000);
    assert.equal((await fixture.listener.outcome(drained.ref)).kind, "interrupted");
  });

  it("refuses a path that leaves the payload, or has none to be relative to", async () => {
    await using fixture = new RunnerFixture();
    const tasks = [fileTask("../x"), fileTask("x", { bundleFingerprint: null }), fileTask(null)];
    for (const task of tasks) {
      fixture.runner.start(task);
      const outcome = await fixture.listener.outcome(task.ref);
      assert.equal(outcome.kind === "failed" && outcome.code, "sensor.file_invalid");
    }
  });
});
