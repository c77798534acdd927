// Where a failure says that it happened: the event that reported it first, and a span that the timeline has.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed } from "../../test/support/engine-harness.ts";
import { executor, graph, module } from "../../test/support/graphs.ts";
import type { JsonObject } from "./json.ts";
import { agentSpan, attemptSpan, runSpan } from "./trace.ts";

/** The failures of a history: which event carries one, and which event and span it names. */
function failures(h: EngineHarness, jobId: string) {
  return h.events(jobId).flatMap(({ type, error }, index) => {
    if (error === undefined) return [];
    const { event_id, span_id, details } = error;
    return [{ number: String(index + 1), type, event_id, span_id, details: details as JsonObject }];
  });
}

const runIdOf = (h: EngineHarness, jobId: string) => h.job(jobId).insert.runId;

describe("a failure names", () => {
  test("the event that carries it and its attempt's span, and the run's failure the agent's event", async () => {
    const h = new EngineHarness();
    const config = { max_attempts: 2, retry_backoff_ms: 1 };
    const nodes = [executor("worker", ["true"], config), executor("other", ["true"])];
    const jobId = await h.submit(graph("g", nodes, [], { entrypoints: ["worker", "other"] }));
    await h.end("worker", failed());
    await h.advance(10);
    await h.end("worker", failed());
    const found = failures(h, jobId);
    const span = (attempt: number) => attemptSpan(runIdOf(h, jobId), { task: 1, attempt }).id;
    assert.deepEqual(
      found.map(({ type, span_id }) => [type, span_id]),
      [
        ["sandbox_job_failed", span(1)],
        ["sandbox_job_failed", span(2)],
        ["agent_failed", span(2)],
        ["job_failed", span(2)],
      ],
    );
    const [, , ofAgent, ofRun] = found;
    for (const { event_id, number } of found.slice(0, 3)) assert.equal(event_id, number);
    assert.equal(ofRun?.event_id, ofAgent?.number);
  });

  test("the retry that follows it, for a module's attempt: no other event tells of that", async () => {
    const h = new EngineHarness();
    const config = { module: "m.mjs", max_attempts: 2, retry_backoff_ms: 1 };
    const jobId = await h.submit(graph("m", [module("worker", config)]));
    await h.end("worker", failed("module.threw"));
    const [found, ...more] = failures(h, jobId);
    assert.deepEqual(
      [found?.type, found?.event_id, more],
      ["sandbox_job_retry_scheduled", found?.number, []],
    );
    assert.deepEqual([found?.details.attempt, found?.details.category], [1, "user_code"]);
    assert.equal(h.job(jobId).progress.tally.errors, 1);
    await h.advance(1_000);
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
  });

  test("the agent's span where an attempt has none: of a module, and of slots that cannot be had", async () => {
    const h = new EngineHarness();
    const ofModule = await h.submit(graph("m", [module("worker", { module: "m.mjs" })]));
    await h.end("worker", failed());
    const ofSlots = await h.submit(graph("s", [executor("worker", ["true"], { pool_slots: 99 })]));
    for (const jobId of [ofModule, ofSlots]) {
      const found = failures(h, jobId);
      assert.deepEqual(
        found.map(({ type, event_id }) => [type, event_id]),
        [
          ["agent_failed", found[0]?.number],
          ["job_failed", found[0]?.number],
        ],
      );
      for (const { span_id } of found) assert.equal(span_id, agentSpan(runIdOf(h, jobId), "worker").id);
    }
    assert.equal(failures(h, ofModule)[0]?.details.attempt, 1);
    assert.equal(failures(h, ofSlots)[0]?.details.attempt, undefined);
  });

  test("the last event and the run's span when it is no agent's", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("g", [executor("worker", ["true"])], [], { policies: { timeout_seconds: 1 } }),
    );
    await h.advance(2_000);
    const [only, ...others] = failures(h, jobId);
    assert.equal(others.length, 0);
    // What was under way is noted before.
    assert.equal(h.events(jobId).at(-2)?.type, "executor_lease_released");
    assert.deepEqual([only?.type, only?.event_id], ["job_failed", String(h.events(jobId).length)]);
    assert.equal(only?.span_id, runSpan(runIdOf(h, jobId)).id);
  });
});
