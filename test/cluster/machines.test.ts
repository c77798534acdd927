// Programs on machines of their own, as far as the system can make them: process ids, networks and homes. One is cut off by its link for
// longer than its lease, one loses its power: what they had goes on elsewhere, and nothing is lost, doubled or left running.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../simulation/random.ts";
import { sized } from "../support/long.ts";
import { until } from "../support/until.ts";
import { Effects } from "./effects.ts";
import { Load } from "./load.ts";
import { canMakeMachines, Machines } from "./machines.ts";

const MACHINES = Number(process.env.NODES ?? 3);
const LEASE_SECONDS = 10;
const RUNS_PER_FAULT = 40;
const TURNS = 5;

const skip = sized<string | false>(
  "it is a part of the long run",
  canMakeMachines() ? false : "it needs Linux namespaces, as root; lost-nodes.test.ts does without",
);

test("a machine is cut off for longer than its lease, and another loses its power", { skip }, async () => {
  const random = new Random(1);
  const env = { SVC_NODE_LEASE_SECONDS: String(LEASE_SECONDS), SVC_EXECUTOR_MAX_CONCURRENCY: "4" };
  await using cluster = await Machines.start(MACHINES, env);
  const load = new Load({ cluster, effects: await Effects.start(cluster.folder), random });
  await load.prepare([
    { recovery_mode: "cluster_recover", placement_policy: "local" },
    { recovery_mode: "cluster_recover", placement_policy: "spread" },
  ]);
  const submissions: Promise<void>[] = [];
  const submit = async () => {
    const already = load.acknowledged;
    for (let n = 0; n < RUNS_PER_FAULT; n++) submissions.push(load.submit());
    await until("a run is acknowledged", () => load.acknowledged > already);
  };
  for (let turn = 0; turn < TURNS; turn++) {
    await submit();
    const isolated = random.pick(cluster.machines);
    isolated.unplug();
    // Longer than a lease.
    await delay(LEASE_SECONDS * 1_200);
    isolated.plug();
    await submit();
    const lost = random.pick(cluster.machines);
    await lost.lose();
    await lost.start();
  }
  await Promise.all(submissions);
  await load.judge();
  assert.equal(load.acknowledged, 2 * TURNS * RUNS_PER_FAULT);
});
