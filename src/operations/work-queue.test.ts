// The queue itself; that its users lose nothing over restarts is in their own tests.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Gate, HandClock } from "../../test/support/core.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import { OperationInterrupted } from "./failures.ts";
import { WorkQueue, type WorkQueueParts } from "./work-queue.ts";

function start(work: WorkQueueParts["work"], parts: Partial<WorkQueueParts> = {}) {
  const clock = new HandClock();
  const logged: string[] = [];
  const begun: string[] = [];
  const queue = new WorkQueue({
    what: "the test",
    keyName: "key",
    atOnceMax: 2,
    work: (key, ...more) => {
      begun.push(key);
      return work(key, ...more);
    },
    clock,
    log: {
      warn: (_, message) => void logged.push(message),
      error: ({ key }) => void logged.push(String(key)),
    },
    ...parts,
  });
  return {
    queue,
    clock,
    logged,
    begun,
    async idle(): Promise<void> {
      await settled();
      assert.equal(queue.size, 0);
    },
    async untilRetry(): Promise<void> {
      await settled();
      assert.equal(clock.timers, 1);
    },
  };
}

/** Work here waits for nothing but promises: before the next turn of the event loop, all that can happen has happened. */
const settled = () => nextTurn();

test("keys are worked on in their order, no more at once than may be, each once", async () => {
  const gates = new Map(["a", "b", "c"].map((key) => [key, new Gate()]));
  const { queue, begun, idle } = start(async (key) => gates.get(key)?.pass());
  for (const key of ["a", "b", "c", "c", "b"]) queue.add(key);
  assert.deepEqual(begun, ["a", "b"]);
  assert.equal(queue.size, 3);
  gates.get("a")?.open();
  await gates.get("c")?.reached;
  for (const gate of gates.values()) gate.open();
  await idle();
  assert.deepEqual(begun, ["a", "b", "c", "b"], "what was added while it was under way is worked on again");
});

test("a key is not worked on twice at once, though there is room", async () => {
  const gate = new Gate();
  const { queue, begun, idle } = start(() => gate.pass());
  queue.add("a");
  queue.add("a");
  assert.deepEqual([begun, queue.size], [["a"], 1]);
  gate.open();
  await idle();
  assert.deepEqual(begun, ["a", "a"]);
});

test("a key that fails is tried again later, and alone; the log tells of it", async () => {
  const failing = new Set(["a"]);
  const { queue, clock, logged, begun, idle, untilRetry } = start(async (key) => {
    if (failing.has(key)) throw new TypeError("a mistake");
  });
  queue.add("a");
  await untilRetry();
  queue.add("b");
  await settled();
  assert.equal(queue.size, 1);
  failing.clear();
  clock.fire();
  await idle();
  assert.deepEqual(begun, ["a", "b", "a"]);
  assert.deepEqual(logged, ["a"]);
});

test("work is told how many unexpected errors it has met in a row; an interruption is none", async () => {
  const told: number[] = [];
  const { queue, clock, idle, untilRetry } = start(async (_key, _signal, errors) => {
    told.push(errors);
    if (told.length < 3) throw new TypeError("a mistake");
    if (told.length === 3) throw new OperationInterrupted();
  });
  queue.add("a");
  for (const tries of [1, 2, 3]) {
    await untilRetry();
    assert.equal(told.length, tries);
    clock.fire();
  }
  await idle();
  queue.add("a");
  await idle();
  assert.deepEqual(told, [0, 1, 2, 2, 0]);
});

test("a key that waits for its retry is not worked on before, however often it is added", async () => {
  const { queue, clock, begun, idle, untilRetry } = start(async () => {
    if (begun.length === 1) throw new TypeError("a mistake");
  });
  queue.add("a");
  await untilRetry();
  queue.add("a");
  assert.deepEqual([begun, queue.size], [["a"], 1]);
  clock.fire();
  await idle();
  assert.deepEqual(begun, ["a", "a"]);
});

test("while the store takes nothing all keys wait, and then keep their order", async () => {
  const store = { isBroken: true };
  const { queue, clock, logged, begun, idle, untilRetry } = start(async () => {
    if (store.isBroken) throw new JournalUnavailable("the test has broken the store");
  });
  queue.add("a");
  await untilRetry();
  queue.add("b");
  assert.deepEqual(begun, ["a"]);
  store.isBroken = false;
  clock.fire();
  await idle();
  assert.deepEqual(begun, ["a", "a", "b"]);
  assert.deepEqual(logged, []);
});

test("work that was interrupted is done again, and nobody is told", async () => {
  const errors = [new OperationInterrupted("a command was ended")];
  const { queue, clock, logged, idle, untilRetry } = start(async () => {
    const error = errors.shift();
    if (error !== undefined) throw error;
  });
  queue.add("a");
  await untilRetry();
  clock.fire();
  await idle();
  assert.deepEqual(logged, []);
});

test("keys beyond the queue's bound are read from the records, also when reading fails once", async () => {
  const open = new Set(Array.from({ length: 5_000 }, (_, i) => `key ${i}`));
  let reads = 0;
  const gate = new Gate();
  const { queue, clock, logged, idle, untilRetry } = start(
    async (key) => {
      await gate.pass();
      open.delete(key);
    },
    {
      async *recorded() {
        if (++reads === 1) throw new Error("the test has broken the read");
        yield [...open].slice(0, 1_500);
        yield [...open].slice(1_500);
      },
    },
  );
  for (const key of open) queue.add(key);
  assert.ok(queue.size <= 2_002, String(queue.size));
  gate.open();
  await untilRetry();
  clock.fire();
  await idle();
  assert.equal(open.size, 0);
  assert.deepEqual(logged, ["more work for the test could not be read yet"]);
});

test("keys that fail and find no room any more are read from the records", async () => {
  // Two are under way and the others fill the queue; when all have failed there is no room for two of them.
  const open = new Set(Array.from({ length: 2_002 }, (_, i) => `key ${i}`));
  let isBroken = true;
  const { queue, clock, idle, untilRetry } = start(
    async (key) => {
      if (isBroken) throw new OperationInterrupted();
      open.delete(key);
    },
    {
      async *recorded() {
        yield [...open];
      },
    },
  );
  for (const key of open) queue.add(key);
  await untilRetry();
  assert.equal(queue.size, 2_000);
  isBroken = false;
  clock.fire();
  await idle();
  assert.equal(open.size, 0);
});

test("a key that is dropped is aborted, and neither tried again nor begun", async () => {
  const { queue, clock, begun, logged, idle } = start(async (_, signal) => {
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => aborted.reject(signal.reason));
    await aborted.promise;
  });
  for (const key of ["a", "b", "c"]) queue.add(key);
  for (const key of ["c", "b", "a"]) queue.drop(key);
  await idle();
  assert.deepEqual([begun, logged, clock.timers], [["a", "b"], [], 0]);
});

test("a key that is dropped while it waits for the retry is not tried again", async () => {
  const { queue, clock, begun, untilRetry } = start(() => Promise.reject(new Error("a mistake")));
  queue.add("a");
  await untilRetry();
  queue.drop("a");
  clock.fire();
  assert.deepEqual([begun, queue.size], [["a"], 0]);
});

test("stopping aborts what is under way, waits for its end, and takes the retry back", async () => {
  const gate = new Gate();
  const { queue, clock, begun, untilRetry } = start(async (key, signal) => {
    if (key === "bad") throw new Error("a mistake");
    await gate.pass();
    assert.equal(signal.aborted, true);
  });
  queue.add("bad");
  await untilRetry();
  queue.add("a");
  const stopped = queue.stop();
  queue.add("late");
  gate.open();
  await stopped;
  assert.deepEqual([begun, clock.timers, queue.size], [["bad", "a"], 0, 0]);
});
