// An engine that is drained: jobs that leave it one by one, at exact moments (E9). The random ones are the simulation's.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  EngineHarness,
  failed,
  interrupted,
  submissionOf,
  succeeded,
} from "../../test/support/engine-harness.ts";
import { executor, graph, router, sensor } from "../../test/support/graphs.ts";
import { FREE_OWNER } from "./journal.ts";
import type { JsonObject } from "./json.ts";

const REASON = "This node is being drained; submit the job to another node.";
const command = (nodeId: string, config: JsonObject = {}) => executor(nodeId, ["true"], config);
const twoCommands = graph("g", [command("x"), command("y")], [["x", "y"]]);
const worker = (nodeId: string, config: JsonObject = {}) =>
  command(nodeId, { lifecycle: "long_lived", ...config });
const service = graph("s", [worker("w")], [], { type: "service" });

function drain(h: EngineHarness, given: { inMs?: number; servicesLast?: boolean } = {}): Promise<void> {
  const { inMs = 60_000, servicesLast = true } = given;
  h.engine.drain({ deadlineMs: h.nowMs + inMs, servicesLast, reason: REASON });
  return h.advance();
}

/** Another engine takes over what is free. */
function elsewhere(h: EngineHarness): EngineHarness {
  const other = new EngineHarness({ memory: h.memory });
  other.nowMs = h.nowMs;
  h.memory.mayClaim = ({ owner }) => owner === FREE_OWNER;
  other.restartOnly().catch(() => {});
  return other;
}

describe("a job that leaves", () => {
  test("goes at once when nothing of it runs, and goes on elsewhere where it stopped", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("q", [sensor("door"), command("x")], [["door", "x"]], { type: "service" }),
    );
    await drain(h, { servicesLast: false });
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.equal(h.engine.openJobs, 0);
    assert.equal(h.engine.holds(jobId), false);
    assert.equal(h.events(jobId).at(-1)?.type, "job_handed_over");
    const other = elsewhere(h);
    await other.advance();
    const recovered = other.events(jobId, "job_recovered");
    assert.deepEqual(recovered[0]?.payload, { epoch: 2, interrupted_tasks: 0, handed_over: true });
    await other.deliver(jobId, "door", 1);
    assert.equal(other.started("x").ref.attempt, 1);
  });

  test("begins no attempt, and waits for those that run", async () => {
    const h = new EngineHarness({ slots: 1 });
    const jobId = await h.submit(twoCommands);
    const waiting = await h.submit(twoCommands);
    await drain(h);
    assert.equal(h.job(waiting).owner, FREE_OWNER, "its slots were only asked for");
    assert.equal(h.job(jobId).owner, "owner-1");
    assert.equal(h.slots.snapshot().default?.queued, 0);
    await h.end("x");
    assert.equal(h.starts.length, 1, "y was not started");
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.deepEqual(h.slots.snapshot().default, {
      capacity: 1,
      available: 1,
      in_use: 0,
      queued: 0,
      active: 0,
    });
    const other = elsewhere(h);
    await other.advance();
    for (const agentId of ["y", "x", "y"]) await other.end(agentId);
    assert.deepEqual([other.status(jobId), other.status(waiting)], ["completed", "completed"]);
    assert.deepEqual(other.processed(jobId), { x: 1, y: 1 });
  });

  test("takes no slots that come free because another one leaves", async () => {
    const h = new EngineHarness({ slots: 2 });
    await h.submit(twoCommands);
    await h.submit(graph("l", [command("large", { pool_slots: 2 })]));
    await h.submit(twoCommands);
    await drain(h);
    assert.equal(h.starts.length, 1);
    assert.equal(h.engine.openJobs, 1);
  });

  test("ends here when its last attempt was its last work", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(graph("o", [command("x"), router("r")], [["x", "r"]]));
    await drain(h);
    await h.end("x");
    assert.equal(h.status(jobId), "completed");
    assert.deepEqual(h.engine.jobsLeft(), { jobs: 0, services: 0, attempts: 0, moved: 0 });
  });

  test("has its attempts ended at the deadline, which counts as no attempt of theirs", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(graph("d", [command("x", { max_attempts: 1 })]));
    await drain(h, { inMs: 1_000 });
    await h.advance(999);
    assert.deepEqual(h.stops, []);
    await h.advance(1);
    assert.deepEqual(h.stops, [h.started("x").ref]);
    assert.equal(h.job(jobId).owner, "owner-1", "while it runs");
    await h.end("x", interrupted);
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.equal(h.events(jobId, "executor_interrupted")[0]?.payload.reason, "its node is drained");
    const other = elsewhere(h);
    await other.advance();
    assert.equal(other.started("x").ref.attempt, 2);
    await other.end("x");
    assert.equal(other.status(jobId), "completed");
  });

  test("has a retry left that fails meanwhile, and its wait goes along", async () => {
    const h = new EngineHarness();
    const config = { max_attempts: 2, retry_backoff_seconds: 100 };
    const jobId = await h.submit(graph("r", [command("x", config)]));
    await drain(h);
    await h.end("x", failed());
    const other = elsewhere(h);
    await other.advance();
    assert.equal(other.starts.length, 0);
    await other.advance(100_000);
    await other.end("x", failed());
    assert.equal(other.status(jobId), "failed");
    assert.equal(other.events(jobId, "sandbox_job_failed").length, 2);
  });

  test("ends workers that never end once nothing else of their job runs, except those with safe_to_retry false", async () => {
    const h = new EngineHarness({ slots: 9 });
    const withWorker = (config: JsonObject) =>
      graph("w", [command("x"), command("y"), worker("w", config)], [["x", "y"]], {
        entrypoints: ["x", "w"],
      });
    const jobId = await h.submit(withWorker({}));
    const { ref } = h.started("w");
    const once = await h.submit(withWorker({ safe_to_retry: false }));
    await drain(h, { inMs: 1_000 });
    assert.deepEqual(h.stops, []);
    for (const one of [...h.starts]) if (one.agentId === "x") h.engine.taskEnded(one.ref, succeeded());
    await h.advance();
    assert.deepEqual(h.stops, [ref]);
    h.engine.taskEnded(ref, interrupted);
    await h.advance(999);
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.equal(h.job(once).owner, "owner-1");
    await h.advance(1);
    assert.deepEqual(h.stops.slice(1), [h.started("w").ref]);
  });

  test("asks for nothing while it is held, and is held elsewhere too", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    await h.do(h.engine.pause(jobId));
    await drain(h);
    await h.do(h.engine.resume(jobId));
    await h.do(h.engine.pause(jobId));
    await h.end("x");
    const other = elsewhere(h);
    await other.advance();
    assert.equal(other.status(jobId), "paused");
    assert.equal(other.starts.length, 0);
    await other.do(other.engine.resume(jobId));
    assert.equal(other.started("y").ref.attempt, 1);
  });

  test("is not held for a person elsewhere, as one is whose node was lost", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("m", [command("x")], [], { policies: { recovery_mode: "manual_recover" } }),
    );
    await drain(h);
    await h.end("x", interrupted);
    const other = elsewhere(h);
    await other.advance();
    assert.equal(other.status(jobId), "running");
    assert.equal(other.started("x").ref.attempt, 2);
  });
});

describe("a part that hands a job over", () => {
  test("is the last that happens to the job here: what comes while it is written has no effect", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("q", [sensor("door"), router("r")], [["door", "r"]], { type: "service" }),
    );
    const { promise, resolve } = Promise.withResolvers<void>();
    h.answersAfter = promise;
    await drain(h, { servicesLast: false });
    assert.equal(h.engine.holds(jobId), true);
    const message = { agentId: "door", type: "message", body: 1, correlationId: null, ttlMs: null };
    const delivered = h.engine.deliver(jobId, message);
    resolve();
    assert.deepEqual(await h.do(delivered), { kind: "not_open" });
    assert.equal(h.engine.holds(jobId), false);
    await h.advance(60_000);
    assert.equal(h.events(jobId).at(-1)?.type, "job_handed_over");
    assert.deepEqual(h.engine.jobsLeft(), { jobs: 0, services: 0, attempts: 0, moved: 1 });
  });

  test("is sent again when its answer was lost, and nothing comes of it once another has the job", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(
      graph("q", [sensor("door"), command("x")], [["door", "x"]], { type: "service" }),
    );
    h.journalFaults.push("answer lost");
    const message = { agentId: "door", type: "message", body: 1, correlationId: null, ttlMs: null };
    const delivered = h.engine.deliver(jobId, message).catch((error: unknown) => error);
    h.engine.drain({ deadlineMs: h.nowMs, servicesLast: false, reason: REASON });
    await h.advance();
    const other = elsewhere(h);
    await other.advance();
    await h.advance(60_000);
    const error = (await delivered) as Error & { mayRetry: boolean };
    assert.equal(error.mayRetry, false, "the message is there");
    assert.equal(h.job(jobId).epoch, 2);
    assert.equal(other.started("x").ref.attempt, 1);
    assert.equal(h.engine.openJobs, 0);
  });

  test("leaves a job alone that has come back before its answer", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    await drain(h, { inMs: 0 });
    h.journalFaults.push("answer lost");
    await h.end("x", interrupted);
    h.engine.undrain();
    h.engine.recover().catch(() => {});
    await h.advance(60_000);
    assert.equal(h.engine.holds(jobId), true);
    assert.equal(h.started("x").ref.attempt, 2);
    await h.end("x");
    await h.end("y");
    assert.equal(h.status(jobId), "completed");
  });

  test("is given up with all others when the lease is over", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    await drain(h, { inMs: 0 });
    h.answersAfter = new Promise(() => {});
    await h.end("x", interrupted);
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.equal(h.engine.holds(jobId), true, "it does not know");
    h.engine.giveUp("The lease is over.");
    assert.equal(h.engine.openJobs, 0);
    assert.equal(h.engine.holds(jobId), false);
  });
});

describe("a drain", () => {
  test("says that no new jobs are to come, and hands over at once what comes even so", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    await drain(h);
    const submission = submissionOf(twoCommands);
    const { jobId: late, ended } = await h.do(h.engine.submit(submission));
    assert.deepEqual([h.job(late).owner, ended], [FREE_OWNER, null]);
    assert.equal(h.starts.length, 1);
    assert.equal(h.engine.unavailable, null);
    assert.equal(h.engine.closed, REASON);
    assert.equal((await h.do(h.engine.pause(jobId))).kind, "done");
    h.engine.undrain();
    assert.equal(h.engine.closed, null);
    assert.equal(h.engine.jobsLeft(), null);
    await h.submit(twoCommands);
  });

  test("that is cancelled lets the jobs that are still here go on", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(graph("p", [command("x"), command("y")], [["x", "y"]]));
    const both = await h.submit(
      graph("b", [command("a"), command("b"), command("c")], [["a", "c"]], { entrypoints: ["a", "b"] }),
    );
    await drain(h);
    assert.equal(h.starts.length, 2, "x and a");
    let isOver = false;
    void h.engine.drained().then(() => {
      isOver = true;
    });
    h.engine.undrain();
    await h.advance();
    assert.ok(isOver);
    await h.end("x");
    assert.equal(h.started("b").ref.attempt, 1);
    for (const agentId of ["a", "b", "y", "c"]) await h.end(agentId);
    assert.deepEqual([h.status(jobId), h.status(both)], ["completed", "completed"]);
    assert.equal(h.job(jobId).owner, "owner-1");
  });

  test("that is cancelled leaves a job alone whose end is being written", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(graph("c", [command("z")]));
    await drain(h);
    const answer = Promise.withResolvers<void>();
    h.answersAfter = answer.promise;
    await h.end("z");
    const { revision } = h.job(jobId);
    assert.equal(h.status(jobId), "completed");
    h.engine.undrain();
    answer.resolve();
    await h.advance();
    assert.equal(h.engine.openJobs, 0);
    assert.equal(h.job(jobId).revision, revision);
  });

  test("ends when all jobs are given up", async () => {
    const h = new EngineHarness();
    await h.submit(twoCommands);
    await drain(h);
    let isOver = false;
    void h.engine.drained().then(() => {
      isOver = true;
    });
    await h.advance();
    assert.ok(!isOver);
    h.engine.giveUp("The lease is over.");
    await h.advance();
    assert.ok(isOver);
  });

  test("lets services work on until no other job is left", async () => {
    const h = new EngineHarness({ slots: 3 });
    const running = await h.submit(graph("s", [worker("w", { max_attempts: 2 })], [], { type: "service" }));
    const jobId = await h.submit(twoCommands);
    await drain(h);
    assert.deepEqual(h.stops, []);
    assert.deepEqual(h.engine.jobsLeft(), { jobs: 2, services: 1, attempts: 2, moved: 0 });
    await h.end("w", failed());
    await h.advance(60_000 - 1);
    assert.equal(h.started("w").ref.attempt, 2, "it is tried again here");
    await h.end("x");
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.deepEqual(h.stops, [h.started("w").ref]);
    await h.end("w", interrupted);
    assert.equal(h.job(running).owner, FREE_OWNER);
    assert.equal(h.starts.length, 3);
    await h.engine.drained();
  });

  test("ends services at the deadline, whatever else runs", async () => {
    const h = new EngineHarness();
    await h.submit(service);
    await h.submit(twoCommands);
    await drain(h, { inMs: 5 });
    await h.advance(5);
    assert.equal(h.stops.length, 2);
  });

  test("that is asked for again has the later deadline", async () => {
    const h = new EngineHarness();
    await h.submit(twoCommands);
    await drain(h, { inMs: 1_000 });
    await drain(h, { inMs: 5_000 });
    await h.advance(4_999);
    assert.deepEqual(h.stops, []);
    await h.advance(1);
    assert.equal(h.stops.length, 1);
  });

  test("does nothing at its deadline once the engine has stopped", async () => {
    const h = new EngineHarness();
    await h.submit(twoCommands);
    await drain(h, { inMs: 1_000 });
    h.engine.stop("The runtime is shutting down.");
    await h.advance(1_000);
    assert.deepEqual(h.stops, []);
  });

  test("takes along what was being taken over when it began", async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(twoCommands);
    const recovered = h.restartOnly();
    h.engine.drain({ deadlineMs: h.nowMs + 1_000, servicesLast: true, reason: REASON });
    await h.advance();
    await recovered;
    assert.equal(h.starts.length, 1, "x was not started again");
    assert.equal(h.job(jobId).owner, FREE_OWNER);
    assert.equal(h.job(jobId).epoch, 2);
  });

  test("takes nothing over that was not claimed when it began", async () => {
    const h = new EngineHarness();
    const one = submissionOf(twoCommands);
    await h.do(h.engine.submitAll(Array.from({ length: 700 }, () => one)));
    h.memory.mayClaim = ({ owner }) => owner !== FREE_OWNER;
    const recovered = h.restartOnly();
    h.engine.drain({ deadlineMs: h.nowMs + 1_000, servicesLast: true, reason: REASON });
    await h.advance();
    await recovered;
    const counts = Map.groupBy(h.memory.jobs.values(), ({ owner }) => owner);
    assert.deepEqual([counts.get(FREE_OWNER)?.length, counts.get("owner-1")?.length], [250, 450]);
  });

  test("closes the services of a job that goes", async () => {
    const h = new EngineHarness();
    const declared = [{ name: "api", port: 8080, scope: "job" }];
    await h.submit(graph("s", [sensor("door")], [], { type: "service", services: declared }));
    await drain(h, { servicesLast: false });
    assert.deepEqual(h.told, ["job opened", "job closed"]);
  });

  test("of many jobs writes them in portions", async () => {
    const h = new EngineHarness();
    const held = { ...submissionOf(graph("q", [sensor("door")], [], { type: "service" })) };
    await h.do(h.engine.submitAll(Array.from({ length: 1_200 }, () => held)));
    let largest = 0;
    const apply = h.memory.apply.bind(h.memory);
    h.memory.apply = (batch) => {
      largest = Math.max(largest, batch.length);
      return apply(batch);
    };
    await drain(h, { servicesLast: false });
    assert.equal(largest, 500);
    assert.equal(h.engine.jobsLeft()?.moved, 1_200);
  });
});
