import assert from "node:assert/strict";
import { test } from "node:test";
import { summaryLines } from "./summary-text.ts";

const place = (url: string) => new URL(url, "http://troupe.test/api/v1/").href;
const link = (id: string) => ({ artifact_id: id, url: `/api/v1/runs/run_1/artifacts/${id}` });

const summary = {
  schema_version: "svc.observability_summary.v1",
  run_id: "run_1",
  status: "failed",
  duration_ms: 1_250,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  counts: { events: 58, logs: 12, errors: 2, warnings: 1, timeline_records: 31, artifacts: 0 },
  retry_count: 1,
  failed_agent_id: "writer",
  failed_step_id: "writer",
  failure: null,
  resource_peaks: { cpu_seconds: 4.2, max_rss_bytes: 73_400_320, disk_bytes: 18_211 },
  tokens: { input: 1_200, output: 350, total: 1_550 },
  artifact_links: [link("events_jsonl"), link("timeline_json"), link("art_1")],
};

test("a summary is a few lines: how long, how much, what it used, where it failed, where to read on", () => {
  assert.deepEqual(summaryLines(summary, place), [
    "  took       1.3 s",
    "  recorded   58 events, 12 log records, 1 warning, 2 errors, 31 timeline records",
    "  retries    1",
    "  tokens     1550: 1200 in, 350 out",
    "  used       4.2 s of CPU, 70 MiB of memory at most, 18 KiB of files",
    "  failed at  writer",
    "  evidence   events_jsonl, timeline_json in http://troupe.test/api/v1/runs/run_1/artifacts/",
    "  trace      4bf92f3577b34da6a3ce929d0e0e4736",
  ]);
});

test("zero counts and unknown values have no line", () => {
  const quiet = {
    ...summary,
    duration_ms: null,
    retry_count: 0,
    failed_agent_id: null,
    failed_step_id: null,
    resource_peaks: { cpu_seconds: 0, max_rss_bytes: null, disk_bytes: 0 },
    tokens: { input: 0, output: 0, total: 0 },
    artifact_links: [],
  };
  const names = summaryLines(quiet, place).map((line) => line.trim().split(/ {2,}/)[0]);
  assert.deepEqual(names, ["recorded", "trace"]);
});

test("a server that sends none, or something else, makes no line and no mistake; hostile texts are cleaned", () => {
  for (const found of [undefined, null, 7, "x", [], {}, { counts: 3, tokens: [], artifact_links: [{}, 1] }]) {
    assert.deepEqual(summaryLines(found, place), []);
  }
  const hostile = { failed_step_id: "a\x1b[2J\u202eb", artifact_links: [] };
  assert.deepEqual(summaryLines(hostile, place), ["  failed at  ab"]);
});
