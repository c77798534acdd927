// What follows at quiescence, what aggregators keep, and what a stopped engine still does: the moments that whole runs seldom
// show.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness, succeeded } from "../../../test/support/engine-harness.ts";

const node = (node_id: string, agent_type: string, config = {}) => ({ node_id, agent_type, config });

test("an aggregator that hears again from behind the later ones forms its result again", async () => {
  const h = new EngineHarness();
  const jobId = await h.submit({
    entrypoints: ["early"],
    nodes: [
      node("early", "aggregator", { output_message_type: "first" }),
      node("late", "aggregator", { output_message_type: "second" }),
      node("work", "executor", { command: ["true"], output_message_type: null }),
    ],
    edges: [
      { from_node: "early", to_node: "late" },
      { from_node: "late", to_node: "work" },
    ],
  });
  await h.end("work", succeeded({ emits: [{ type: "again", body: {}, to: "early" }] }));
  await h.end("work");
  assert.equal(h.status(jobId), "completed");
  assert.deepEqual(h.processed(jobId), { early: 2, late: 2, work: 2 });
});

test("what an aggregator has emitted no longer counts towards what it may collect", async () => {
  const h = new EngineHarness();
  const body = "x".repeat(4 * 1024 * 1024);
  const jobId = await h.submit({
    entrypoints: ["sum"],
    initial_inputs: { sum: Array.from({ length: 9 }, () => body) },
    nodes: [node("sum", "aggregator", { complete_after: 1, output_message_type: "part" })],
    edges: [],
  });
  assert.equal(h.status(jobId), "completed", JSON.stringify(h.job(jobId).progress.failureJson));
});

test("a stopped engine keeps outcomes and steps nothing; the next one goes on with them", async () => {
  const h = new EngineHarness();
  const jobId = await h.submit({
    entrypoints: ["work"],
    nodes: [node("work", "executor", { command: ["true"] }), node("next", "router")],
    edges: [{ from_node: "work", to_node: "next" }],
  });
  h.engine.stop("The program is shutting down.");
  await h.end("work", succeeded());
  assert.equal(h.events(jobId, "sandbox_job_completed").length, 1);
  assert.equal(h.processed(jobId).next ?? 0, 0);
  assert.equal(h.status(jobId), "running");
  await h.restart();
  assert.equal(h.status(jobId), "completed");
  assert.equal(h.processed(jobId).next, 1);
  assert.equal(h.events(jobId, "sandbox_job_started").length, 1);
});
