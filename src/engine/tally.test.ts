// The tally as it is stored.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newTally, readTally, type Tally, tallyJson } from "./tally.ts";

const ends = {
  agents: { done: 2, failed: 0, cancelled: 1, skipped: 0, not_reached: 1 },
  notReached: ["c"],
  missingOutputs: [],
  missingOutputsCount: 0,
};

test("a tally is read back as it was stored, at its begin, in between and at its end", () => {
  const between: Tally = { ...newTally(), logs: 3, outputs: [0, 2], cpuMs: 0.5 };
  for (const tally of [newTally(), between, { ...between, ends }]) {
    assert.deepEqual(readTally(tallyJson(tally)), tally);
    // As it was stored before, with everything that is 0.
    assert.deepEqual(readTally(JSON.stringify(tally)), tally);
  }
});

test("what is 0 or empty is not stored", () => {
  assert.equal(tallyJson(newTally()), "{}");
  const tally = { ...newTally(), timeline: 9, ends };
  assert.equal(
    tallyJson(tally),
    '{"timeline":9,"ends":{"agents":{"done":2,"cancelled":1,"not_reached":1},"notReached":["c"]}}',
  );
});
