// Long work in slices: what else there is to do comes in between.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Slices } from "./slices.ts";

test("what waits for the thread has its turn while the work goes on", async () => {
  let isDone = false;
  let turns = 0;
  const others = () => {
    turns++;
    if (!isDone) setImmediate(others);
  };
  setImmediate(others);
  const slices = new Slices();
  const endMs = performance.now() + 20;
  let breaths = 0;
  while (performance.now() < endMs) {
    if (!slices.isOver) continue;
    breaths++;
    await slices.breathe();
    assert.ok(turns >= breaths - 1);
  }
  isDone = true;
  // Each slice is at least 2 ms long, and one that has begun is not over.
  assert.ok(breaths >= 1 && breaths <= 10, `${breaths} breaths`);
  assert.ok(turns >= 1);
});

test("a new slice begins with the breath, not before", async () => {
  const slices = new Slices();
  while (!slices.isOver);
  assert.equal(slices.isOver, true);
  await slices.breathe();
  assert.equal(slices.isOver, false);
});
