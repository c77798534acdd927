// Many nodes with many jobs (model.ts): that work is spread evenly, and costs no more statements where there are more nodes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlacementPolicy } from "../../src/engine/graph.ts";
import { sized } from "../support/long.ts";
import { runModel } from "./model.ts";

const run = (nodes: number, jobsPerNode: number, placement: PlacementPolicy) =>
  runModel({ seed: 1, nodes, jobs: nodes * jobsPerNode, placement });

const NODES = sized(16, 100);

test(`${NODES} nodes do the same work within 10 %, also when one of them is lost`, async () => {
  const { imbalance, takenOver } = await run(NODES, sized(400, 2_000), "spread");
  assert.ok(takenOver > 0, "the lost node had jobs");
  assert.ok(imbalance <= 0.1, `the work of a node is ${Math.round(imbalance * 100)} % from the mean`);
});

const [FEW, MANY] = sized([4, 10], [10, 100]);

test(`${MANY} nodes ask the database no more often for each job than ${FEW}`, async () => {
  const few = await run(FEW, 300, "local");
  const many = await run(MANY, 300, "local");
  const growth = many.statementsPerJob / few.statementsPerJob;
  assert.ok(growth <= 1.05, `statements per job are ${growth.toFixed(2)} times as many`);
});
