// Goal: work is ended by the CPU time that it uses, and never because the machine did something else meanwhile.
// Method: work that waits without using the CPU, as on a machine that gives it none.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PatternBudget } from "../blueprints/patterns.ts";
import { schemaProblems } from "../launch/preparation/schemas.ts";
import { runWithTimeout } from "./async.ts";

/** The thread sleeps, and uses no CPU time. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("work that is interrupted for longer than its time still completes", () => {
  let ends = 0;
  const work = () => {
    standStill(300);
    ends++;
  };
  assert.equal(runWithTimeout(50, work), true);
  // Stopped behind its last line, it has run once more.
  assert.ok(ends >= 1);
});

test("work that uses its CPU time is ended, however often the machine interrupts it", () => {
  let isFirst = true;
  const work = () => {
    if (isFirst) {
      isFirst = false;
      standStill(300);
    }
    for (;;);
  };
  assert.equal(runWithTimeout(50, work), false);
});

/** A text whose reader sleeps for longer than all patterns may take together. */
const slowText = (text: string) =>
  ({
    length: text.length,
    toString() {
      standStill(250);
      return text;
    },
  }) as unknown as string;

test("a pattern gets its CPU time on a busy machine, and takes none from later ones", () => {
  const patterns = new PatternBudget();
  assert.equal(patterns.judge("^a+$", slowText("aaa")), "matches");
  assert.equal(patterns.judge("^a+$", slowText("b")), "differs");
  assert.equal(patterns.judge("^(a+)+$", `${"a".repeat(60)}!`), "too_slow");
  assert.equal(patterns.judge("a", "a"), "too_slow", "all is used");
});

test("a value is validated on a busy machine, and each mistake is reported once", async () => {
  const value = {
    get name() {
      standStill(700);
      return 1;
    },
  };
  const schema = { properties: { name: { type: "string" } }, required: ["other"] };
  const problems = schemaProblems(schema, value, { part: "inputs", path: "" });
  assert.deepEqual(problems.map(({ path, code }) => `${path} ${code}`).sort(), [
    "/name wrong_type",
    "/other required",
  ]);
});
