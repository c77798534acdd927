// Telling another node, over a real socket, of runs that it is to launch.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HandClock } from "../../test/support/core.ts";
import { peersWith, startNode } from "../../test/support/nodes.ts";
import { until } from "../../test/support/until.ts";
import { RemoteLaunches } from "./remote-launches.ts";

test("a node is told of each run once, again after it did not answer, and not once it is gone", async () => {
  const told: string[] = [];
  const parts = { launch: (runId: string) => void told.push(runId) };
  await using node = await startNode({ parts });
  using peers = peersWith();
  const clock = new HandClock();
  const warnings: unknown[] = [];
  let address: string | null = node.address;
  const log = { warn: (fields: object) => void warnings.push(fields), error: () => {} };
  const launches = new RemoteLaunches({ peers, addressOf: () => address, clock, log });
  for (const runId of ["run_1", "run_2", "run_3"]) launches.tell("node_b/1", runId);
  await until("all are told", () => told.length === 3);
  assert.deepEqual(told, ["run_1", "run_2", "run_3"]);

  address = "127.0.0.1:1";
  launches.tell("node_b/1", "run_4");
  await clock.whenTimers(1);
  launches.tell("node_b/1", "run_5");
  assert.equal(warnings.length, 1);
  address = node.address;
  clock.fire();
  await until("they are told", () => told.length === 5);
  assert.deepEqual(told.slice(3), ["run_4", "run_5"]);

  address = null;
  launches.tell("node_c/1", "run_6");
  address = node.address;
  launches.tell("node_b/1", "run_7");
  await until("the next one is told", () => told.includes("run_7"));
  assert.equal(told.includes("run_6"), false);
});
