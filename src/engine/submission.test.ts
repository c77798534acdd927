// Jobs that are submitted together: one commit, all or none, and at rest in it if they can be.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { EngineHarness, submissionOf } from "../../test/support/engine-harness.ts";
import { aggregator, executor, graph, router } from "../../test/support/graphs.ts";
import { MemoryJournal } from "../../test/support/memory-journal.ts";
import { EngineUnavailable, JobUnwritable } from "./batch.ts";
import type { JobChanges } from "./journal.ts";
import { limits } from "./limits.ts";
import type { Submission, SubmittedJob } from "./submission.ts";

class CountingJournal extends MemoryJournal {
  /** How many jobs each commit had. */
  readonly commits: number[] = [];

  override commit(batch: readonly JobChanges[]) {
    this.commits.push(batch.length);
    return super.commit(batch);
  }
}

/** Keeps every commit waiting until it is told. */
class SlowJournal extends MemoryJournal {
  /** Messages that the jobs of each commit have received. */
  readonly received: number[] = [];
  goOn = () => {};

  override async commit(batch: readonly JobChanges[]) {
    const lines = batch.flatMap(({ eventLines }) => eventLines);
    this.received.push(lines.filter((line) => line.includes('"agent_message_received"')).length);
    await new Promise<void>((resolve) => {
      this.goOn = resolve;
    });
    return super.commit(batch);
  }
}

/** Of so many messages. */
const counting = (messages: number) =>
  submissionOf(
    graph("count", [router("in"), aggregator("out")], [["in", "out"]], {
      initial_inputs: { in: Array.from({ length: messages / 2 }, (_, n) => ({ n })) },
    }),
  );

/** Submits jobs together, and asserts that all are accepted. */
async function accepted(h: EngineHarness, submissions: readonly Submission[]): Promise<SubmittedJob[]> {
  const answers = await h.do(h.engine.submitAll(submissions));
  return answers.map((one) => ("jobId" in one ? one : assert.fail(one)));
}

test("jobs that are submitted together end in the commit that accepts them, though one turn is not enough", async () => {
  const memory = new CountingJournal();
  const h = new EngineHarness({ memory });
  const submissions = Array.from({ length: 100 }, () => counting(60));
  assert.ok(submissions.length * 60 > limits.batchOperationsMax);
  const submitted = await accepted(h, submissions);
  assert.deepEqual(memory.commits, [100]);
  for (const { jobId, runId, ended } of submitted) {
    assert.equal(ended?.progress.status, "completed");
    assert.equal(ended?.insert.runId, runId);
    assert.deepEqual(h.job(jobId).progress, ended?.progress, "as it was written");
  }
});

test("the agents of a large graph are made in turns of their own, and the job is accepted after them", async () => {
  const h = new EngineHarness();
  const large = submissionOf(
    graph(
      "large",
      Array.from({ length: 5_000 }, (_, n) => router(`n${n}`)),
    ),
  );
  const taken = h.engine.submitAll([counting(2), large]);
  // The engine's own turns come when the harness is told to go on.
  await setImmediate();
  assert.equal(h.engine.openJobs, 0, "all or none");
  const [small, submitted] = await h.do(taken);
  for (const answer of [small, submitted]) assert.ok(answer !== undefined && "jobId" in answer);

  const late = h.engine.submit(large);
  h.engine.stop("It shuts down.");
  await assert.rejects(h.do(late), EngineUnavailable);
  assert.equal(h.engine.openJobs, 0);
});

test("a job whose work goes on is written with the others, and is not reported as ended", async () => {
  const memory = new CountingJournal();
  const h = new EngineHarness({ memory });
  const waits = submissionOf(graph("wait", [executor("work", ["true"])]));
  const [first, second] = await accepted(h, [counting(2), waits]);
  assert.equal(memory.commits[0], 2);
  assert.equal(first?.ended?.progress.status, "completed");
  assert.equal(second?.ended, null);
  assert.equal(h.engine.holds(first!.jobId), false);
  assert.equal(h.engine.holds(second!.jobId), true);
});

test("what others have to do does not hold up jobs that are submitted together for ever", async () => {
  const memory = new CountingJournal();
  const h = new EngineHarness({ memory });
  const [busy, quick] = await accepted(h, [counting(100_000), counting(2)]);
  assert.equal(memory.commits[0], 2);
  assert.ok(memory.commits.length > 1, "the long one took more commits");
  assert.equal(busy?.ended, null);
  assert.equal(quick?.ended?.progress.status, "completed");
});

test("what a job does while a batch is under way is one batch more, however long that takes", async () => {
  const memory = new SlowJournal();
  const h = new EngineHarness({ memory });
  const submitted = h.engine.submit(counting(40_000));
  await h.advance();
  memory.goOn();
  await h.do(submitted);
  const most = limits.batchOperationsMax + limits.stepsPerTurn;
  assert.equal(memory.received.length, 2);
  for (const received of memory.received) assert.ok(received <= most, `${received} messages`);
});

describe("callers that were answered together", () => {
  /** Two callers are answered by a commit of 3 ms, and meanwhile another one came. */
  async function answered(callers = 2) {
    const memory = new SlowJournal();
    const h = new EngineHarness({ memory });
    const call = () => h.engine.submit(counting(2));
    const first = Array.from({ length: callers }, call);
    await h.advance();
    const other = call();
    await h.advance(3);
    memory.goOn();
    await h.do(Promise.all(first));
    return { h, memory, call, other };
  }

  test("share the next commit with who came meanwhile", async () => {
    const { h, memory, call } = await answered();
    void call();
    await h.advance(1);
    assert.deepEqual(memory.received, [4]);
    void call();
    await h.advance();
    assert.deepEqual(memory.received, [4, 6]);
  });

  test("are waited for no longer than their commit took", async () => {
    const { h, memory } = await answered();
    await h.advance(2);
    assert.deepEqual(memory.received, [4]);
    await h.advance(1);
    assert.deepEqual(memory.received, [4, 2]);
  });

  test("are waited for longer while they come in", async () => {
    const { h, memory, call } = await answered();
    h.in(2, call);
    h.in(3, call);
    await h.advance(3);
    assert.deepEqual(memory.received, [4, 6]);
  });

  test("are waited for no longer than 4 ms more", async () => {
    const { h, memory, call } = await answered(4);
    h.in(2, call);
    h.in(3, () => {
      void call();
      h.nowMs += limits.batchAgeMsMax;
    });
    h.in(3 + limits.batchAgeMsMax, call);
    await h.advance(3 + limits.batchAgeMsMax);
    assert.deepEqual(memory.received, [8, 6]);
  });

  test("and do not come again are forgotten with the next commit", async () => {
    const { h, memory, call, other } = await answered();
    await h.advance(3);
    memory.goOn();
    await h.do(other);
    void call();
    await h.advance();
    assert.deepEqual(memory.received, [4, 2, 2]);
  });

  test("do not hold up who waits for all that changed until now", async () => {
    const { h, memory } = await answered();
    void h.engine.settled();
    await h.advance();
    assert.deepEqual(memory.received, [4, 2]);
  });
});

test("nothing is accepted of jobs that are submitted together when the store refuses", async () => {
  const h = new EngineHarness();
  h.journalFaults.push("unavailable");
  const answer = h.engine.submitAll([counting(2), counting(2), counting(2)]);
  await assert.rejects(
    h.do(answer),
    (error: unknown) => error instanceof EngineUnavailable && error.mayRetry,
  );
  await h.advance(10_000);
  assert.equal(h.memory.jobs.size, 0);
  assert.equal(h.engine.openJobs, 0);
});

test("a job that the store will never take is refused alone", async () => {
  const h = new EngineHarness();
  h.unwritable.add("bad");
  const bad = { ...counting(2), identity: { jobId: "bad", runId: "run_bad", definitionId: "bad" } };
  const [first, refused, last] = await h.do(h.engine.submitAll([counting(2), bad, counting(2)]));
  assert.ok(refused instanceof JobUnwritable);
  for (const one of [first, last]) assert.ok(one !== undefined && "jobId" in one && one.ended !== null);
  assert.equal(h.memory.jobs.size, 2);
});
