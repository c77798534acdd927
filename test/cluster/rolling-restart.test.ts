// Nodes that are ended and started one after the other, as for an upgrade, under load: nothing is lost, doubled or failed by it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../simulation/random.ts";
import { sized } from "../support/long.ts";
import { seesProcesses } from "../support/processes.ts";
import { until } from "../support/until.ts";
import { Cluster } from "./cluster.ts";
import { Effects } from "./effects.ts";
import { Load } from "./load.ts";

const NODES = Number(process.env.NODES ?? 3);
const TURNS = sized(1, 5);
const RUNS_PER_RESTART = sized(4, 20);

const skip = !seesProcesses && "it needs /proc";

test("each node is restarted in turn while runs are started everywhere: all of them complete", {
  skip,
}, async () => {
  const random = new Random(1);
  const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "4" };
  await using cluster = await Cluster.start({ nodes: NODES, leaseSeconds: 10, env });
  const load = new Load({ cluster, effects: await Effects.start(cluster.folder), random });
  await load.prepare([
    { recovery_mode: "cluster_recover", placement_policy: "local" },
    { recovery_mode: "cluster_recover", placement_policy: "spread" },
  ]);
  const submissions: Promise<void>[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    for (const node of cluster.nodes) {
      const already = load.acknowledged;
      for (let n = 0; n < RUNS_PER_RESTART; n++) submissions.push(load.submit());
      await until("a run is acknowledged", () => load.acknowledged > already);
      await node.terminate();
      await node.start();
    }
  }
  await Promise.all(submissions);
  await load.judge();
  assert.equal(load.acknowledged, TURNS * NODES * RUNS_PER_RESTART);
});
