// The summary of a run: its numbers are those of the views, it is small, and it stops changing when the run ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness, failed, succeeded } from "../../../test/support/engine-harness.ts";
import { executor, graph, router } from "../../../test/support/graphs.ts";
import type { Failure } from "../../engine/failure.ts";
import { newTally } from "../../engine/tally.ts";
import type { ArtifactRecord, TaskOutcome } from "../../engine/task-port.ts";
import { parseEvent } from "./line.ts";
import { toLog } from "./logs.ts";
import { historyFileIds, OUTPUT_LINKS_MAX, type SummarizedJob, summaryOf } from "./summary.ts";
import { toTimeline } from "./timeline.ts";

const file: ArtifactRecord = {
  artifactId: "art_1",
  agentId: "work",
  name: "report.html",
  kind: "output",
  title: null,
  primary: true,
  size: 1_234,
  sha256: "0".repeat(64),
  contentType: "text/html",
  createdAtMs: 0,
};

let filesLeft = 0;

/** Ends with a file left, and with what the operating system told of its command. */
function measured(outcome: TaskOutcome, usage: { cpuMs: number; rssBytesMax: number | null }): TaskOutcome {
  assert.ok(outcome.kind !== "interrupted" && outcome.command !== null);
  const artifacts = [{ ...file, artifactId: `art_${++filesLeft}` }];
  return { ...outcome, command: { ...outcome.command, usage }, artifacts };
}

/** A run as its row tells it, from the journal of an engine. */
function rowOf(h: EngineHarness, jobId: string): SummarizedJob & { failure: Failure | null } {
  const { insert, progress } = h.job(jobId);
  return {
    runId: insert.runId,
    status: progress.status,
    startedAtMs: progress.startedAtMs,
    updatedAtMs: progress.updatedAtMs,
    trace: insert.trace,
    eventCount: progress.eventSeq,
    tally: progress.tally,
    failure: progress.failureJson === null ? null : (JSON.parse(progress.failureJson) as Failure),
  };
}

/** A run with a bit of everything, which fails in the end. */
async function eventfulRun() {
  const h = new EngineHarness();
  const work = executor("work", ["true"], { max_attempts: 2, retry_backoff_ms: 10 });
  const jobId = await h.submit(
    graph("g", [router("in"), work], [["in", "work"]], { initial_inputs: { in: [1, 2] } }),
  );
  const say = (...events: readonly { type: string; payload: Record<string, unknown> }[]) =>
    h.engine.taskEvents(h.started("work").ref, events as never);
  say(
    { type: "log", payload: { level: "info", message: "a" } },
    { type: "log", payload: { level: "warning", message: "b" } },
    { type: "metric", payload: { name: "tokens", tokens: { input: 100, output: 20 } } },
    { type: "metric", payload: { name: "rows", value: 7 } },
  );
  await h.end("work", measured(failed(), { cpuMs: 250, rssBytesMax: 4_096 }));
  await h.advance(20);
  say({ type: "metric", payload: { name: "tokens", tokens: { input: 5 } } });
  await h.end("work", measured(succeeded(), { cpuMs: 1_000, rssBytesMax: 1_024 }));
  await h.end("work", measured(failed(), { cpuMs: 0, rssBytesMax: null }));
  await h.advance(20);
  await h.end("work", failed());
  return { h, jobId, row: rowOf(h, jobId) };
}

test("counts are those of the views: events, logs, warnings, errors, timeline, artifacts", async () => {
  const { h, jobId, row } = await eventfulRun();
  const { counts } = summaryOf({ job: row, failure: row.failure, artifactIds: [] });
  const { events } = h.job(jobId);
  const run = { runId: row.runId, traceId: row.trace.traceId, parentSpanId: null };
  const logs = events.map((line) => toLog(run, line)).filter((record) => record !== null);
  assert.deepEqual(counts, {
    events: events.length,
    logs: logs.length,
    errors: events.filter((line) => parseEvent(line).failure !== null).length,
    warnings: logs.filter((record) => record.level === "warn").length,
    timeline_records: events.filter((line, i) => toTimeline(run, i + 1, line) !== null).length,
    artifacts: 3,
  });
  assert.ok(counts.errors >= 4 && counts.warnings >= 4, "the run has something to count");
});

test("tells retries, what failed, what was used, and tokens; the same whenever it is asked for after the end", async () => {
  const { row } = await eventfulRun();
  const asked = (nowMs: number) =>
    summaryOf({ job: row, failure: row.failure, nowMs, artifactIds: [file.artifactId] });
  const { counts, artifact_links, ...rest } = asked(row.updatedAtMs + 1);
  assert.deepEqual(rest, {
    schema_version: "svc.observability_summary.v1",
    run_id: row.runId,
    status: "failed",
    duration_ms: row.updatedAtMs - (row.startedAtMs ?? 0),
    trace_id: row.trace.traceId,
    agents: { done: 1, failed: 1, cancelled: 0, skipped: 0, not_reached: 0 },
    warnings: [],
    retry_count: 2,
    failed_agent_id: "work",
    failed_step_id: "work",
    failure: row.failure,
    resource_peaks: { cpu_seconds: 1.25, max_rss_bytes: 4_096, disk_bytes: 3 * 1_234 },
    tokens: { input: 105, output: 20, total: 125 },
  });
  const ids = artifact_links.map(({ artifact_id }) => artifact_id);
  assert.deepEqual(ids, [...historyFileIds, "art_1"]);
  for (const { artifact_id, url } of artifact_links) {
    assert.equal(url, `/api/v1/runs/${row.runId}/artifacts/${artifact_id}`);
  }
  assert.equal(JSON.stringify(asked(row.updatedAtMs + 1e9)), JSON.stringify(asked(row.updatedAtMs)));
});

const open: SummarizedJob = {
  runId: "run_1",
  status: "running",
  startedAtMs: 1_000,
  updatedAtMs: 4_000,
  trace: { traceId: "1".repeat(32), parentSpanId: null },
  eventCount: 5,
  tally: newTally(),
};

test("an open run lasts to now, or without a clock to its last batch; one that never started has no duration", () => {
  const lasts = (job: Partial<SummarizedJob>, nowMs?: number) => {
    const source = { job: { ...open, ...job }, failure: null, artifactIds: [] };
    return summaryOf(nowMs === undefined ? source : { ...source, nowMs }).duration_ms;
  };
  assert.equal(lasts({}, 9_000), 8_000);
  assert.equal(lasts({}), 3_000);
  assert.equal(lasts({}, 500), 0, "a clock that was set back");
  assert.equal(lasts({ startedAtMs: null, status: "cancelled" }, 9_000), null);
});

test("a run whose commands had resources of their own says by what they were kept within them", () => {
  const of = (tally: Partial<SummarizedJob["tally"]>) =>
    summaryOf({ job: { ...open, tally: { ...newTally(), ...tally } }, failure: null, artifactIds: [] })
      .resources;
  assert.deepEqual(of({ enforcement: "cgroup2" }), { enforcement: "cgroup2" });
  assert.equal(of({}), undefined);
});

test("a run that made thousands of outputs has a summary as small as any, and unseen memory is null", () => {
  const artifactIds = Array.from({ length: 5_000 }, (_, i) => `art_${i}`);
  const summary = summaryOf({ job: open, failure: null, artifactIds });
  assert.equal(summary.artifact_links.length, historyFileIds.length + OUTPUT_LINKS_MAX);
  assert.deepEqual(summary.resource_peaks, { cpu_seconds: 0, max_rss_bytes: null, disk_bytes: 0 });
  assert.deepEqual([summary.failed_agent_id, summary.failure], [null, null]);
});
