// Workflow progress: what a node's state is, seen with its run's, and what is shown of large graphs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness } from "../../../test/support/engine-harness.ts";
import { failure as makeFailure } from "../../../test/support/failures.ts";
import { executor, graph } from "../../../test/support/graphs.ts";
import type { AgentRecord, AgentStatus, JobStatus } from "../../engine/journal.ts";
import { nodeEnds } from "./node-ends.ts";
import {
  agentsDone,
  nodesOf,
  PROGRESS_NODES_MAX,
  type ProgressSource,
  percentDone,
  workflowProgress,
} from "./progress.ts";

function agent(index: number, status: AgentStatus, more: Partial<AgentRecord> = {}): AgentRecord {
  return {
    agentId: `n${index}`,
    index,
    status,
    done: false,
    processedMessages: 1,
    stateJson: "{}",
    lastError: null,
    unroutedJson: null,
    lease: null,
    ...more,
  };
}

function source(more: Partial<ProgressSource>): ProgressSource {
  return {
    status: "running",
    nodes: [{ nodeId: "n0", agentType: "executor", name: "Writer" }],
    agents: [],
    tasks: [],
    mailboxDepths: new Map(),
    ends: new Map(),
    failure: null,
    agentEnds: null,
    nowMs: 1_250,
    ...more,
  };
}

test("a node's state is its agent's, unless the run is held or over", async () => {
  const stateIn = async (status: JobStatus, own: AgentStatus | null) =>
    (await workflowProgress(source({ status, agents: own === null ? [] : [agent(0, own)] }))).steps[0]?.state;
  const table: readonly [JobStatus, AgentStatus | null, string][] = [
    ["pending", null, "pending"],
    ["running", null, "pending"],
    ["running", "ready", "ready"],
    ["running", "waiting", "waiting"],
    ["paused", "running", "running"],
    ["paused", "ready", "paused"],
    ["paused", null, "pending"],
    ["paused", "done", "done"],
    ["completed", "ready", "done"],
    ["completed", null, "skipped"],
    ["failed", "failed", "failed"],
    ["failed", "ready", "done"],
    ["cancelled", "waiting", "done"],
    ["cancelled", "done", "done"],
    ["cancelled", "pending", "skipped"],
  ];
  for (const [status, own, expected] of table)
    assert.equal(await stateIn(status, own), expected, `${status} ${own}`);
});

test("what a run's end has cut off is cancelled, whether it was at work or waited for slots", async () => {
  const h = new EngineHarness({ slots: 1 });
  const nodes = ["through", "works", "waits"].map((id) => executor(id, ["true"]));
  const jobId = await h.submit(graph("g", nodes, [], { entrypoints: ["through", "works", "waits"] }));
  await h.end("through");
  await h.do(h.engine.cancel(jobId));
  const ends = await nodeEnds([...h.job(jobId).events].reverse());
  const agents = [...h.job(jobId).agents.values()];
  const shown = await nodesOf({ nodes });
  const { steps } = await workflowProgress(source({ status: "cancelled", nodes: shown, agents, ends }));
  assert.deepEqual(
    steps.map((step) => step.state),
    ["done", "cancelled", "cancelled"],
  );
});

test("a running attempt is shown with its number and its beginning; a failure at the node that failed", async () => {
  const failure = makeFailure("executor.exit_nonzero", "it failed", { agentId: "n0" });
  const message = { seq: 1, from: null, to: 0, type: "init", class: "event", body: {} } as const;
  const { steps, agents } = await workflowProgress(
    source({
      agents: [agent(0, "running", { lastError: "it failed" })],
      tasks: [
        {
          taskSeq: 4,
          agentIndex: 0,
          kind: "command",
          attempt: 2,
          failures: 1,
          state: { kind: "running", lease: null, sandboxName: "s", startedAtMs: 1_000 },
          message: {
            ...message,
            correlationId: "c",
            causationId: null,
            ttlMs: null,
            timestampMs: 0,
            chars: 2,
          },
        },
      ],
      mailboxDepths: new Map([[0, 7]]),
      failure,
    }),
  );
  const times = { started_at: "1970-01-01T00:00:01.000Z", finished_at: null, duration_ms: 250 };
  const shared = { state: "running", attempt: 2, ...times, failure };
  assert.deepEqual(steps, [{ step_id: "n0", name: "Writer", agent_id: "n0", ...shared }]);
  assert.deepEqual(agents, [
    {
      agent_id: "n0",
      agent_type: "executor",
      ...shared,
      processed_messages: 1,
      mailbox_depth: 7,
      last_error: "it failed",
    },
  ]);
});

test("of a large graph, the nodes of most interest are shown, in its order", async () => {
  const count = 10_000;
  const nodes = Array.from({ length: count }, (_, i) => ({
    nodeId: `n${i}`,
    agentType: "router",
    name: `n${i}`,
  }));
  const agents = [agent(3, "done"), agent(5_000, "running"), agent(9_999, "failed")];
  const { steps } = await workflowProgress(source({ nodes, agents }));
  assert.equal(steps.length, PROGRESS_NODES_MAX);
  const ids = steps.map((step) => step.step_id);
  assert.deepEqual(
    ids.filter((id) => ["n9999", "n5000", "n3"].includes(id)),
    ["n3", "n5000", "n9999"],
  );
});

test("a manifest's nodes are named by their role, or else by their id", async () => {
  const manifest = { nodes: [{ node_id: "a", agent_type: "router", role: "Planner" }, { node_id: "b" }] };
  assert.deepEqual(await nodesOf(manifest), [
    { nodeId: "a", agentType: "router", name: "Planner" },
    { nodeId: "b", agentType: "", name: "b" },
  ]);
});

test("a node that has ended has the times of its end; a failure that the run went on in spite of is its own", async () => {
  const failure = makeFailure("executor.exit_nonzero", "it failed", { agentId: "n0" });
  const end = {
    isCutOff: false,
    attempt: 2,
    startedAt: "1970-01-01T00:00:01.000Z",
    finishedAt: "1970-01-01T00:00:01.200Z",
    failure,
  };
  const ends = new Map([["n0", end]]);
  const [step] = (await workflowProgress(source({ agents: [agent(0, "failed")], ends }))).steps;
  assert.deepEqual(
    [step?.attempt, step?.started_at, step?.finished_at, step?.duration_ms, step?.failure],
    [2, end.startedAt, end.finishedAt, 200, failure],
  );
  const [done] = (await workflowProgress(source({ agents: [agent(0, "done")], ends }))).steps;
  assert.equal(done?.failure, null, "an attempt that failed before one that did not");
});

test("done are agents that are through, or have worked and have nothing to do; of an ended run, those that ended well", () => {
  const agents = [
    agent(0, "done"),
    agent(1, "ready"),
    agent(2, "ready", { processedMessages: 0 }),
    agent(3, "failed"),
    agent(4, "running"),
    agent(5, "ready"),
  ];
  const nodes = Array.from({ length: 7 }, (_, i) => ({
    nodeId: `n${i}`,
    agentType: "router",
    name: `n${i}`,
  }));
  const shown = source({ nodes, agents, mailboxDepths: new Map([[5, 2]]) });
  assert.equal(agentsDone(shown), 2);
  const agentEnds = { done: 1, failed: 1, cancelled: 3, skipped: 2, not_reached: 0 };
  assert.equal(agentsDone({ ...shown, status: "cancelled", agentEnds }), 1);
  assert.deepEqual(
    [percentDone("running", 2, 7), percentDone("completed", 2, 7), percentDone(null, 0, 0)],
    [28, 100, 0],
  );
});
