// The engine's main test: thousands of simulated weeks, each from its seed (docs/testing.md).

import { test } from "node:test";
import { runSeed } from "./scenario.ts";

const SEEDS = 1_000;

test(`${SEEDS} seeds of crashes, partitions, failing disks and wrong answers break no invariant`, async () => {
  // Other seeds every day, the same ones all day: what fails in the morning can be looked at in the afternoon.
  const first = Math.floor(Date.now() / 86_400_000) * 10_000;
  for (let seed = first; seed < first + SEEDS; seed++) {
    await runSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --seed ${seed}`, { cause });
    });
  }
});
