import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../app/clock.ts";
import { pending, running } from "./operation-change.ts";
import { OperationProgress } from "./progress.ts";
import type { OperationWrites } from "./records.ts";

test("progress goes on being reported when the clock is set back", async () => {
  let nowMs = 10_000_000;
  const waits: { readonly delayMs: number; readonly run: () => void }[] = [];
  const clock = {
    ...systemClock,
    nowMs: () => nowMs,
    steadyMs: () => 10_000_000,
    after: (delayMs: number, run: () => void) => {
      waits.push({ delayMs, run });
      return () => {};
    },
  };
  const operations: OperationWrites = {
    open: async () => null,
    insert: async () => {},
    save: async () => {},
  };
  const asked = {
    operationId: "op_1",
    kind: "blueprint_addition",
    target: "digest",
    request: {},
    steps: [{ name: "models", label: "Installing its models" }],
    nowMs,
  } as const;
  const reported = Promise.withResolvers<void>();
  const progress = new OperationProgress(running(pending(asked).operation, nowMs).operation, {
    write: (work) => work({ operations }),
    published: () => reported.resolve(),
    clock,
    signal: new AbortController().signal,
  });
  progress.progress(0.1, "a tenth");
  waits.shift()?.run();
  await reported.promise;
  nowMs -= 3_600_000;
  progress.progress(0.2, "two tenths");
  assert.deepEqual(
    waits.map(({ delayMs }) => delayMs),
    [250],
  );
  await progress.close();
});
