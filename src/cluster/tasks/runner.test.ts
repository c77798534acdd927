import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskListener, TaskRef } from "../../engine/task-port.ts";
import type { TaskHost } from "./host.ts";
import { LocalReports } from "./runner.ts";

const ref: TaskRef = { jobId: "j", taskSeq: 1, attempt: 1 };

test("an attempt waits for room where it reports to: at its own node's engine, or at another node", async () => {
  const room = Promise.resolve();
  const full = { backpressure: () => room, has: ({ jobId }: TaskRef) => jobId === "theirs" };
  const free = { ...full, backpressure: () => null };
  const own = { ...ref, jobId: "own" };
  const theirs = { ...ref, jobId: "theirs" };
  const reports = (engine: object, host: object) =>
    new LocalReports(() => engine as TaskListener, host as TaskHost);
  assert.deepEqual(
    [own, theirs].map((one) => reports(full, free).backpressure(one)),
    [room, null],
  );
  assert.deepEqual(
    [own, theirs].map((one) => reports(free, full).backpressure(one)),
    [null, room],
  );
});
