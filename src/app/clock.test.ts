import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

const MOST_MS = 2 ** 31 - 1;

test("a wait of more than 2^31 ms takes its full time, and can be cancelled at any time", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let fired = 0;
  systemClock.after(2 * MOST_MS + 7, () => fired++);
  const cancel = systemClock.after(2 * MOST_MS + 7, () => assert.fail("it was taken back"));
  t.mock.timers.tick(MOST_MS);
  cancel();
  t.mock.timers.tick(MOST_MS);
  t.mock.timers.tick(6);
  assert.equal(fired, 0);
  t.mock.timers.tick(1);
  assert.equal(fired, 1);
});

test("the steady clock does not follow the wall clock, and reads like it otherwise", (t) => {
  const before = systemClock.steadyMs();
  assert.ok(Math.abs(before - Date.now()) < 3_600_000, "both count from 1970");
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  assert.equal(systemClock.nowMs(), 0);
  assert.ok(systemClock.steadyMs() >= before);
});
