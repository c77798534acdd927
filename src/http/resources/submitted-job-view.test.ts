// Parts of a job as its row has them and as they are shown: its last event, and where its files are.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type NodeNames, nodeNames, ownNodeName } from "../../cluster/node-names.ts";
import { lastEventJson } from "../../engine/event.ts";
import { FREE_OWNER } from "../../engine/journal.ts";
import { newTally } from "../../engine/tally.ts";
import type { ObservabilitySummary } from "../../runs/history/summary.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import { renderJob, renderSummary } from "./submitted-job-view.ts";

interface ShownJob {
  readonly manifest_ref: Readonly<Record<string, string | null>>;
}

const UPDATED = "2026-11-21T09:30:00.000Z";

const job: JobRecord = {
  jobId: "g-1",
  runId: "run_1",
  owner: "node_a/1",
  graphId: "g",
  jobName: null,
  type: "batch",
  status: "running",
  submittedAtMs: 0,
  updatedAtMs: Date.parse(UPDATED),
  startedAtMs: 0,
  placementPolicy: "local",
  recoveryPolicy: "local_restart",
  priority: "normal",
  weight: 1,
  executorCount: 0,
  activeExecutors: 0,
  eventCount: 1,
  partial: false,
  bundleFingerprint: null,
  definitionId: null,
  trace: { traceId: "a".repeat(32), parentSpanId: null },
  tally: newTally(),
  humanPending: 0,
  failureJson: null,
  rootAgentIdsJson: "[]",
  sandboxNamesJson: "[]",
  lastEventJson: "null",
};

function shown(stored: string): unknown {
  const text = renderSummary(
    { ...job, lastEventJson: stored },
    { nodeNames: ownNodeName("local"), home: "/home" },
  );
  return (JSON.parse(text) as { last_event: unknown }).last_event;
}

test("a last event is shown with the time of the job's last update, and with its agent if it has one", () => {
  const head = { nowMs: job.updatedAtMs, type: "agent_started" };
  assert.deepEqual(shown(lastEventJson({ ...head, agentId: "a" })), {
    timestamp: UPDATED,
    type: "agent_started",
    agent_id: "a",
  });
  assert.deepEqual(shown(lastEventJson({ ...head, agentId: null })), {
    timestamp: UPDATED,
    type: "agent_started",
  });
  assert.equal(shown("null"), null);
});

test("the paths of a job's files are shown on the node that has it, or had it at its end", () => {
  const pathsOn = (names: NodeNames) => {
    const whole = { job: { ...job, bundleFingerprint: "f" }, resultJson: null };
    const text = renderJob(whole, {} as ObservabilitySummary, { nodeNames: names, home: "/home" });
    const { manifest_path, job_path, cache_path } = (JSON.parse(text) as ShownJob).manifest_ref;
    return [manifest_path, job_path, cache_path];
  };
  const there = ["/home/bundles/f/manifest.json", "/home/runs/run_1", "/home/bundles/f"];
  assert.deepEqual(pathsOn(ownNodeName("local")), there);
  assert.deepEqual(pathsOn(nodeNames({ nodeId: "node_a", name: "a" }, () => null)), there);
  assert.deepEqual(pathsOn(nodeNames({ nodeId: "node_b", name: "b" }, () => null)), [null, null, null]);
});

test("a job is shown at the node that has it, and at none when it was handed over", () => {
  const names = nodeNames({ nodeId: "node_b", name: "b" }, () => "a");
  const nodesOf = (owner: string) => {
    const text = renderSummary({ ...job, owner }, { nodeNames: names, home: "/home" });
    return (JSON.parse(text) as { nodes: unknown }).nodes;
  };
  assert.deepEqual(nodesOf("node_a/1"), ["a"]);
  assert.deepEqual(nodesOf("node_b/1"), ["b"]);
  assert.deepEqual(nodesOf(FREE_OWNER), []);
});

test("one that was stored with its time keeps that", () => {
  const timestamp = "2026-11-20T00:00:00.000Z";
  assert.deepEqual(shown(JSON.stringify({ timestamp, type: "job_running", agent_id: null })), {
    timestamp,
    type: "job_running",
  });
});
