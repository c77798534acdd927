// Three programs on one PostgreSQL, with much work in flight, again and again: nodes and the database are killed and nodes stand
// still; in the long run any two are cut off from each other, too. Nothing that was acknowledged is lost or done twice,
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

const NODES = Number(process.env.NODES ?? 3);
const ROUNDS = Number(process.env.ROUNDS ?? sized(3, 50));
/** At the start, and in each round. */
const [RUNS_FIRST, RUNS_MORE] = sized([8, 4], [200, 6]);
const RUNS = RUNS_FIRST + ROUNDS * RUNS_MORE;
/** The shortest that there is. */
const LEASE_SECONDS = 10;
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
  const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "2" };
  await using cluster = await Cluster.start({ nodes: NODES, leaseSeconds: LEASE_SECONDS, env });
  const effects = await Effects.start(cluster.folder);
  const load = new Load({ cluster, effects, random });
  await load.prepare(policies);
  const submissions: Promise<void>[] = [];
  const submit = (count: number) => {
    for (let n = 0; n < count; n++) submissions.push(load.submit());
  };
  // Shuffled anew each time that all kinds have been.
  let kinds: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const already = load.acknowledged;
    submit(round === 0 ? RUNS_FIRST + RUNS_MORE : RUNS_MORE);
    // However slow the machine is, each fault finds more work than the last.
    await until("a run is acknowledged", () => load.acknowledged > already);
    if (kinds.length === 0) kinds = [...KINDS];
    const [kind = ""] = kinds.splice(random.below(kinds.length), 1);
    t.diagnostic(kind);
    await causeFault(kind, cluster, random, LEASE_SECONDS * 1_000);
  }
  await Promise.all(submissions);
  const { recovered, interrupted } = await load.judge();
  t.diagnostic(`${recovered} recoveries, ${interrupted} lost attempts`);
  assert.ok(recovered + interrupted > 0, "the faults have hit what ran");
  for (const node of cluster.nodes) await node.terminate();
  await until("no process of any node is left", () =>
    cluster.nodes.every((node) => node.processes.length === 0),
  );
  assert.equal(load.acknowledged, RUNS);
});
