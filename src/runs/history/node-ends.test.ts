// What the newest events tell of nodes: when each last began and ended, what failed, and what the end of the run cut off.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness, failed } from "../../../test/support/engine-harness.ts";
import { executor, graph, router } from "../../../test/support/graphs.ts";
import { renderEvent } from "../../engine/event.ts";
import { makeFailure } from "../../engine/failure.ts";
import { nodeEnds } from "./node-ends.ts";

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();

const newestOf = (h: EngineHarness, jobId: string) => [...h.job(jobId).events].reverse();

test("a node with attempts has the times of the last one, another one those of its agent", async () => {
  const h = new EngineHarness();
  const config = { max_attempts: 2, retry_backoff_ms: 100 };
  const nodes = [router("in"), executor("work", ["true"], config)];
  const jobId = await h.submit(graph("g", nodes, [["in", "work"]]));
  h.nowMs += 10;
  await h.end("work", failed());
  const failedOnce = (await nodeEnds(newestOf(h, jobId))).get("work");
  assert.deepEqual([failedOnce?.attempt, failedOnce?.failure?.code], [1, "executor.exit_nonzero"]);
  await h.advance(75);
  const startedMs = h.nowMs - Date.UTC(2026, 0, 1);
  h.nowMs += 25;
  await h.end("work");
  const ends = await nodeEnds(newestOf(h, jobId));
  assert.deepEqual(ends.get("work"), {
    isCutOff: false,
    attempt: 2,
    startedAt: at(startedMs),
    finishedAt: at(startedMs + 25),
    failure: null,
  });
  assert.deepEqual(ends.get("in"), {
    isCutOff: false,
    attempt: null,
    startedAt: at(0),
    finishedAt: at(startedMs + 25),
    failure: null,
  });
});

test("an attempt that has not ended has no end, though one before it has; one that was cut off ends then", async () => {
  const h = new EngineHarness();
  const nodes = [executor("work", ["true"])];
  const jobId = await h.submit(graph("g", nodes, [], { initial_inputs: { work: [1, 2] } }));
  h.nowMs += 10;
  await h.end("work");
  h.nowMs += 5;
  const running = (await nodeEnds(newestOf(h, jobId))).get("work");
  assert.deepEqual([running?.startedAt, running?.finishedAt, running?.isCutOff], [at(10), null, true]);
  await h.do(h.engine.cancel(jobId));
  const { isCutOff, startedAt, finishedAt } = (await nodeEnds(newestOf(h, jobId))).get("work") ?? {};
  assert.deepEqual([isCutOff, startedAt, finishedAt], [true, at(10), at(15)]);
});

test("what an agent failed of stays, whatever its later messages did", async () => {
  const h = new EngineHarness();
  const nodes = [executor("work", ["true"])];
  const policies = { failure_policy: "continue" };
  const jobId = await h.submit(graph("g", nodes, [], { policies, initial_inputs: { work: [1, 2] } }));
  await h.end("work", failed());
  await h.end("work");
  const end = (await nodeEnds(newestOf(h, jobId))).get("work");
  assert.equal(end?.failure?.code, "executor.exit_nonzero");
  assert.equal(end?.attempt, 1);
});

test("of a history that was cut, what is known of a node is told, and nothing else", async () => {
  const h = new EngineHarness();
  const jobId = await h.submit(graph("g", [executor("work", ["true"])]));
  await h.end("work");
  const newest = newestOf(h, jobId);
  const upTo = newest.findIndex((line) => line.includes('"sandbox_job_completed"')) + 1;
  const end = (await nodeEnds(newest.slice(0, upTo))).get("work");
  assert.deepEqual([end?.attempt, end?.startedAt, end?.finishedAt], [1, null, at(0)]);
  assert.equal((await nodeEnds([])).size, 0);
});

test("everything else has its turn while many long failures are read", async (t) => {
  // However fast the machine is: each look at the clock finds it a little later.
  let nowMs = 0;
  t.mock.method(performance, "now", () => ++nowMs);
  const place = { runId: "run_1", traceId: "a".repeat(32), spanId: "b".repeat(16), eventId: 1 };
  const context = { agentId: "work", stderrTail: "e".repeat(4_000) };
  const failure = makeFailure("executor.exit_nonzero", "it broke", 1, place, context);
  const head = { nowMs: 1, type: "sandbox_job_failed", agentId: "work" };
  const newest = new Array<string>(2_000).fill(renderEvent(head, { attempt: 1 }, failure));
  let hadTurn = false;
  setImmediate(() => {
    hadTurn = true;
  });
  const ends = nodeEnds(newest);
  assert.equal((await ends).get("work")?.failure?.code, "executor.exit_nonzero");
  assert.ok(hadTurn);
});
