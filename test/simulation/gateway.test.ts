// The gateway's half of the simulation: launches, preparations, operations and idempotency keys (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { runGatewaySeed } from "./gateway-scenario.ts";
import { Counts, gatewayKinds } from "./kinds.ts";
import { seedsOf } from "./seeds.ts";

/** A launch comes too late, and a run fails in its preparation. */
const RARE = [59, 113, 156, 179];
const seeds = seedsOf(36, RARE, 600);

test(`${seeds.length} seeds of crashes, failing stores and impatient clients break no promise of the gateway`, async () => {
  const counts = new Counts();
  for (const seed of seeds) {
    const counted = await runGatewaySeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --gateway --seed ${seed}`, { cause });
    });
    counts.addAll(counted);
  }
  assert.deepEqual(counts.missing(gatewayKinds), [], "every kind of thing that is promised has happened");
});
