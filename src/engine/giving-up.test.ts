// An engine that gives its jobs up, because others may have them, and works again under another name (E8).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, succeeded } from "../../test/support/engine-harness.ts";
import { executor, graph, router } from "../../test/support/graphs.ts";

const command = (nodeId: string) => executor(nodeId, ["true"]);
const twoCommands = graph("g", [command("x"), command("y")], [["x", "y"]]);
const REASON = "The lease is over; try again in a moment.";

/** Commits are made from now on, and their answers wait. @returns lets them come */
function holdAnswers(h: EngineHarness): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  h.answersAfter = promise;
  return async () => {
    resolve();
    await h.advance();
  };
}

describe("an engine that gives its jobs up", () => {
  test("stops what runs of them, also what they have let go of already", async () => {
    const h = new EngineHarness();
    await h.submit(twoCommands);
    const cancelled = await h.submit(graph("c", [command("z")]));
    const refs = h.starts.map(({ ref }) => ref);
    h.engine.cancel(cancelled).catch(() => {});
    h.engine.giveUp(REASON);
    assert.deepEqual(h.stops, refs);
    assert.equal(h.engine.openJobs, 0);
  });

  test("stops what a batch under way lets go of", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    holdAnswers(h);
    h.engine.cancel(jobId).catch(() => {});
    await h.advance();
    assert.deepEqual(h.stops, []);
    h.engine.giveUp(REASON);
    assert.deepEqual(h.stops, [h.started("x").ref]);
  });

  test("tells those who wait what is known of their requests, and refuses new ones", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    holdAnswers(h);
    const underWay = h.engine.pause(jobId).catch((error: unknown) => error);
    await h.advance();
    const gathered = h.engine.resume(jobId).catch((error: unknown) => error);
    const settled = h.engine.settled().catch((error: unknown) => error);
    h.engine.giveUp(REASON);
    for (const [waiter, mayRetry, text] of [
      [underWay, false, /The lease is over.*is not known/],
      [gathered, true, /The lease is over.*has no effect/],
      [settled, false, /is not known/],
    ] as const) {
      const error = (await waiter) as Error & { mayRetry: boolean };
      assert.match(error.message, text);
      assert.equal(error.mayRetry, mayRetry);
    }
    assert.equal(h.engine.unavailable, REASON);
    await assert.rejects(h.submit(twoCommands), { name: "EngineUnavailable", message: REASON });
    await assert.rejects(h.engine.cancel(jobId), { name: "EngineUnavailable", message: REASON });
  });

  test("does nothing of what a commit caused whose answer comes later", async () => {
    const h = new EngineHarness();
    await h.submit(twoCommands);
    const answer = holdAnswers(h);
    h.engine.taskEnded(h.started("x").ref, succeeded());
    await h.advance();
    h.published = [];
    h.engine.giveUp(REASON);
    await answer();
    assert.deepEqual(h.published, []);
    assert.equal(h.starts.length, 1, "y was not started");
  });

  test("does not send a batch again that the store had refused", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    h.journalFaults.push("unavailable");
    h.engine.taskEnded(h.started("x").ref, succeeded());
    await h.advance();
    const before = h.job(jobId).revision;
    h.engine.giveUp(REASON);
    await h.advance(60_000);
    assert.equal(h.job(jobId).revision, before);
    assert.equal(h.engine.unavailable, REASON, "and no longer because of the store");
  });

  test("lets what is stopped write its last output", async () => {
    const h = new EngineHarness();
    await h.submit(twoCommands);
    holdAnswers(h);
    const line = { type: "log", payload: { message: "y".repeat(60_000) } };
    const lines = Array.from({ length: 200 }, () => line);
    h.engine.taskEvents(h.started("x").ref, lines);
    assert.notEqual(h.engine.backpressure(), null);
    h.engine.giveUp(REASON);
    assert.equal(h.engine.backpressure(), null);
  });

  test("goes on with them under another name, and its old name writes nothing any more", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    await h.end("x");
    h.engine.giveUp(REASON);
    h.engine.takeUp("another");
    assert.equal(await h.do(h.engine.recover()), 1);
    assert.equal(h.job(jobId).owner, "another");
    assert.equal(h.started("y").ref.attempt, 2);
    await h.end("y");
    assert.equal(h.status(jobId), "completed");
    assert.deepEqual(h.processed(jobId), { x: 1, y: 1 });
    const next = await h.submit(graph("n", [router("r")]));
    assert.equal(h.job(next).owner, "another");
  });

  test("begins no attempt because of a wait that it had given up", async () => {
    const h = new EngineHarness();
    const backoff = { max_attempts: 3, retry_backoff_ms: 10_000 };
    const jobId = await h.submit(graph("g", [executor("x", ["false"], backoff)]));
    await h.end("x", failed());
    h.engine.giveUp(REASON);
    // Only the wall clock tells when a wait is over that is taken over.
    h.wallAheadMs = 60_000;
    h.engine.takeUp("another");
    await h.do(h.engine.recover());
    assert.equal(h.started("x").ref.attempt, 2);
    await h.end("x", failed());
    const [first, second] = h
      .events(jobId, "sandbox_job_retry_scheduled")
      .map(({ payload }) => Number(payload.delay_ms));
    assert.ok(first! < second!);
    await h.advance(first!);
    assert.equal(h.started("x").ref.attempt, 2);
    await h.advance(second! - first!);
    assert.equal(h.started("x").ref.attempt, 3);
  });

  test("holds no job that it was reading, and no slot for it", async () => {
    const h = new EngineHarness({ slots: 1 });
    const jobId = await h.submit(twoCommands);
    await h.restart();
    h.job(jobId).owner = "dead";
    const recovery = h.engine.recover();
    h.engine.giveUp(REASON);
    assert.equal(await h.do(recovery), 0);
    assert.equal(h.engine.openJobs, 0);
    assert.equal(h.slots.snapshot().default?.in_use, 0);
  });

  test("takes over no further job once it is stopped", async () => {
    const h = new EngineHarness({ slots: 1 });
    const jobId = await h.submit(twoCommands);
    await h.restart();
    h.job(jobId).owner = "dead";
    const recovery = h.engine.recover();
    h.engine.stop("It is shut down.");
    assert.equal(await h.do(recovery), 0);
  });

  test("claims nothing without a lease, nor once it is stopped", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    await h.restart();
    h.job(jobId).owner = "dead";
    h.engine.giveUp(REASON);
    assert.equal(await h.do(h.engine.recover()), 0);
    h.engine.takeUp("another");
    h.engine.stop("It is shut down.");
    assert.equal(await h.do(h.engine.recover()), 0);
    assert.equal(h.job(jobId).owner, "dead");
  });
});
