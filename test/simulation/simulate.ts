// Runs many seeds: `npm run simulate -- --seeds 100000`, or one again: `npm run simulate -- --seed 4711`.

import { parseArgs } from "node:util";
import { runSeed } from "./scenario.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "2000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
  },
});
const from = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
const total = { jobs: 0, events: 0, crashes: 0, clockJumps: 0, answers: 0, retries: 0 };
for (let seed = from; seed < from + count; seed++) {
  try {
    const outcome = await runSeed(seed);
    total.jobs += outcome.jobs;
    total.events += outcome.events;
    total.crashes += outcome.crashes;
    total.clockJumps += outcome.clockJumps;
    total.answers += outcome.answers;
    total.retries += outcome.retries;
  } catch (error) {
    console.error(`Seed ${seed} failed; again: npm run simulate -- --seed ${seed}`);
    console.error(error);
    process.exit(1);
  }
}
const { jobs, events, crashes, clockJumps, answers, retries } = total;
console.log(
  `${count} seeds passed: ${jobs} jobs, ${events} events, ${crashes} crashes, ${clockJumps} jumps of the clock`,
);
console.log(`${answers} answers of people, ${retries} dead letters sent again`);
