// Long work in slices: what else there is to do comes in between. The time is the test's own.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { inSlices, Slices } from "./slices.ts";

/** Stops the clock that slices look at. */
function stopTime(t: TestContext): { nowMs: number } {
  const time = { nowMs: 1_000 };
  t.mock.method(performance, "now", () => time.nowMs);
  return time;
}

test("other work has its turn between slices", async (t) => {
  const time = stopTime(t);
  let isDone = false;
  let turns = 0;
  const others = () => {
    turns++;
    if (!isDone) setImmediate(others);
  };
  setImmediate(others);
  const slices = new Slices();
  for (let breaths = 1; breaths <= 5; breaths++) {
    time.nowMs += 2;
    assert.ok(slices.isOver);
    await slices.breathe();
    assert.ok(turns >= breaths - 1);
  }
  isDone = true;
  assert.ok(turns >= 4, `${turns} turns`);
});

test("a slice takes 2 ms, and a new one begins with the breath, not before", async (t) => {
  const time = stopTime(t);
  const slices = new Slices();
  assert.equal(slices.isOver, false);
  time.nowMs += 1.9;
  assert.equal(slices.isOver, false);
  time.nowMs += 5;
  assert.equal(slices.isOver, true);
  await slices.breathe();
  assert.equal(slices.isOver, false);
  time.nowMs += 1.9;
  assert.equal(slices.isOver, false);
  time.nowMs += 0.2;
  assert.equal(slices.isOver, true);
});

test("work in steps pauses after the step in which its slice ends, and its result comes back", async (t) => {
  const time = stopTime(t);
  let turns = 0;
  const others = () => {
    turns++;
    if (turns < 100) setImmediate(others);
  };
  setImmediate(others);
  const turnsAt: number[] = [];
  const steps = function* (): Generator<void, string> {
    for (let step = 0; step < 6; step++) {
      turnsAt.push(turns);
      time.nowMs += 1;
      yield;
    }
    return "done";
  };
  assert.equal(await inSlices(steps()), "done");
  assert.equal(turnsAt[0], turnsAt[1], "two steps of 1 ms are one slice");
  assert.ok(turnsAt[5]! > turnsAt[0]!);
  turns = 100;
});
