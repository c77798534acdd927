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
