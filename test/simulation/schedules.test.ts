// Schedules in simulated time (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { Counts, scheduleKinds } from "./kinds.ts";
import { runScheduleSeed } from "./schedules.ts";

const range = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
/** Worlds in which events come for schedules that have ended, as they do in one of forty. */
const WITH_ENDED = [192, 244, 248, 267, 517, 574];
const seeds = sized([...range(114), ...WITH_ENDED], range(3_000));

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
