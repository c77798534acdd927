// Schedules in simulated time (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { Counts, scheduleKinds } from "./kinds.ts";
import { runScheduleSeed } from "./schedules.ts";
import { seedsOf } from "./seeds.ts";

/** Events come for schedules that have ended, as in one world of forty. */
const RARE = [192, 244, 248, 267, 517, 574];
const seeds = seedsOf(114, RARE, 3_000);

test(`${seeds.length} seeds of crashes, outages and jumping clocks start one run for each due time`, async () => {
  const counts = new Counts();
  for (const seed of seeds) {
    const counted = await runScheduleSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --schedules --seed ${seed}`, {
        cause,
      });
    });
    counts.addAll(counted);
  }
  assert.deepEqual(counts.missing(scheduleKinds), [], "every kind of thing that is promised has happened");
});
