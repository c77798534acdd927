// Jobs that want the same slots, from seeds (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { Counts, shareKinds } from "./kinds.ts";
import { runSharesSeed } from "./shares.ts";

const SEEDS = sized(40, 400);

test(`${SEEDS} seeds of jobs that want the same slots: shares follow weights, and nothing starves`, async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runSharesSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --shares --seed ${seed}`, { cause });
    });
    counts.addAll(outcome);
  }
  assert.deepEqual(counts.missing(shareKinds), []);
});
