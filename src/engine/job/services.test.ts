// Services in a job's history, and what the board is told of them; every step is the test's own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness, failed, interrupted } from "../../../test/support/engine-harness.ts";
import type { JsonObject } from "../json.ts";

const worker = (config: JsonObject = {}): JsonObject => ({
  node_id: "worker",
  agent_type: "executor",
  config: { command: ["true"], lifecycle: "long_lived", ...config },
  services: [{ name: "web", port: 80 }],
});

const offering = (config: JsonObject = {}): JsonObject => ({
  type: "service",
  services: [{ name: "whole" }],
  entrypoints: ["worker"],
  nodes: [worker(config)],
});

/** "name event", in order. */
function servicesIn(harness: EngineHarness, jobId: string): string[] {
  return harness
    .events(jobId)
    .filter(({ type }) => type.startsWith("service_"))
    .map(({ type, payload }) => `${String(payload.name)} ${type.slice("service_".length)}`);
}

test("services begin with what they live with, and end before the terminal event", async () => {
  const harness = new EngineHarness();
  const jobId = await harness.submit(offering());
  assert.deepEqual(servicesIn(harness, jobId), ["whole registered", "web registered"]);
  assert.deepEqual(harness.told, ["job opened", "worker started"]);
  await harness.do(harness.engine.cancel(jobId));
  assert.deepEqual(servicesIn(harness, jobId).slice(2), ["web deregistered", "whole deregistered"]);
  assert.equal(harness.events(jobId).at(-1)?.type, "job_cancelled");
  assert.deepEqual(harness.told.slice(2), ["job closed"]);
});

test("every attempt registers its services anew, under the same id", async () => {
  const harness = new EngineHarness();
  const jobId = await harness.submit(offering({ max_attempts: 2, retry_backoff_ms: 1 }));
  await harness.end("worker", failed());
  await harness.advance(10);
  assert.deepEqual(servicesIn(harness, jobId).slice(1), [
    "web registered",
    "web deregistered",
    "web registered",
  ]);
  assert.deepEqual(harness.told, ["job opened", "worker started", "worker ended", "worker started"]);
  const ids = harness.events(jobId, "service_registered").map(({ payload }) => payload.service_id);
  assert.equal(ids[1], ids[2]);
  assert.notEqual(ids[0], ids[1]);
});

test("a late report about an attempt that is over ends nothing", async () => {
  const harness = new EngineHarness();
  await harness.submit(offering({ max_attempts: 3, retry_backoff_ms: 1 }));
  const first = harness.started("worker").ref;
  await harness.end("worker", interrupted);
  harness.engine.taskEnded(first, failed());
  assert.deepEqual(harness.told, ["job opened", "worker started", "worker ended", "worker started"]);
});

test("that a command has ended is told while the store takes nothing, that one began only afterwards", async () => {
  const harness = new EngineHarness();
  await harness.submit(offering({ max_attempts: 2, retry_backoff_ms: 1 }));
  harness.journalFaults.push(...Array<"unavailable">(20).fill("unavailable"));
  harness.engine.taskEnded(harness.started("worker").ref, interrupted);
  assert.deepEqual(harness.told.slice(2), ["worker ended"]);
  await harness.advance(100);
  assert.deepEqual(harness.told.slice(2), ["worker ended"]);
  harness.journalFaults.length = 0;
  await harness.advance(5_000);
  assert.deepEqual(harness.told.slice(2), ["worker ended", "worker started"]);
});

test("what checks find is in the history only while the service lives", async () => {
  const harness = new EngineHarness();
  const jobId = await harness.submit(offering({ max_attempts: 2, retry_backoff_ms: 1_000 }));
  const passing = (agentId: string | null, name: string) =>
    harness.engine.serviceChanged(jobId, {
      type: "service_passing",
      agentId,
      serviceId: "svc_1",
      name,
      reason: "all checks pass",
    });
  passing("worker", "web");
  await harness.advance(20);
  assert.deepEqual(harness.events(jobId, "service_passing")[0]?.payload, {
    service_id: "svc_1",
    name: "web",
    reason: "all checks pass",
  });
  await harness.end("worker", failed());
  passing("worker", "web");
  passing("nobody", "web");
  passing(null, "whole");
  await harness.advance(20);
  assert.deepEqual(servicesIn(harness, jobId).slice(2), ["web passing", "web deregistered", "whole passing"]);
  await harness.do(harness.engine.cancel(jobId));
  const before = harness.events(jobId).length;
  passing(null, "whole");
  await harness.advance(20);
  assert.equal(harness.events(jobId).length, before);
});

test("after a restart the board is told anew, and the services of attempts begin again", async () => {
  const harness = new EngineHarness();
  const jobId = await harness.submit(offering());
  harness.told.length = 0;
  await harness.restart();
  assert.deepEqual(harness.told, ["job opened", "worker started"]);
  assert.deepEqual(servicesIn(harness, jobId), [
    "whole registered",
    "web registered",
    "web deregistered",
    "web registered",
  ]);
});

test("a job that another owner has is told as closed", async () => {
  const harness = new EngineHarness();
  const jobId = await harness.submit(offering());
  harness.journalFaults.push("lost");
  await assert.rejects(harness.do(harness.engine.pause(jobId)));
  assert.equal(harness.told.at(-1), "job closed");
});

test("a graph without services tells the board nothing", async () => {
  const harness = new EngineHarness();
  const jobId = await harness.submit({
    entrypoints: ["worker"],
    nodes: [{ node_id: "worker", agent_type: "executor", config: { command: ["true"] } }],
  });
  await harness.end("worker");
  assert.equal(harness.status(jobId), "completed");
  assert.deepEqual(harness.told, []);
});
