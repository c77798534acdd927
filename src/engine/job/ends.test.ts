// How the agents of a job end, and what a completed job says of what it lacks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineHarness, failed, succeeded } from "../../../test/support/engine-harness.ts";
import { aggregator, executor, graph, router, sensor } from "../../../test/support/graphs.ts";
import { artifact } from "../../../test/support/journal-records.ts";
import type { TaskOutcome } from "../task-port.ts";

const file = (name: string) =>
  artifact("0", { artifactId: `art_${name}`, agentId: "x", name, kind: "output" });

function leaving(...names: readonly string[]): TaskOutcome {
  const outcome = succeeded();
  assert.equal(outcome.kind, "succeeded");
  return { ...outcome, artifacts: names.map(file) } as TaskOutcome;
}

const ends = (h: EngineHarness, jobId: string) => h.job(jobId).progress.tally.ends;
const none = { done: 0, failed: 0, cancelled: 0, skipped: 0, not_reached: 0 };
const statuses = (h: EngineHarness, jobId: string) =>
  Object.fromEntries([...h.job(jobId).agents.values()].map(({ agentId, status }) => [agentId, status]));

test("of a fan-out that is cancelled, only agents that ended well are done", async () => {
  const h = new EngineHarness({ slots: 2 });
  const ids = Array.from({ length: 20 }, (_, i) => `x${i}`);
  const nodes = [...ids.map((id) => executor(id, ["true"])), router("later"), sensor("s")];
  const jobId = await h.submit(graph("g", nodes, [["x0", "later"]], { entrypoints: ids }));
  await h.end("x0");
  await h.end("x1", failed());
  assert.equal(h.status(jobId), "failed");
  assert.deepEqual(ends(h, jobId)?.agents, { ...none, done: 2, failed: 1, cancelled: 19 });

  const other = await h.submit(graph("g", nodes, [["x1", "later"]], { entrypoints: ids }));
  await h.end("x0");
  await h.restart();
  await h.do(h.engine.cancel(other));
  assert.deepEqual(ends(h, other)?.agents, { ...none, done: 1, cancelled: 20, skipped: 1 });
  assert.equal(statuses(h, other).x19, "cancelled");
});

test("agents that no message reached are named by a warning, and in the run's last event", async () => {
  const h = new EngineHarness();
  const nodes = [router("in"), executor("work", ["true"]), aggregator("sum"), router("else")];
  const typed = [
    ["in", "work", "job"],
    ["work", "sum", "result"],
    ["in", "else", "no"],
  ] as const;
  const jobId = await h.submit(graph("g", nodes, typed));
  assert.equal(h.status(jobId), "completed");
  assert.deepEqual(ends(h, jobId)?.agents, { ...none, done: 1, not_reached: 3 });
  const [warning] = h.events(jobId, "log");
  assert.equal(warning?.payload.level, "warn");
  assert.equal(warning?.payload.message, 'No message reached "work", "sum", "else".');
  assert.deepEqual(h.events(jobId).at(-1)?.payload.not_reached, ["work", "sum", "else"]);
  assert.equal(h.job(jobId).progress.partial, false, "nothing was promised");
});

test("a run that a worker completes early needs the rest no more: nothing is missing", async () => {
  const h = new EngineHarness();
  const nodes = [router("in"), executor("a", ["true"]), executor("b", ["true"]), router("later")];
  const jobId = await h.submit(
    graph("g", nodes, [
      ["in", "a"],
      ["in", "b"],
      ["a", "later"],
    ]),
  );
  await h.end("a", succeeded({ completeRun: { value: { ok: true } } }));
  assert.equal(h.status(jobId), "completed");
  assert.deepEqual(ends(h, jobId)?.agents, { ...none, done: 2, cancelled: 1, skipped: 1 });
  const completed = h.events(jobId, "agent_completed").map(({ agent_id }) => agent_id);
  assert.deepEqual(completed, ["in", "a"], "what was cut off has not completed");
  assert.deepEqual(h.events(jobId, "log"), []);
});

test("a companion ends well with its job, and one that had failed has failed", async () => {
  const h = new EngineHarness();
  const companion = { lifecycle: "long_lived", optional: true };
  const nodes = [
    executor("a", ["true"]),
    executor("c", ["true"], companion),
    executor("d", ["true"], companion),
  ];
  const jobId = await h.submit(graph("g", nodes));
  await h.end("d", failed());
  await h.end("a");
  assert.deepEqual(ends(h, jobId)?.agents, { ...none, done: 2, failed: 1 });
});

test("a job without an output that its manifest promises is partial, also after a restart", async () => {
  const h = new EngineHarness();
  const outputs = ["./report.md", "data/table.csv"];
  const nodes = [executor("a", ["true"]), executor("b", ["true"])];
  const whole = await h.submit(graph("g", nodes, [["a", "b"]], { outputs }));
  await h.end("a", leaving("report.md"));
  await h.restart();
  await h.end("b", leaving("data/table.csv", "more.txt"));
  assert.equal(h.status(whole), "completed");
  assert.deepEqual([h.job(whole).progress.partial, ends(h, whole)?.missingOutputs], [false, []]);

  await h.advance(1);
  const partial = await h.submit(graph("g", nodes, [["a", "b"]], { outputs }));
  await h.end("a", leaving("report.md"));
  await h.end("b");
  assert.deepEqual(
    [h.job(partial).progress.partial, ends(h, partial)?.missingOutputs],
    [true, ["data/table.csv"]],
  );
  assert.equal((h.result(partial) as { partial?: boolean }).partial, true);
  assert.deepEqual(h.events(partial).at(-1)?.payload.missing_outputs, ["data/table.csv"]);

  const failing = await h.submit(graph("g", nodes, [["a", "b"]], { outputs }));
  await h.end("a", failed());
  assert.deepEqual(ends(h, failing)?.missingOutputs, [], "a failed run has promised nothing");
});
