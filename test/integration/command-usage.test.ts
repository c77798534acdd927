// What commands used of the machine, on its way from the operating system into a run's history and its summary.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { aggregator, executor, graph, router } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { run } from "../support/job-watch.ts";
import { call } from "../support/runtime-api.ts";

const skip = !existsSync("/proc/self/stat") && "needs /proc";

test("every attempt records its CPU time and its peak memory, and the summary adds them up", {
  skip,
}, async () => {
  await using program = await startRuntimeHere();
  const python = (source: string) => ["python3", "-c", `import time, sys\n${source}`];
  const burn = "while time.process_time() < 0.3: pass";
  const nodes = [
    router("in"),
    executor("busy", python(burn)),
    // Two attempts, of which the first one fails.
    executor("failing", python(`${burn}\nimport os\nsys.exit(os.environ["SVC_ATTEMPT"] == "1")`), {
      max_attempts: 2,
      retry_backoff_ms: 0,
    }),
    // Held until somebody must have looked at it; in pieces, so that a machine that stood still meanwhile is no reason to end.
    executor("large", python("b = b'x' * (100 << 20)\nfor _ in range(40): time.sleep(0.05)")),
    aggregator("all"),
  ];
  // One after the other: of commands that end at the same moment nobody can tell for certain which of them used what.
  const edges = ["busy", "failing", "large", "all"].map(
    (name, i, all) => [all[i - 1] ?? "in", name] as const,
  );
  const job = await run(program, graph("usage", nodes, edges));
  assert.equal(job.status, "completed", JSON.stringify(job.detail.job));
  const payloads = ["sandbox_job_failed", "sandbox_job_completed"].flatMap((type) => job.of(type));
  const cpuMs = payloads.map(({ payload }) => Number(payload.cpu_ms));
  const rssBytes = payloads.map(({ payload }) => Number(payload.max_rss_bytes));
  for (const [i, { agent_id }] of payloads.entries()) {
    const ms = cpuMs[i] ?? 0;
    if (agent_id !== "large") assert.ok(ms >= 250 && ms < 3_000, `${agent_id}: ${ms} ms`);
  }
  assert.equal(payloads.length, 4);
  assert.ok(Math.max(...rssBytes) >= 100 * 1_024 * 1_024, JSON.stringify(rssBytes));
  const runId = String((job.detail.job as JsonObject).run_id);
  const summary = await call(program, "GET", `/runs/${runId}/observability-summary`);
  const peaks = summary.resource_peaks as JsonObject;
  assert.equal(peaks.max_rss_bytes, Math.max(...rssBytes));
  assert.equal(peaks.cpu_seconds, cpuMs.reduce((sum, ms) => sum + ms, 0) / 1_000);
});
