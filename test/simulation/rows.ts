// I13. No commit takes back what an earlier one has counted or noted, no matter who makes it: what a restart forgets shows
//      here. A job is paused since some time exactly while it is paused, and has a deadline exactly if it has a limit.
// I15. A job is queued exactly while a task of it waits for slots and none runs; to watch a file is no work.

import assert from "node:assert/strict";
import type { AgentRecord, JobChanges, JobProgress, TaskRecord } from "../../src/engine/journal.ts";
import { isTerminal } from "../../src/engine/journal.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Tally } from "../../src/engine/tally.ts";

interface Row {
  progress: JobProgress | null;
  readonly hasLimit: boolean;
  /** Indices of agents that are no part of the job's work. */
  readonly optional: ReadonlySet<number>;
  readonly agents: Map<number, AgentRecord>;
  readonly tasks: Map<number, TaskRecord>;
}

export class Rows {
  readonly #rows = new Map<string, Row>();

  /** A part of a batch that was written. */
  written({ jobId, insert, progress, agents, tasks, tasksRemoved, deadLettersRetried }: JobChanges): void {
    const row = this.#rows.get(jobId) ?? newRow(insert!.manifestJson);
    this.#rows.set(jobId, row);
    judgeProgress(jobId, row, progress);
    for (const agent of agents) {
      const before = row.agents.get(agent.index);
      if (before !== undefined) judgeAgent(jobId, before, agent, deadLettersRetried.length > 0);
      row.agents.set(agent.index, agent);
    }
    for (const task of tasks) {
      const before = row.tasks.get(task.taskSeq);
      const counts = ({ attempt, failures }: TaskRecord) => ({ attempt, failures });
      if (before !== undefined) grows(`${jobId}: task ${task.taskSeq}`, counts(before), counts(task));
      row.tasks.set(task.taskSeq, task);
    }
    for (const seq of tasksRemoved) row.tasks.delete(seq);
    if (isTerminal(progress.status)) row.tasks.clear();
    judgeQueued(jobId, row, progress);
    row.progress = progress;
  }
}

function newRow(manifestJson: string): Row {
  const { policies, nodes } = JSON.parse(manifestJson) as {
    policies?: JsonObject;
    nodes: readonly JsonObject[];
  };
  const indices = nodes.flatMap(({ config }, index) =>
    (config as JsonObject).optional === true ? [index] : [],
  );
  const hasLimit = policies?.timeout_seconds !== undefined;
  return { progress: null, hasLimit, optional: new Set(indices), agents: new Map(), tasks: new Map() };
}

function judgeProgress(jobId: string, { progress: before, hasLimit }: Row, progress: JobProgress): void {
  assert.equal(progress.deadlineAtMs !== null, hasLimit, `I13: ${jobId} has a deadline if it has a limit`);
  if (!isTerminal(progress.status)) {
    const isPaused = progress.status === "paused";
    assert.equal(
      progress.pausedAtMs !== null,
      isPaused,
      `I13: ${jobId} is ${progress.status}, and since when`,
    );
  }
  if (before === null) return;
  const counts = ({ eventSeq, messageSeq, taskSeq, logBytes, tally }: JobProgress) => ({
    eventSeq,
    messageSeq,
    taskSeq,
    logBytes,
    ...countsOf(tally),
  });
  grows(jobId, counts(before), counts(progress));
  assert.ok(progress.partial || !before.partial, `I13: ${jobId} is not partial any more`);
  assert.equal(progress.startedAtMs, before.startedAtMs, `I13: ${jobId} started once`);
}

/** @param hasChance whether somebody has sent dead letters again: an agent that is given one has not failed */
function countsOf({ outputs, ends, waitsFor, enforcement, ...counts }: Tally) {
  return { ...counts, outputs: outputs.length };
}

function judgeQueued(jobId: string, { tasks, optional }: Row, { status }: JobProgress): void {
  if (status !== "running" && status !== "queued") return;
  const states = [...tasks.values()]
    .filter((task) => task.kind !== "file" && !optional.has(task.agentIndex))
    .map(({ state }) => state.kind);
  const isQueued = states.includes("queued") && !states.includes("running");
  assert.equal(
    status,
    isQueued ? "queued" : "running",
    `I15: ${jobId} has tasks that are ${states.join(", ")}`,
  );
}

function judgeAgent(jobId: string, before: AgentRecord, agent: AgentRecord, hasChance: boolean): void {
  const what = `I13: ${agent.agentId} of ${jobId}`;
  const isFailed = agent.status === "failed" || before.status !== "failed" || hasChance;
  assert.ok(isFailed, `${what} has not failed any more`);
  assert.ok(agent.done || !before.done, `${what} is not done any more`);
  assert.ok(agent.status !== "pending" || before.status === "pending", `${what} has not begun any more`);
  assert.ok(agent.processedMessages >= before.processedMessages, `${what} has processed less than before`);
}

function grows<Counts extends Readonly<Record<string, number>>>(what: string, before: Counts, after: Counts) {
  for (const [name, count] of Object.entries(before)) {
    assert.ok(after[name]! >= count, `I13: ${what}: ${name} went from ${count} to ${after[name]}`);
  }
}
