// Where a job asks for the slots of its commands.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness } from "../../test/support/engine-harness.ts";
import { executor, graph } from "../../test/support/graphs.ts";
import type { JsonObject } from "./json.ts";
import { slotsKey } from "./ports.ts";

test("attempts under way are told with their nodes until they end; those that wait for slots are none", async () => {
  const h = new EngineHarness({ slots: 1 });
  const jobId = await h.submit(graph("g", [executor("x", ["true"])]));
  await h.submit(graph("g", [executor("waits", ["true"])]));
  const { ref, runId } = h.started("x");
  assert.deepEqual([...h.engine.attempts()], [{ ref, runId, node: null }]);
  assert.equal(ref.jobId, jobId);
  await h.end("x");
  assert.deepEqual(
    [...h.engine.attempts()].map((one) => one.ref),
    [h.started("waits").ref],
  );
});

test("commands that may offer a service stay on the job's node, and all others go where its policy says", async () => {
  const brief = executor("brief", ["true"]);
  const lasting = executor("lasting", ["true"], { lifecycle: "long_lived" });
  const offering = { ...executor("offering", ["true"]), services: [{ name: "own" }] };
  const placesOf = async (more: JsonObject) => {
    const harness = new EngineHarness({ slots: 4 });
    const asked = new Map<string, unknown>();
    const request = harness.slots.request.bind(harness.slots);
    harness.slots.request = (
      ...given: readonly [key: string, pool: string, slots: number, placement?: unknown]
    ) => {
      const [key, pool, slots, placement] = given;
      asked.set(key, placement);
      return request(key, pool, slots);
    };
    const entrypoints = ["brief", "lasting", "offering"];
    const policies = { placement_policy: "spread" };
    await harness.submit(graph("placed", [brief, lasting, offering], [], { policies, entrypoints, ...more }));
    return Object.fromEntries(harness.starts.map(({ agentId, ref }) => [agentId, asked.get(slotsKey(ref))]));
  };
  assert.deepEqual(await placesOf({}), { brief: "spread", lasting: "spread", offering: "here" });
  const services = [{ name: "whole" }];
  assert.deepEqual(await placesOf({ services }), { brief: "spread", lasting: "here", offering: "here" });
});

test("a job asks for slots with its terms, and the runs of one job share its turns", async () => {
  const h = new EngineHarness({ slots: 1 });
  const shares: unknown[] = [];
  const request = h.slots.request.bind(h.slots);
  h.slots.request = (...asked) => {
    shares.push(asked[5]);
    return request(...asked);
  };
  const one = graph("g", [executor("x", ["true"])]);
  const own = await h.submitWith(one, { priority: "low", weight: 9 });
  const identity = { jobId: "j-1", runId: "run_1", definitionId: "job_1" };
  await h.submitWith(one, { identity, priority: "high" });
  assert.deepEqual(shares, [
    { job: own, priority: "low", weight: 9 },
    { job: "job_1", priority: "high", weight: 1 },
  ]);
});

test("a restart leaves each job its weight, and the priority that it was given last", async () => {
  const h = new EngineHarness({ slots: 1 });
  await h.submit(graph("g", [executor("runs", ["true"])]));
  const late = await h.submitWith(graph("g", [executor("late", ["true"])]), { priority: "low", weight: 9 });
  await h.submitWith(graph("g", [executor("high", ["true"])]), { priority: "high" });
  await h.submit(graph("g", [executor("normal", ["true"])]));
  await h.do(h.engine.prioritize(late, "normal"));
  await h.restart();
  assert.deepEqual([h.job(late).insert.priority, h.job(late).insert.weight], ["normal", 9]);
  for (const agentId of ["runs", "high", "late", "normal"]) await h.end(agentId);
});

test("what waits of a job has its new priority at once; what is paused has it when it goes on", async () => {
  const h = new EngineHarness({ slots: 1 });
  await h.submit(graph("g", [executor("runs", ["true"])]));
  const [first, second, third] = [
    await h.submit(graph("g", [executor("first", ["true"])])),
    await h.submit(graph("g", [executor("second", ["true"])])),
    await h.submit(graph("g", [executor("third", ["true"])])),
  ];
  await h.do(h.engine.pause(second));
  for (const job of [second, third])
    assert.equal((await h.do(h.engine.prioritize(job, "high"))).kind, "done");
  assert.equal(h.slots.snapshot().default?.queued, 2);
  await h.do(h.engine.resume(second));
  for (const agentId of ["runs", "third", "second", "first"]) await h.end(agentId);
  assert.deepEqual(
    h.starts.map(({ agentId }) => agentId),
    ["runs", "third", "second", "first"],
  );
  assert.equal((await h.do(h.engine.prioritize(first, "high"))).kind, "not_open");
});
