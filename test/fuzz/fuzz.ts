// Fuzzes the gateway: `npm run fuzz -- --count 200000`, with another seed each time unless one is given; one request
// again: `npm run fuzz -- --seed 4711 --only 1234`.

import { parseArgs } from "node:util";
import { startGateway } from "../support/gateway-api.ts";
import { fuzzedEnv, openFuzzer } from "./campaign.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    count: { type: "string", default: "20000" },
    only: { type: "string" },
  },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const only = values.only === undefined ? null : Number(values.only);

await using program = await startGateway({ env: fuzzedEnv });
const fuzzer = await openFuzzer(program);
const report = await fuzzer.run({ seed, from: only ?? 0, count: only === null ? Number(values.count) : 1 });
const sorted = (counts: ReadonlyMap<string | number, number>) =>
  [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
console.log(`Seed ${seed}: ${report.sent} requests.`);
console.log(`Statuses (0: closed without an answer): ${sorted(report.statuses)}`);
console.log(`Wrong: ${sorted(report.marks)}`);
for (const { number, what, request } of report.faults) {
  console.error(
    `\nRequest ${number}: ${what}\n  ${request}\n  again: npm run fuzz -- --seed ${seed} --only ${number}`,
  );
}
if (report.faults.length > 0) {
  console.error(`\nThe program printed:\n${program.output().slice(-20_000)}`);
  process.exitCode = 1;
}
