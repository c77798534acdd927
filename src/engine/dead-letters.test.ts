// Dead letters that are sent again: what the new message is, and which letters stay closed or open.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, succeeded } from "../../test/support/engine-harness.ts";
import { executor, graph, router } from "../../test/support/graphs.ts";
import type { DeadLetterRecord } from "./journal.ts";

/** A worker that gives up its first message, and one beside it that holds the job open. */
async function withDeadLetter(ttlMs: number | null = null) {
  const h = new EngineHarness({ slots: 4 });
  const nodes = [executor("worker", ["true"]), executor("holder", ["true"])];
  const more = { entrypoints: ["holder"], policies: { failure_policy: "continue" } };
  const jobId = await h.submit(graph("g", nodes, [], more));
  await h.do(
    h.engine.deliver(jobId, {
      agentId: "worker",
      type: "order",
      body: { n: 7 },
      correlationId: "c-1",
      ttlMs,
    }),
  );
  await h.end("worker", failed());
  return { h, jobId, letter: lettersOf(h, jobId)[0]! };
}

const lettersOf = (h: EngineHarness, jobId: string) => h.job(jobId).deadLetters;
const retry = (h: EngineHarness, jobId: string, ...letters: DeadLetterRecord[]) =>
  h.do(h.engine.retryDeadLetters(jobId, letters));
const agent = (h: EngineHarness, jobId: string, index: number) => h.job(jobId).agents.get(index);

describe("a dead letter that is retried", () => {
  test("is a new message like the old one, and its agent gets another chance", async () => {
    const { h, jobId, letter } = await withDeadLetter(60_000);
    assert.equal(agent(h, jobId, 0)?.status, "failed");
    await h.advance(120_000);
    assert.deepEqual(await retry(h, jobId, letter), { kind: "done", retried: [letter.deadLetterId] });
    const { envelope } = h.started("worker");
    assert.equal(envelope.type, "order");
    assert.deepEqual(envelope.body, { n: 7 });
    assert.equal(envelope.correlation_id, "c-1");
    assert.equal(envelope.causation_id, letter.message.message_id);
    assert.notEqual(envelope.message_id, letter.message.message_id);
    // Its time to live begins anew.
    assert.equal(envelope.ttl_ms, 60_000);
    assert.equal(envelope.timestamp, new Date(h.nowMs).toISOString());
    assert.equal(agent(h, jobId, 0)?.status, "running");
    const [event] = h.events(jobId, "message_retried");
    assert.deepEqual(event?.payload, {
      dead_letter_id: letter.deadLetterId,
      message_id: envelope.message_id,
    });
    assert.ok(h.job(jobId).retriedLetters.has(letter.deadLetterId));
    await h.end("worker", succeeded());
    assert.equal(agent(h, jobId, 0)?.lastError, null);
    await h.end("holder");
    assert.equal(h.status(jobId), "completed");
    assert.equal(h.processed(jobId).worker, 2);
  });

  test("goes with another body when somebody has changed it, and says who", async () => {
    const { h, jobId, letter } = await withDeadLetter();
    const message = { ...letter.message, body: { n: 8 } };
    await h.do(h.engine.retryDeadLetters(jobId, [{ ...letter, message, changedBy: "token" }]));
    assert.deepEqual(h.started("worker").envelope.body, { n: 8 });
    const [event] = h.events(jobId, "message_retried");
    assert.equal(event?.payload.changed_by, "token");
    assert.deepEqual(lettersOf(h, jobId)[0]?.message.body, { n: 7 });
  });

  test("fails again as a letter of its own", async () => {
    const { h, jobId, letter } = await withDeadLetter();
    await retry(h, jobId, letter);
    await h.end("worker", failed());
    const [, second, ...more] = lettersOf(h, jobId);
    assert.equal(more.length, 0);
    assert.equal(second?.message.causation_id, letter.message.message_id);
    assert.equal(agent(h, jobId, 0)?.status, "failed");
    assert.deepEqual(await retry(h, jobId, second!), { kind: "done", retried: [second!.deadLetterId] });
  });

  test("is sent once, however many ask for it and how often", async () => {
    const { h, jobId, letter } = await withDeadLetter();
    const answers = await h.do(
      Promise.all([
        h.engine.retryDeadLetters(jobId, [letter, letter]),
        h.engine.retryDeadLetters(jobId, [letter]),
      ]),
    );
    assert.deepEqual(answers, [
      { kind: "done", retried: [letter.deadLetterId] },
      { kind: "done", retried: [] },
    ]);
    await h.end("worker");
    assert.deepEqual(await retry(h, jobId, letter), { kind: "done", retried: [] });
    assert.equal(h.events(jobId, "message_retried").length, 1);
    assert.equal(h.processed(jobId).worker, 2);
  });

  test("waits in the mailbox while the job is paused, also over a restart", async () => {
    const { h, jobId, letter } = await withDeadLetter();
    await h.do(h.engine.pause(jobId));
    h.starts = [];
    await retry(h, jobId, letter);
    assert.deepEqual(h.starts, []);
    await h.restart();
    assert.equal(h.job(jobId).messages.length, 1);
    await h.do(h.engine.resume(jobId));
    assert.deepEqual(h.started("worker").envelope.body, { n: 7 });
  });

  test("keeps the job open like any message, and keeps who sent it", async () => {
    const h = new EngineHarness();
    const nodes = [router("in"), executor("worker", ["true"]), executor("holder", ["true"])];
    const edges = [["in", "worker"] as const, ["in", "holder"] as const];
    const jobId = await h.submit(graph("g", nodes, edges, { policies: { failure_policy: "continue" } }));
    await h.end("worker", failed());
    await retry(h, jobId, lettersOf(h, jobId)[0]!);
    await h.end("holder");
    assert.equal(h.status(jobId), "running");
    assert.equal(h.started("worker").envelope.from, "in");
    await h.end("worker");
    assert.equal(h.status(jobId), "completed");
  });
});

describe("a dead letter that stays open", () => {
  test("is one whose agent never existed", async () => {
    const { h, jobId, letter } = await withDeadLetter();
    const nobody = { ...letter, deadLetterId: "dl_nobody", agentId: "nobody" };
    const nowhere = { ...letter, deadLetterId: "dl_nowhere", agentId: null };
    assert.deepEqual(await retry(h, jobId, nobody, nowhere), { kind: "done", retried: [] });
    assert.equal(h.events(jobId, "message_retried").length, 0);
  });

  test("is one whose agent will never take a message again", async () => {
    const h = new EngineHarness();
    const nodes = [executor("worker", ["true"], { lifecycle: "long_lived" }), executor("holder", ["true"])];
    const jobId = await h.submit(graph("g", nodes, [], { entrypoints: ["holder"] }));
    await h.end("worker", succeeded());
    await h.deliver(jobId, "worker", 1);
    const [letter] = lettersOf(h, jobId);
    assert.equal(letter?.reason, "target_gone");
    assert.deepEqual(await retry(h, jobId, letter!), { kind: "done", retried: [] });
    assert.equal(lettersOf(h, jobId).length, 1);
  });

  test("is one of a job that is over", async () => {
    const { h, jobId, letter } = await withDeadLetter();
    await h.end("holder");
    assert.equal(h.status(jobId), "completed");
    assert.deepEqual(await retry(h, jobId, letter), { kind: "not_open" });
    assert.deepEqual(await retry(h, "g-nobody", letter), { kind: "not_open" });
  });
});
