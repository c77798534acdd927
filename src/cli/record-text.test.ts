import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JobDetail, LogRecord, Run, TimelineRecord, WorkflowProgress } from "../../sdk/src/index.ts";
import { failure as makeFailure } from "../../test/support/failures.ts";
import { fieldLines, jobLines, logLine, progressLines, runLines, timelineLine } from "./record-text.ts";
import { failureOf } from "./result-text.ts";
import { plainPaint } from "./terminal.ts";

const HOSTILE = "a\x1b[2J\u202eb\nc";
const NO_CONTROL = /^[^\p{Cc}\p{Cf}]*$/u;
const now = new Date().toISOString();

const job: JobDetail = {
  job_id: "job_1",
  name: HOSTILE,
  status: "ready",
  source: { bundle_id: "bundle_1" },
  graph_id: "digest",
  resolved_configuration: {},
  weight: 1,
  extensions: [],
  revision: 1,
  created_at: now,
  updated_at: now,
  latest_run: null,
  active_runs: 0,
  links: {},
  failure: null,
  reason: null,
  status_reason: null,
  trace_id: null,
  observability_summary: null,
  etag: '"1"',
};

const run: Run = {
  run_id: "run_1",
  job_id: "job_1",
  job_name: "job",
  blueprint_id: null,
  rerun_of: null,
  counts: { warnings: 0, retries: 0, human_pending: 0, dead_letters: 0, tokens: null },
  status: "running",
  desired_state: "running",
  inputs: {},
  config_overrides: null,
  priority: "normal",
  trigger: { kind: "api", id: null },
  attempt: 1,
  created_at: now,
  started_at: now,
  finished_at: null,
  updated_at: now,
  duration_ms: 1_250,
  progress: {
    agents_total: 3,
    agents_done: 1,
    messages: 1,
    tasks_running: 1,
    human_pending: 0,
    label: HOSTILE,
  },
  result: null,
  failure: null,
  reason: null,
  status_reason: null,
  trace_id: "00",
  links: {},
};

const progress: WorkflowProgress = {
  job_id: "job_1",
  run_id: "run_1",
  status: "running",
  progress: { percent: 33.4, done: 1, total: 3, label: "Reading" },
  steps: [],
  agents: Array.from({ length: 50 }, (_, i) => ({
    agent_id: `a${i}`,
    agent_type: "executor",
    state: "running",
    attempt: i === 0 ? 2 : 1,
    started_at: now,
    finished_at: null,
    duration_ms: 7,
    failure: null,
    processed_messages: 1,
    mailbox_depth: 0,
    last_error: i === 0 ? HOSTILE : null,
  })),
  failure: null,
  reason: null,
  status_reason: null,
  trace_id: null,
  observability_summary: null,
  eta_ms: 12_000,
};

const log: LogRecord = {
  id: 7,
  ts: now,
  level: "warn",
  run_id: "run_1",
  agent_id: "reader",
  attempt: 1,
  stream: "stderr",
  message: HOSTILE,
  fields: { pages: 3 },
  trace_id: "",
  span_id: "",
};

const timeline: TimelineRecord = {
  schema_version: "svc.timeline.v1",
  ts: now,
  run_id: "run_1",
  trace_id: "",
  span_id: "",
  parent_span_id: null,
  type: "attempt",
  phase: "completed",
  agent_id: null,
  step_id: null,
  status: "completed",
  duration_ms: 55,
  summary: HOSTILE,
  links: {},
  details: {},
};

describe("records as lines", () => {
  test("what comes from outside reaches no terminal uncleaned", () => {
    const lines = [
      ...jobLines(job, plainPaint),
      ...runLines(run),
      ...progressLines(progress, plainPaint),
      logLine(log, plainPaint),
      timelineLine(timeline, plainPaint),
      ...fieldLines([["name", HOSTILE]]),
    ];
    for (const line of lines) assert.match(line, NO_CONTROL);
    assert.equal(lines.filter((line) => line.includes("ab c")).length, 6);
  });
  test("a run shows its progress, without lines for what is missing", () => {
    const lines = runLines(run).join("\n");
    assert.match(lines, /^ {2}took +1\.3 s$/m);
    assert.match(lines, /^ {2}progress +1 of 3 agents done, 1 message$/m);
    assert.doesNotMatch(lines, /wanted|attempt/);
    assert.match(runLines({ ...run, desired_state: "cancelled" }).join("\n"), /^ {2}wanted +cancelled$/m);
  });
  test("a run's summary stands among its own lines", () => {
    const lines = runLines(run, [
      ["retries", "2"],
      ["failed at", null],
    ]);
    assert.deepEqual(lines.slice(-2), ["  retries   2", "  trace     00"]);
  });
  test("a job with its graph shows who sends to whom", () => {
    const graph = {
      nodes: [
        { node_id: "plan", agent_type: "executor", role: null },
        { node_id: "read", agent_type: "executor", role: null },
      ],
      edges: [
        { edge_id: null, from_node: "plan", to_node: "read", message_type: "a" },
        { edge_id: null, from_node: "plan", to_node: "read", message_type: "b" },
      ],
      entrypoints: ["plan"],
    };
    assert.match(jobLines({ ...job, graph }, plainPaint).join("\n"), /^ {2}plan +executor +read$/m);
    assert.match(jobLines(job, plainPaint).join("\n"), /latest run +none yet/);
  });
  test("progress has a line for each agent, and a bound", () => {
    const lines = progressLines(progress, plainPaint);
    assert.equal(lines[0], "run_1 running  33 %, 1 of 3 agents done, about 12.0 s left. Reading");
    assert.equal(lines.length, 43);
    assert.equal(lines.at(-1), "… and 10 more agents");
    assert.match(lines[2] ?? "", /running \(attempt 2\)/);
    const none = progressLines({ ...progress, run_id: null, status: null }, plainPaint);
    assert.deepEqual(none, ["job_1 has no run yet. Start one: troupe runs start job_1"]);
  });
  test("log and timeline lines begin with time and agent", () => {
    assert.match(logLine(log, plainPaint), /^\d\d:\d\d:\d\d\.\d{3} {2}reader {12}ab c \{"pages":3\}$/);
    assert.match(timelineLine(timeline, plainPaint), /^\S+ {2}run {15}ab c \(55 ms\)$/);
  });
});

test("a failure is shown as one only when it is whole", () => {
  const failure = makeFailure("executor.exit_nonzero", "exit code 7");
  assert.equal(failureOf(JSON.parse(JSON.stringify(failure)))?.code, "executor.exit_nonzero");
  assert.equal(failureOf(null), null);
  assert.equal(failureOf({ code: 7 }), null);
  assert.equal(failureOf({ code: "x", desc: "y", remediation: "z", details: null }), null);
});
