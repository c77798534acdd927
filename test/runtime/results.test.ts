// How a run ends and with what result. Sentences in quotes are the contract's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { aggregator, answer, executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call } from "../support/runtime-api.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const resultOf = async (manifest: JsonObject) => {
  const { status, result, detail } = await run(program, manifest);
  assert.equal(status, "completed", JSON.stringify((detail.job as JsonObject).failure));
  return result;
};
const inputs = (...bodies: (string | number | null | JsonObject)[]) => ({ initial_inputs: { in: bodies } });

describe("completion", () => {
  test('"the first completion wins": what still runs is ended and changes nothing', async () => {
    const gate = gates.pipe("loser");
    const nodes = [
      router("in"),
      executor("slow", `cat ${gate}; ${answer({ complete_run: { winner: "slow" } })}`),
      executor("quick", answer({ complete_run: { winner: "quick" } })),
    ];
    const jobId = await submit(
      program,
      graph("first", nodes, [
        ["in", "slow"],
        ["in", "quick"],
      ]),
    );
    const { status, result, of, events } = await ended(program, jobId);
    assert.equal(status, "completed");
    assert.deepEqual(result, { winner: "quick" });
    assert.equal(of("job_completed").length, 1);
    assert.equal(events.at(-1)?.type, "job_completed");
    assert.equal(of("executor_lease_released").length, of("executor_lease_acquired").length);
  });

  for (const [value, shown] of [
    ["text", { value: "text" }],
    [7, { value: 7 }],
    [null, { value: null }],
    [[1], { value: [1] }],
    [{ a: 1 }, { a: 1 }],
  ] as const) {
    test(`"complete_run's value" ${JSON.stringify(value)} is the result ${JSON.stringify(shown)}`, async () => {
      const manifest = graph("value", [executor("in", answer({ complete_run: value as never }))]);
      assert.deepEqual(await resultOf(manifest), shown);
    });
  }

  test('"a service runs until stopped": it is running though nothing is left to do, and ends by cancel', async () => {
    const jobId = await submit(program, graph("service", [router("in")], [], { type: "service" }));
    await happens(program, jobId, "message_unrouted");
    assert.equal(((await call(program, "GET", path(jobId))).job as JsonObject).status, "running");
    await call(program, "POST", path(jobId, "/messages"), { agent_id: "in", body: 2 });
    await call(program, "POST", path(jobId, "/cancel"));
    assert.equal((await ended(program, jobId)).status, "cancelled");
  });

  test('"timeout_seconds": a job over its time fails with job.timeout', async () => {
    const manifest = graph("late", [sensor("s")], [], { policies: { timeout_seconds: 0.01 } });
    const { status, detail } = await run(program, manifest);
    assert.equal(status, "failed");
    assert.equal(((detail.job as JsonObject).failure as JsonObject).code, "job.timeout");
  });
});

describe("failure policies", () => {
  const nodes = [router("in"), executor("bad", "exit 5"), router("good"), aggregator("all")];
  const edges = [
    ["in", "bad"],
    ["in", "good"],
    ["good", "all"],
    ["bad", "all"],
  ] as const;

  test('"fail_run (default) fails the run with the first agent that fails for good"', async () => {
    const { status, detail, of, events } = await run(program, graph("fail", nodes, edges));
    assert.equal(status, "failed");
    const job = detail.job as JsonObject;
    assert.equal(((job.failure as JsonObject).details as JsonObject).agent_id, "bad");
    assert.equal(job.partial, false);
    assert.equal(of("agent_failed", "bad").length, 1);
    assert.equal(events.at(-1)?.type, "job_failed");
  });

  test('"continue makes its message a dead letter and lets the run end as completed with partial: true"', async () => {
    const manifest = graph("continue", nodes, edges, {
      policies: { failure_policy: "continue" },
      ...inputs(1, 2),
    });
    const { status, result, detail, of } = await run(program, manifest);
    assert.equal(status, "completed");
    assert.deepEqual(result, { messages: [1, 2], count: 2, last_message: 2, partial: true });
    assert.equal((detail.job as JsonObject).partial, true);
    assert.deepEqual(
      of("message_dead_lettered", "bad").map(({ payload }) => payload.reason),
      ["processing_failed", "processing_failed"],
    );
    assert.equal(of("job_completed")[0]?.payload.partial, true);
  });
});
