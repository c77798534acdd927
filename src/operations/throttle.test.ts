import assert from "node:assert/strict";
import { test } from "node:test";
import { Throttle } from "./throttle.ts";

/** A throttle that writes every 100 ms, on a clock that the test moves. */
function start(write: (value: string) => Promise<void> = async () => {}) {
  let nowMs = 5_000;
  let timer: { readonly dueMs: number; readonly run: () => void } | null = null;
  const written: string[] = [];
  const throttle = new Throttle<string>({
    clock: {
      steadyMs: () => nowMs,
      after: (delayMs, run) => {
        timer = { dueMs: nowMs + delayMs, run };
        return () => {
          timer = null;
        };
      },
    },
    everyMs: () => 100,
    write: (value) => {
      written.push(value);
      return write(value);
    },
  });
  /** What the timer does as time goes by. */
  const pass = async (ms: number) => {
    nowMs += ms;
    if (timer !== null && timer.dueMs <= nowMs) timer.run();
    await Promise.resolve();
  };
  return { throttle, written, pass };
}

test("of what comes fast the first and the latest are written, with the time between that there has to be", async () => {
  const { throttle, written, pass } = start();
  throttle.report("a");
  await pass(0);
  assert.deepEqual(written, ["a"]);
  for (const value of ["b", "c", "d"]) throttle.report(value);
  await pass(99);
  assert.deepEqual(written, ["a"]);
  await pass(1);
  assert.deepEqual(written, ["a", "d"]);
  await pass(1_000);
  throttle.report("e");
  await pass(0);
  assert.deepEqual(written, ["a", "d", "e"]);
});

test("what was dropped is not written; what comes later is", async () => {
  const { throttle, written, pass } = start();
  throttle.report("a");
  throttle.drop();
  await pass(1_000);
  assert.deepEqual(written, []);
  throttle.report("b");
  await pass(0);
  assert.deepEqual(written, ["b"]);
});

test("closing waits for the write that is under way, and begins none", async () => {
  const gate = Promise.withResolvers<void>();
  const { throttle, written, pass } = start(() => gate.promise);
  throttle.report("a");
  await pass(0);
  throttle.report("b");
  let isClosed = false;
  const closed = throttle.close().then(() => {
    isClosed = true;
  });
  await pass(1_000);
  assert.equal(isClosed, false);
  gate.resolve();
  await closed;
  assert.deepEqual(written, ["a"]);
});
