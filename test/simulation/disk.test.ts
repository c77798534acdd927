// The simulation on the real store, whose power is cut in the middle of commits (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { Counts, diskKinds } from "./kinds.ts";
import { runSeed } from "./scenario.ts";

const SEEDS = sized(25, 400);

test(`what ${SEEDS} seeds of power cuts leave of the store is what was acknowledged`, async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runSeed(seed, { hasDisk: true }).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --disk --seed ${seed}`, { cause });
    });
    counts.addAll(outcome.counts);
  }
  assert.deepEqual(counts.missing(diskKinds), [], "every kind of power cut has happened");
});
