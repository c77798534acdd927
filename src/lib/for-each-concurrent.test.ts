import assert from "node:assert/strict";
import { test } from "node:test";
import { forEachConcurrent } from "./async.ts";

/** A promise that the test settles. */
const gate = () => Promise.withResolvers<void>();

test("items are started in order, at most as many at once as allowed", async () => {
  const gates = [gate(), gate(), gate()];
  const started: number[] = [];
  const done = forEachConcurrent([0, 1, 2], 2, async (item) => {
    started.push(item);
    await gates[item]?.promise;
  });
  assert.deepEqual(started, [0, 1]);
  gates[1]?.resolve();
  await gates[1]?.promise;
  await Promise.resolve();
  assert.deepEqual(started, [0, 1, 2]);
  gates[0]?.resolve();
  gates[2]?.resolve();
  await done;
});

test("after a failure nothing new is started, and it is thrown when the others have ended", async () => {
  const slow = gate();
  const started: number[] = [];
  let isOver = false;
  const done = forEachConcurrent([0, 1, 2, 3], 2, async (item) => {
    started.push(item);
    if (item === 0) throw new Error("first");
    await slow.promise;
  }).finally(() => {
    isOver = true;
  });
  const outcome = assert.rejects(done, /first/);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isOver, false);
  slow.resolve();
  await outcome;
  assert.deepEqual(started, [0, 1]);
});

test("nothing to do is done at once", async () => {
  await forEachConcurrent([], 4, () => Promise.reject(new Error("there is no item")));
});
