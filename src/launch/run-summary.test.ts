// The summary of runs that the journal may never have had.

import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../../test/support/gateway-samples.ts";
import { newTally } from "../engine/tally.ts";
import { toLog } from "../runs/history/logs.ts";
import { summaryOf } from "../runs/history/summary.ts";
import { toTimeline } from "../runs/history/timeline.ts";
import type { RunRecord } from "./records.ts";
import { historyOfUnlaunched, summarizedRun } from "./run-ends.ts";

const waiting: RunRecord = {
  ...run(1, "job_1"),
  status: "pending",
  desiredState: "running",
  launched: false,
  label: null,
  startedAtMs: null,
  finishedAtMs: null,
  updatedAtMs: 2_000,
  resultJson: null,
  failureJson: null,
  tallyJson: null,
  progress: {
    agentsDone: 0,
    agentEnds: null,
    messages: 0,
    tasksRunning: 0,
    eventCount: 0,
    humanPending: 0,
    humanPrompt: null,
  },
  openLetters: 0,
};

const FAILURE = JSON.stringify({ code: "manifest.invalid", desc: "it is wrong", details: {} });

const countsOf = (record: RunRecord) =>
  summaryOf({ job: summarizedRun(record), failure: null, nowMs: 9_000, artifactIds: [] }).counts;

test("a run that waits has an empty summary", () => {
  const summary = summaryOf({ job: summarizedRun(waiting), failure: null, nowMs: 9_000, artifactIds: [] });
  assert.deepEqual(
    [summary.status, summary.duration_ms, summary.trace_id],
    ["pending", null, waiting.traceId],
  );
  assert.deepEqual(new Set(Object.values(summary.counts)), new Set([0]));
});

test("the one event of a run that ended before its launch counts in every view that shows it", () => {
  for (const failureJson of [FAILURE, null]) {
    const status = failureJson === null ? "cancelled" : "failed";
    const over: RunRecord = {
      ...waiting,
      status,
      finishedAtMs: 3_000,
      failureJson,
      progress: { ...waiting.progress, eventCount: 1 },
    };
    const [line = ""] = historyOfUnlaunched(over)?.lines ?? [];
    assert.deepEqual(countsOf(over), {
      events: 1,
      logs: toLog(over, line) === null ? 0 : 1,
      errors: failureJson === null ? 0 : 1,
      warnings: 0,
      timeline_records: toTimeline(over, 1, line) === null ? 0 : 1,
      artifacts: 0,
    });
  }
});

test("a run that the journal has is counted by it, and lasts to its end", () => {
  const record: RunRecord = {
    ...waiting,
    status: "completed",
    launched: true,
    startedAtMs: 2_500,
    finishedAtMs: 4_000,
    updatedAtMs: 5_000,
    tallyJson: JSON.stringify({ ...newTally(), logs: 7 }),
    progress: { ...waiting.progress, eventCount: 30 },
  };
  const { logs, events } = countsOf(record);
  assert.deepEqual([logs, events], [7, 30]);
  const summary = summaryOf({ job: summarizedRun(record), failure: null, artifactIds: [] });
  assert.equal(summary.duration_ms, 1_500);
});
