// Recovery at exact moments: what is claimed, read and written while other jobs go on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness, submissionOf } from "../../test/support/engine-harness.ts";
import { graph, sensor } from "../../test/support/graphs.ts";
import { type JobImage, type Journal, JournalUnavailable } from "./journal.ts";
import type { EnginePorts } from "./ports.ts";
import { recoverJobs } from "./recovery.ts";

const COUNT = 1_200;
const quiet = () => new Promise((resolve) => setImmediate(resolve));

/** Open jobs of another owner, whose images are read when the test allows it. */
async function openJobs() {
  const h = new EngineHarness();
  const one = submissionOf(graph("q", [sensor("door")], [], { type: "service" }));
  await h.do(h.engine.submitAll(Array.from({ length: COUNT }, () => one)));
  const reads: { readonly jobId: string; readonly answer: PromiseWithResolvers<JobImage | null> }[] = [];
  const claims: Promise<void>[] = [];
  const journal: Pick<Journal, "claim" | "load"> = {
    async claim(owner, limit) {
      await claims.shift();
      return h.memory.claim(owner, limit);
    },
    load(jobId) {
      const answer = Promise.withResolvers<JobImage | null>();
      reads.push({ jobId, answer });
      return answer.promise;
    },
  };
  const goneOn: string[] = [];
  /** What the recovery waits for until everything is on disk. */
  const writes: PromiseWithResolvers<void>[] = [];
  const claimed: string[] = [];
  const recover = () =>
    recoverJobs({ journal } as EnginePorts, {
      owner: "me",
      claimed,
      canGoOn: () => true,
      canClaim: () => true,
      goOn: ({ image }) => void goneOn.push(image.jobId),
      turn: async () => {},
      settled() {
        const write = Promise.withResolvers<void>();
        writes.push(write);
        return write.promise;
      },
    });
  const readFirst = async () => {
    const { jobId, answer } = reads.shift()!;
    answer.resolve(await h.memory.load(jobId));
    await quiet();
  };
  return { memory: h.memory, reads, claims, writes, goneOn, claimed, recover, readFirst };
}

test("while jobs go on, at most a hundred are read, and the next ones claimed", async () => {
  const { reads, writes, goneOn, claimed, recover, readFirst } = await openJobs();
  const recovery = recover();
  await quiet();
  let reading = 0;
  while (goneOn.length < 400) {
    reading = Math.max(reading, reads.length);
    await readFirst();
    assert.ok(reads.length > 0 && claimed.length > 200, "something is under way");
  }
  assert.ok(reading > 50 && reading <= 100, `${reading} at once`);
  assert.equal(writes.length, 0);
  while (reads.length > 0) {
    await readFirst();
    for (const { resolve } of writes) resolve();
  }
  await recovery;
  assert.equal(new Set(goneOn).size, COUNT);
});

test("jobs go on while those before them are written, and not for longer", async () => {
  const { reads, writes, goneOn, recover, readFirst } = await openJobs();
  const recovery = recover();
  await quiet();
  for (let n = 0; n < COUNT; n++) if (reads.length > 0) await readFirst();
  assert.deepEqual([goneOn.length, writes.length], [1_000, 1]);
  writes[0]!.resolve();
  await quiet();
  while (reads.length > 0) await readFirst();
  assert.deepEqual([goneOn.length, writes.length], [COUNT, 3]);
  for (const { resolve } of writes) resolve();
  await recovery;
});

test("what is claimed while another job cannot be read goes on with the next recovery", async () => {
  const { memory, reads, claims, writes, goneOn, claimed, recover, readFirst } = await openJobs();
  const second = Promise.withResolvers<void>();
  claims.push(Promise.resolve(), second.promise);
  const recovery = recover();
  await quiet();
  reads.shift()!.answer.reject(new JournalUnavailable("The database does not answer."));
  await quiet();
  second.resolve();
  await assert.rejects(recovery, { name: "JournalUnavailable" });
  const owned = [...memory.jobs].filter(([, { owner }]) => owner === "me").map(([jobId]) => jobId);
  assert.deepEqual([owned.length, claimed.toSorted()], [500, owned.toSorted()]);
  reads.splice(0);
  const again = recover();
  await quiet();
  while (reads.length > 0) {
    await readFirst();
    for (const { resolve } of writes) resolve();
  }
  await again;
  assert.equal(new Set(goneOn).size, COUNT);
});
