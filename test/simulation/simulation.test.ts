// The engine's main test: thousands of simulated weeks, each from its seed (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { Counts, kinds } from "./kinds.ts";
import { runSeed } from "./scenario.ts";

/** 500 notice each of the faults of the engine in test/mutations: most are seen within the first 60, the last by seed 345. */
const SEEDS = sized(500, 5_000);

test(`${SEEDS} seeds of crashes, partitions, failing disks and wrong answers break no invariant`, async () => {
  const counts = new Counts();
  // The same ones on every day: a change is judged by what it changes. Others: npm run simulate -- --from 20000.
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --seed ${seed}`, { cause });
    });
    counts.addAll(outcome.counts);
  }
  assert.deepEqual(
    counts.missing(kinds),
    [],
    "every kind of thing that the simulation promises has happened",
  );
});
