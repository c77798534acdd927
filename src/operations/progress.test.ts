import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../app/clock.ts";
import { pending, running } from "./operation-change.ts";
import { OperationProgress } from "./progress.ts";
import type { OperationWrites } from "./records.ts";

/** An operation that begins at the clock's 10,000 s, and the waits before its reports. */
function start() {
  const time = { nowMs: 10_000_000, steadyMs: 10_000_000 };
  const waits: { readonly delayMs: number; readonly run: () => void }[] = [];
  const clock = {
    ...systemClock,
    nowMs: () => time.nowMs,
    steadyMs: () => time.steadyMs,
    after: (delayMs: number, run: () => void) => {
      waits.push({ delayMs, run });
      return () => {};
    },
  };
  const operations: OperationWrites = {
    open: async () => null,
    insert: async () => {},
    save: async () => true,
  };
  const asked = {
    operationId: "op_1",
    kind: "blueprint_addition",
    target: "digest",
    request: {},
    steps: [{ name: "models", label: "Installing its models" }],
    owner: null,
    nowMs: time.nowMs,
  } as const;
  let reported = Promise.withResolvers<void>();
  const progress = new OperationProgress(running(pending(asked).operation, time.nowMs).operation, {
    write: (work) => work({ operations }),
    published: () => reported.resolve(),
    clock,
    signal: new AbortController().signal,
  });
  return {
    time,
    progress,
    /** Reports once. @returns how long the report waited */
    async report(fraction: number): Promise<number> {
      reported = Promise.withResolvers();
      progress.progress(fraction, `${fraction}`);
      const wait = waits.pop()!;
      wait.run();
      await reported.promise;
      return wait.delayMs;
    },
  };
}

test("progress goes on being reported when the clock is set back", async () => {
  const { time, progress, report } = start();
  await report(0.1);
  time.nowMs -= 3_600_000;
  assert.equal(await report(0.2), 250);
  await progress.close();
});

test("the longer an operation takes, the less often its progress is reported", async () => {
  const { time, progress, report } = start();
  await report(0.1);
  assert.equal(await report(0.2), 250, "a new one, four times a second");
  time.steadyMs += 3_600_000;
  assert.equal(await report(0.3), 0, "nothing was reported for long");
  assert.equal(await report(0.4), 9_000, "after an hour, every nine seconds");
  await progress.close();
});
