// Deployments in simulated time (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { runDeploymentSeed } from "./deployments.ts";
import { Counts, deploymentKinds } from "./kinds.ts";

const SEEDS = sized(20, 2_000);

test(`${SEEDS} seeds of crashes, bad versions and dying instances lose no instance and no rollout`, async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const counted = await runDeploymentSeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --deployments --seed ${seed}`, {
        cause,
      });
    });
    counts.addAll(counted);
  }
  assert.deepEqual(counts.missing(deploymentKinds), [], "every kind of thing that is promised has happened");
});
