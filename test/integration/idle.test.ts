// What a program does that has nothing to do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { seesProcesses, wakeUpsOf } from "../support/processes.ts";
import { startProgram } from "../support/program.ts";

const WAKE_UPS_MAX = 5;

test("a program with nothing to do is woken at most five times a second", {
  skip: !seesProcesses && "no /proc here",
}, async () => {
  await using program = await startProgram({ args: ["up"] });
  const health = await fetch(`${program.api}/health`);
  assert.equal(health.status, 200);
  // What follows a start, such as the collection of garbage, ends by itself; a timer that repeats does not.
  let fewest = Number.POSITIVE_INFINITY;
  for (let second = 0; second < 30 && fewest > WAKE_UPS_MAX; second++) {
    const before = wakeUpsOf(program.pid);
    await delay(1_000);
    fewest = Math.min(fewest, wakeUpsOf(program.pid) - before);
  }
  assert.ok(fewest <= WAKE_UPS_MAX, `woken ${fewest} times in its quietest second`);
});
