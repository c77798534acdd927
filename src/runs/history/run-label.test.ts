// How long a run still takes, by those before it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { etaMs } from "./run-label.ts";

test("a run is expected to take the median of those before it, less what it has taken", () => {
  assert.equal(etaMs([900, 100, 200], 50), 150);
  assert.equal(etaMs([100, 400, 200, 300], 50), 200);
});

test("a run that takes longer than usual is expected to end now, and nothing is told without others", () => {
  assert.equal(etaMs([100], 5_000), 0);
  assert.equal(etaMs([], 0), null);
});
