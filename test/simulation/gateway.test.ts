// The gateway's half of the simulation: launches, preparations, operations and idempotency keys (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { runGatewaySeed } from "./gateway-scenario.ts";
import { Counts, gatewayKinds } from "./kinds.ts";

const SEEDS = sized(40, 600);

test(`${SEEDS} seeds of crashes, failing stores and impatient clients break no promise of the gateway`, async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const counted = await runGatewaySeed(seed).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --gateway --seed ${seed}`, { cause });
    });
    counts.addAll(counted);
  }
  assert.deepEqual(counts.missing(gatewayKinds), [], "every kind of thing that is promised has happened");
});
