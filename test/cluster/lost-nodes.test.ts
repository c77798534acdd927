// Programs on one PostgreSQL, with much work in flight, and whatever can happen to them, again and again: nodes and the database
// are killed, nodes stand still, and any two are cut off from each other. Nothing that was acknowledged is lost or done twice,
// every node tells the same, and nothing is left running.
// `LOST_SEED=$RANDOM ROUNDS=200 npm test -- lost-nodes` does it at other moments, and more often.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../simulation/random.ts";
import { sized } from "../support/long.ts";
import { seesProcesses } from "../support/processes.ts";
import { until } from "../support/until.ts";
import { Cluster } from "./cluster.ts";
import { Effects } from "./effects.ts";
import { causeFault, faultKinds } from "./faults.ts";
import { Load } from "./load.ts";

const NODES = Number(process.env.NODES ?? 1);
const ROUNDS = Number(process.env.ROUNDS ?? sized(3, 50));
const RUNS = sized(30, 200);
const LEASE_SECONDS = 3;
/** In a short run only the first ones. */
const KINDS = faultKinds.slice(0, sized(3, faultKinds.length));

const policies = [
  { recovery_mode: "cluster_recover", placement_policy: "local" },
  { recovery_mode: "cluster_recover", placement_policy: "spread" },
  { recovery_mode: "local_restart", placement_policy: "binpack" },
  { recovery_mode: "manual_recover", placement_policy: "spread" },
];

const skip = !seesProcesses && "it needs /proc";

test(`${ROUNDS} rounds of faults with ${RUNS} runs on ${NODES} nodes: nothing is lost, doubled or left`, {
  skip,
}, async (t) => {
  const random = new Random(Number(process.env.LOST_SEED ?? 1));
  const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "4" };
  await using cluster = await Cluster.start({ nodes: NODES, leaseSeconds: LEASE_SECONDS, env });
  const effects = await Effects.start(cluster.folder);
  const load = new Load({ cluster, effects, random });
  await load.prepare(policies);
  const submissions: Promise<void>[] = [];
  /** Runs are submitted in all rounds but the last one. */
  const runsPerRound = Math.ceil(RUNS / Math.max(1, ROUNDS - 1));
  // Shuffled anew each time that all kinds have been.
  let kinds: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const already = load.acknowledged;
    const more = Math.min(runsPerRound, RUNS - submissions.length);
    for (let n = 0; n < more; n++) submissions.push(load.submit());
    // However slow the machine is, each fault finds more work than the last.
    if (more > 0) await until("a run is acknowledged", () => load.acknowledged > already);
    if (kinds.length === 0) kinds = [...KINDS];
    const [kind = ""] = kinds.splice(random.below(kinds.length), 1);
    t.diagnostic(kind);
    await causeFault(kind, cluster, random, LEASE_SECONDS * 1_000);
  }
  await Promise.all(submissions);
  await load.judge();
  for (const node of cluster.nodes) await node.terminate();
  await until("no process of any node is left", () =>
    cluster.nodes.every((node) => node.processes.length === 0),
  );
  assert.equal(load.acknowledged, RUNS);
});
