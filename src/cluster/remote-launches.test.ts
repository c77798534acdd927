// Telling another node, over a real socket, of runs that it is to launch.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HandClock } from "../../test/support/core.ts";
import { peersWith, startNode } from "../../test/support/nodes.ts";
import { until } from "../../test/support/until.ts";
import { RemoteLaunches } from "./remote-launches.ts";

test("a node is told of each run once, and again after it did not answer", async () => {
  const told: string[] = [];
  const parts = { launch: (runId: string) => void told.push(runId) };
  await using node = await startNode({ parts });
  using peers = peersWith();
  const clock = new HandClock();
  const warnings: unknown[] = [];
  const log = { warn: (fields: object) => void warnings.push(fields), error: () => {} };
  const launches = new RemoteLaunches({ peers, clock, log });
  for (const runId of ["run_1", "run_2", "run_3"]) launches.tell(node.address, runId);
  await until("all are told", () => told.length === 3);
  assert.deepEqual(told, ["run_1", "run_2", "run_3"]);

  const { address } = node;
  await node[Symbol.asyncDispose]();
  launches.tell(address, "run_4");
  await clock.whenTimers(1);
  launches.tell(address, "run_5");
  assert.equal(warnings.length, 1);
  await using again = await startNode({ parts, port: Number(address.split(":")[1]) });
  assert.equal(again.address, address);
  // The connection that was lost may fail once more.
  await until("they are told", () => {
    clock.fire();
    return told.includes("run_5");
  });
  // The node may have ended between being told of a run and its answer: then it is told of that run again.
  assert.deepEqual([...new Set(told)], ["run_1", "run_2", "run_3", "run_4", "run_5"]);
});

test("a node that does not answer is left to look itself after a while", async () => {
  using peers = peersWith();
  const clock = new HandClock();
  let warnings = 0;
  const launches = new RemoteLaunches({
    peers,
    clock,
    log: { warn: () => void warnings++, error: () => {} },
  });
  launches.tell("127.0.0.1:1", "run_1");
  for (let tries = 1; tries <= 10; tries++) {
    await clock.whenTimers(1);
    assert.equal(warnings, tries);
    clock.fire();
  }
  await new Promise(setImmediate);
  assert.equal(clock.timers, 0);
});
