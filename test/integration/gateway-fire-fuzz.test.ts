// The gateway under a fuzzer that is made from its own OpenAPI document (test/fuzz). `npm run fuzz` takes other seeds
// and larger numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzzedEnv, openFuzzer } from "../fuzz/campaign.ts";
import { call, completed, createJob, startGateway } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { holdingsOf, inspectable } from "../support/inspected.ts";
import { seesProcesses } from "../support/processes.ts";

const SEED = 20_261_121;
const WARM_UP = 6_000;
const REQUESTS = 20_000;
const MiB = 1024 * 1024;

test("20,000 bad requests: each is answered or cut off, with a problem body and no 5xx; nothing is held on to; work goes on", async () => {
  await using program = await startGateway({ env: { ...fuzzedEnv, ...inspectable } });
  const fuzzer = await openFuzzer(program);
  const run = async (from: number, count: number) => {
    const { faults, sent } = await fuzzer.run({ seed: SEED, from, count });
    const again = (number: number) => `npm run fuzz -- --seed ${SEED} --only ${number}`;
    for (const { number, what, request } of faults)
      assert.fail(`${what}\n${request}\nagain: ${again(number)}`);
    assert.equal(sent, count);
  };

  // Compiled code, prepared statements, schemas: made once.
  await run(0, WARM_UP);
  const before = seesProcesses ? await holdingsOf(program) : null;
  await run(WARM_UP, REQUESTS);
  if (before !== null) {
    const after = await holdingsOf(program, before.handles);
    const grown = (key: "heapBytes" | "residentBytes") => (after[key] - before[key]) / MiB;
    // Two hundred bytes that stayed of each request would show.
    assert.ok(grown("heapBytes") <= 4, `the heap has grown by ${grown("heapBytes").toFixed(1)} MiB`);
    // The collector gives back what it has had little by little.
    assert.ok(grown("residentBytes") <= 64, `it takes ${grown("residentBytes").toFixed(1)} MiB more`);
  }

  assert.doesNotMatch(program.output(), /"level":[56]0/, "nothing went wrong inside");
  assert.equal((await call(program, "GET", "/health")).status, "ok");
  const { run: last } = await completed(program, await createJob(program, graph("after", [router("in")])));
  assert.equal(last.status, "completed");
});
