// Runs many seeds: `npm run simulate -- --seeds 100000`, or one again: `npm run simulate -- --seed 4711`; with `--disk`
// on the real store, whose power is cut, with `--nodes` many nodes on one database, with `--gateway` the gateway's half,
// with `--schedules` schedules, with `--deployments` deployments, and with `--shares` jobs that want the same slots. `npm run simulate -- --model` shows clusters of 10 and of 100 nodes instead (model.ts).

import { parseArgs } from "node:util";
import { runDeploymentSeed } from "./deployments.ts";
import { runGatewaySeed } from "./gateway-scenario.ts";
import { Counts } from "./kinds.ts";
import { runModel } from "./model.ts";
import { nodesOf, runSeed } from "./scenario.ts";
import { runScheduleSeed } from "./schedules.ts";
import { runSharesSeed } from "./shares.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "2000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    disk: { type: "boolean", default: false },
    nodes: { type: "boolean", default: false },
    gateway: { type: "boolean", default: false },
    schedules: { type: "boolean", default: false },
    deployments: { type: "boolean", default: false },
    shares: { type: "boolean", default: false },
    model: { type: "boolean", default: false },
    jobs: { type: "string", default: "1000000" },
  },
});
if (values.model) {
  for (const placement of ["local", "spread"] as const)
    for (const nodes of [10, 100]) {
      const jobs = (Number(values.jobs) * nodes) / 100;
      console.log({ nodes, jobs, placement }, await runModel({ seed: 1, nodes, jobs, placement }));
    }
  process.exit();
}
const from = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
const counts = new Counts();
const total = { jobs: 0, events: 0 };

const counted = {
  gateway: runGatewaySeed,
  schedules: runScheduleSeed,
  deployments: runDeploymentSeed,
  shares: runSharesSeed,
};
const countedKind = (["gateway", "schedules", "deployments", "shares"] as const).find((one) => values[one]);
/** Of a world that counts what happens, and no jobs. */
const runCounted = countedKind === undefined ? null : counted[countedKind];

async function simulate(seed: number): Promise<void> {
  if (runCounted !== null) {
    counts.addAll(await runCounted(seed));
    return;
  }
  const outcome = await runSeed(seed, {
    hasDisk: values.disk,
    ...(values.nodes && { nodes: nodesOf(seed) }),
  });
  total.jobs += outcome.jobs;
  total.events += outcome.events;
  counts.addAll(outcome.counts);
}

for (let seed = from; seed < from + count; seed++) {
  try {
    await simulate(seed);
  } catch (error) {
    const kind = (["gateway", "schedules", "deployments", "shares", "disk", "nodes"] as const).find(
      (one) => values[one],
    );
    const world = kind === undefined ? "" : ` --${kind}`;
    console.error(`Seed ${seed} failed; again: npm run simulate --${world} --seed ${seed}`);
    console.error(error);
    process.exit(1);
  }
}
const what = runCounted !== null ? "" : `: ${total.jobs} jobs, ${total.events} events`;
console.log(`${count} seeds passed${what}\n${counts}`);
