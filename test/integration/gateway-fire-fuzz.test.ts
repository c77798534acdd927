// The gateway under a fuzzer that is made from its own OpenAPI document (test/fuzz). `npm run fuzz` takes other seeds
// and larger numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzzedEnv, openFuzzer } from "../fuzz/campaign.ts";
import { call, completed, createJob, startGateway } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { holdingsOf, inspectable } from "../support/inspected.ts";
import { sized } from "../support/long.ts";
import { seesProcesses } from "../support/processes.ts";

const SEED = 20_261_121;
const WARM_UP = sized(2_000, 4_000);
const REQUESTS = sized(1_000, 8_000);
const MiB = 1024 * 1024;

test(`${WARM_UP + REQUESTS} bad requests: each is answered or cut off, with a problem body and no 5xx; nothing is held on to; work goes on`, async () => {
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
    const most = {
      // Statements of lists are kept for each combination of filters, of which the warm-up does not meet all: the heap grows by
      // 3 MiB until 7,000 requests, and then no more. In a long run six hundred bytes that stayed of each would show.
      heapBytes: before.heapBytes + 5 * MiB,
      // The collector gives back what it has had little by little.
      residentBytes: before.residentBytes + 64 * MiB,
      handles: before.handles,
    };
    const after = await holdingsOf(program, most);
    const grown = (key: "heapBytes" | "residentBytes") => ((after[key] - before[key]) / MiB).toFixed(1);
    assert.ok(after.heapBytes <= most.heapBytes, `the heap has grown by ${grown("heapBytes")} MiB`);
    assert.ok(after.residentBytes <= most.residentBytes, `it takes ${grown("residentBytes")} MiB more`);
    assert.ok(after.handles <= most.handles, `${after.handles} handles are open, of ${most.handles} before`);
  }

  assert.doesNotMatch(program.output(), /"level":[56]0/, "nothing went wrong inside");
  assert.equal((await call(program, "GET", "/health")).status, "ok");
  const { run: last } = await completed(program, await createJob(program, graph("after", [router("in")])));
  assert.equal(last.status, "completed");
});
