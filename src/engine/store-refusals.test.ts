// What the engine makes of a store that confirms nothing: by what is known of the batch (E4, E6, E7).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, type HarnessEvent, succeeded } from "../../test/support/engine-harness.ts";
import { type Edge, executor, graph, router, sensor } from "../../test/support/graphs.ts";
import type { JsonObject } from "./json.ts";

const command = (nodeId: string) => executor(nodeId, ["true"]);
const job = (nodes: readonly JsonObject[], edges: readonly Edge[] = []) => graph("g", nodes, edges);

function failureOf(
  h: EngineHarness,
  jobId: string,
): { readonly code: string; readonly details: HarnessEvent["payload"] } {
  return JSON.parse(h.job(jobId).progress.failureJson ?? "null");
}

describe("a job that cannot be written", () => {
  test("fails alone: its command is stopped, its stream ends, and the other jobs of the batch go on", async () => {
    const h = new EngineHarness();
    const bad = await h.submit(job([command("x"), command("y")], [["x", "y"]]));
    const good = await h.submit(job([command("z")]));
    h.unwritable.add(bad);
    h.published = [];
    const { ref } = h.started("x");
    h.engine.taskEnded(ref, succeeded());
    await h.end("z");
    assert.equal(h.status(good), "completed");
    assert.equal(h.status(bad), "failed");
    assert.equal(failureOf(h, bad).code, "runtime.record_damaged");
    assert.match(String(failureOf(h, bad).details.message), /cannot be written: a key is taken/);
    const last = h.events(bad).at(-1);
    assert.equal(last?.type, "job_failed");
    assert.ok(h.published.includes(h.job(bad).events.at(-1)!), "readers of its events are told");
    assert.equal(
      h.starts.some(({ agentId }) => agentId === "y"),
      false,
    );
    assert.deepEqual(await h.do(h.engine.cancel(bad)), { kind: "not_open" });
    assert.equal(h.engine.unavailable, null);
  });

  test("gives its slots back, and stops what runs", async () => {
    const h = new EngineHarness({ slots: 1 });
    const bad = await h.submit(job([command("x")]));
    h.unwritable.add(bad);
    await assert.rejects(h.do(h.engine.pause(bad)), /the job ends as failed. Look at its state/);
    assert.deepEqual(
      h.stops.map(({ jobId }) => jobId),
      [bad],
    );
    const next = await h.submit(job([command("y")]));
    await h.end("y");
    assert.equal(h.status(next), "completed");
  });

  test("is refused for good when it is new, and leaves nothing", async () => {
    const h = new EngineHarness();
    h.unwritable.add("g-1");
    const refused = h.submitAs("g-1", job([command("x")]));
    await assert.rejects(refused, { name: "JobUnwritable", message: /Nothing of it was accepted/ });
    assert.equal(h.memory.jobs.size, 0);
    assert.equal(h.engine.openJobs, 0);
    assert.equal(h.engine.unavailable, null);
  });

  test("ends though the store refuses everything for a while", async () => {
    const h = new EngineHarness();
    const bad = await h.submit(job([command("x")]));
    h.unwritable.add(bad);
    h.damagedFaults = 2;
    h.engine.taskEnded(h.started("x").ref, succeeded());
    await h.advance();
    assert.equal(h.status(bad), "running");
    await h.advance(5_000);
    assert.equal(h.status(bad), "failed");
  });
});

test("a job that cannot be read at a restart fails alone, and the others are recovered", async () => {
  const h = new EngineHarness();
  const bad = await h.submit(job([command("x")]));
  const good = await h.submit(job([command("z")]));
  h.unreadable.add(bad);
  await h.restart();
  assert.equal(failureOf(h, bad).code, "runtime.record_damaged");
  assert.match(String(failureOf(h, bad).details.message), /cannot be read: a row is no JSON/);
  await h.end("z");
  assert.equal(h.status(good), "completed");
});

test("every open job is recovered, however many there are", async () => {
  const h = new EngineHarness();
  const count = 1_010;
  for (let n = 1; n <= count; n++) await h.submitAs(`g-${n}`, job([sensor("s")]));
  await h.restart();
  assert.equal(h.engine.openJobs, count);
  assert.deepEqual(await h.do(h.engine.cancel(`g-${count}`)), { kind: "done", status: "cancelled" });
});

test("a restart with many open jobs lets everything else have its turn every few jobs", async () => {
  const h = new EngineHarness();
  const count = 100;
  for (let n = 1; n <= count; n++) await h.submitAs(`g-${n}`, job([sensor("s")]));
  const recovered = h.restartOnly();
  let largest = 0;
  while (h.engine.openJobs < count) {
    const before = h.engine.openJobs;
    await h.turns(1);
    largest = Math.max(largest, h.engine.openJobs - before);
  }
  assert.ok(largest <= 25, `${largest} jobs in one turn`);
  assert.equal(await h.do(recovered), count);
});

describe("it is not known whether a batch was written", () => {
  for (const fault of ["unknown", "answer lost"] as const) {
    test(`(${fault}) a new job's caller is told so, and the job runs once, when the store commits again`, async () => {
      const h = new EngineHarness();
      h.journalFaults.push(fault, "unavailable");
      const submitted = h.submitAs("g-1", job([command("x")]));
      await assert.rejects(submitted, {
        name: "EngineUnavailable",
        mayRetry: false,
        message: /not known whether job g-1 was accepted: look for it before you submit it again/,
      });
      await assert.rejects(h.submitAs("g-1", job([command("x")])), { name: "EngineUnavailable" });
      assert.equal(h.starts.length, 0);
      await h.advance(5_000);
      assert.equal(h.starts.length, 1);
      await h.end("x");
      assert.equal(h.status("g-1"), "completed");
    });
  }

  test("a request about a job that exists takes effect once", async () => {
    const h = new EngineHarness();
    const id = await h.submit(job([command("x")]));
    h.journalFaults.push("answer lost");
    await assert.rejects(h.do(h.engine.pause(id)), {
      mayRetry: false,
      message: /not known whether the request/,
    });
    await h.advance(1_000);
    assert.equal(h.status(id), "paused");
    assert.equal(h.events(id, "job_paused").length, 1);
  });
});

describe("the store is damaged", () => {
  test("nothing is accepted or tried any more, and nobody waits for it", async () => {
    const h = new EngineHarness();
    const id = await h.submit(job([command("x"), router("r")], [["x", "r"]]));
    h.journalFaults.push("damaged");
    await assert.rejects(h.do(h.engine.pause(id)), /The database is damaged. The request has no effect/);
    assert.equal(h.engine.unavailable, "The database is damaged.");
    await assert.rejects(h.submitAs("g-2", job([router("a")])), /The database is damaged/);
    h.engine.taskEnded(h.started("x").ref, succeeded());
    await h.advance(60_000);
    assert.equal(h.status(id), "running", "the store would take writes, and is not asked again");
    await assert.rejects(h.engine.settled(), /damaged/);
    assert.equal(h.engine.backpressure(), null);
    h.engine.stop("bye");
    assert.equal(await h.do(h.engine.settledWithin(1_000)), false);
  });

  test("a new job's caller is told that nothing was accepted", async () => {
    const h = new EngineHarness();
    h.journalFaults.push("damaged");
    const refused = h.submitAs("g-1", job([router("a")]));
    await assert.rejects(refused, { mayRetry: true, message: /damaged. Nothing was accepted.$/ });
    await h.advance(60_000);
    assert.equal(h.memory.jobs.size, 0);
  });
});
