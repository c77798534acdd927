// Schedules in simulated time (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { Counts, scheduleKinds } from "./kinds.ts";
import { runScheduleSeed } from "./schedules.ts";

const SEEDS = sized(120, 3_000);

test(`${SEEDS} seeds of crashes, outages and jumping clocks start one run for each due time`, async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const counted = await runScheduleSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --schedules --seed ${seed}`, {
        cause,
      });
    });
    counts.addAll(counted);
  }
  assert.deepEqual(counts.missing(scheduleKinds), [], "every kind of thing that is promised has happened");
});
