// The state machine of a check, against what is promised of it, for any sequence of results.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { afterCheck, type CheckState, delayMsAfter, newCheck, together } from "./instance.ts";

const timing = fc.record({
  intervalMs: fc.integer({ min: 100, max: 3_600_000 }),
  failuresBeforeCritical: fc.integer({ min: 1, max: 10 }),
});

const run = (results: readonly boolean[], given: Parameters<typeof afterCheck>[2]): CheckState =>
  results.reduce((state, passed) => afterCheck(state, passed, given), newCheck);

test("a check is passing exactly when it has passed before, and has failed less often in a row than it may", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean()), timing, (results, given) => {
      const lastPass = results.lastIndexOf(true);
      const failures = results.length - 1 - lastPass;
      const state = run(results, given);
      assert.equal(state.failures, failures);
      // Once critical, only a pass makes it healthy again; and after a pass, less failures in a row than are allowed keep it passing.
      assert.equal(state.kind === "passing", lastPass >= 0 && failures < given.failuresBeforeCritical);
    }),
  );
});

test("a check that has never passed is repeated ever later, until it is critical and keeps to its interval", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), timing, (failures, given) => {
      const delays = Array.from({ length: failures }, (_, i) =>
        delayMsAfter(run(Array(i + 1).fill(false), given), given),
      );
      for (const [i, delayMs] of delays.entries()) {
        assert.equal(delayMs, Math.min(100 * 2 ** i, given.intervalMs));
      }
      const { kind } = run(Array(failures).fill(false), given);
      assert.equal(kind, delays.at(-1) === given.intervalMs ? "critical" : "starting");
    }),
  );
});

test("a passing check that fails is made at its interval, not in quick succession", () => {
  const given = { intervalMs: 10_000, failuresBeforeCritical: 3 };
  assert.equal(delayMsAfter(run([true, false], given), given), 10_000);
});

test("checks together pass only if all do, and are critical as soon as one is", () => {
  const kinds = fc.constantFrom("starting", "passing", "critical");
  fc.assert(
    fc.property(fc.array(kinds), (all) => {
      const whole = together(all.map((kind) => ({ kind, failures: 0 }) as CheckState));
      assert.equal(
        whole === "passing",
        all.every((kind) => kind === "passing"),
      );
      assert.equal(whole === "critical", all.includes("critical"));
    }),
  );
});
