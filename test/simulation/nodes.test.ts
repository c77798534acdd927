// Many nodes on one database, at random moments: killed, stopped, cut off, with clocks that run apart (docs/testing.md).

import assert from "node:assert/strict";
import { test } from "node:test";
import { sized } from "../support/long.ts";
import { Counts, clusterKinds } from "./kinds.ts";
import { nodesOf, runSeed } from "./scenario.ts";

const SEEDS = sized(150, 5_000);

test(`${SEEDS} seeds of nodes that die, stop and lose their database lose no work, and never do it twice at once`, async () => {
  const counts = new Counts();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await runSeed(seed, { nodes: nodesOf(seed) }).catch((cause: unknown) => {
      throw new Error(`Seed ${seed} failed; again: npm run simulate -- --nodes --seed ${seed}`, { cause });
    });
    counts.addAll(outcome.counts);
  }
  assert.deepEqual(counts.missing(clusterKinds), []);
});
