// Deployments in simulated time (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { runDeploymentSeed } from "./deployments.ts";
import { Counts, deploymentKinds } from "./kinds.ts";
import { seedsOf } from "./seeds.ts";

/** A deployment is promoted, and one is paused. */
const RARE = [24, 31, 49, 68];
const seeds = seedsOf(16, RARE, 2_000);

test(`${seeds.length} seeds of crashes, bad versions and dying instances lose no instance and no rollout`, async () => {
  const counts = new Counts();
  for (const seed of seeds) {
    const counted = await runDeploymentSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --deployments --seed ${seed}`, {
        cause,
      });
    });
    counts.addAll(counted);
  }
  assert.deepEqual(counts.missing(deploymentKinds), [], "every kind of thing that is promised has happened");
});
