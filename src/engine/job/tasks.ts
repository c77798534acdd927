// Tasks of a job: from "a message needs work outside" over slots and leases to an attempt that runs. How attempts end
// is attempts.ts.
//
// - A task begins (its attempt counts, its lease is held) in one cut with the events that say so; the command
//   itself starts only after that cut is on disk.
// - A lease that was announced is released in the history before the job's terminal event.

import type { FailureCode } from "../failure-catalogue.ts";
import { type GraphNode, isLongLived, staysWithJob } from "../graph.ts";
import { type Message, messageId, toEnvelope } from "../message.ts";
import { slotsKey } from "../ports.ts";
import type { Priority } from "../share.ts";
import type { Lease, TaskKind, TaskOutcome, TaskRef, TaskState } from "../task-port.ts";
import { attemptSpan, traceparent } from "../trace.ts";
import { addEvent } from "./history.ts";
import { answersFor } from "./human-answers.ts";
import { taskGone } from "./human-requests.ts";
import { deadLetter, isExpired } from "./messages.ts";
import { enqueue } from "./schedule.ts";
import { attemptBegan, attemptEnded } from "./services.ts";
import { type AgentState, agentOf, type Job, refOf, type Task } from "./state.ts";

/** Whether the job may not complete before this task has ended. A companion ends with the job instead. */
function holdsJobOpen(agent: AgentState): boolean {
  return !isLongLived(agent.node) || agent.node.isSource;
}

export function createTask(job: Job, agent: AgentState, kind: TaskKind, message: Message): void {
  const task: Task = {
    seq: ++job.taskSeq,
    agentIndex: agent.node.index,
    kind,
    message,
    state: { kind: "queued" },
    requestedAtMs: null,
    waitsFor: null,
    attempt: 0,
    failures: 0,
  };
  adoptTask(job, task);
  requestSlots(job, task);
}

/** Makes a task the job's own: a new one, or one that the journal held. */
export function adoptTask(job: Job, task: Task): void {
  const agent = agentOf(job, task);
  job.tasks.set(task.seq, task);
  agent.task = task;
  job.waitingChars += task.message.chars;
  if (holdsJobOpen(agent)) job.openTasks++;
  if (task.kind === "command" && task.state.kind === "running") job.runningTasks++;
}

/** Asks the pool for the next attempt's slots, and begins it if they are granted at once; a job that leaves begins none. */
export function requestSlots(job: Job, task: Task): void {
  if (job.isLeaving) {
    setTaskState(job, task, { kind: "queued" });
    return;
  }
  const { node } = agentOf(job, task);
  const { config, nodeId } = node;
  if (config.kind !== "executor") {
    begin(job, task, null);
    return;
  }
  const { pool, poolSlots: slots } = config;
  setTaskState(job, task, { kind: "queued" });
  task.requestedAtMs = job.context.clock.nowMs();
  const ref = nextAttempt(job, task);
  const placement = staysWithJob(job.graph, node) ? "here" : job.graph.placementPolicy;
  const grant = job.context.slots.request(slotsKey(ref), pool, slots, placement, config, job.share);
  const asked = { task: task.seq, attempt: ref.attempt, pool, slots };
  const hint = grant.kind === "queued" ? grant.hint : undefined;
  task.waitsFor = hint ?? null;
  addEvent(job, "executor_lease_requested", nodeId, hint === undefined ? asked : { ...asked, hint });
  if (grant.kind === "granted") begin(job, task, grant.lease);
  else if (grant.kind === "unsatisfiable") {
    endTask(job, task, failedOutcome("resource.unsatisfiable", grant.reason));
  }
}

/** The attempt for which a waiting task asks for slots. */
export function nextAttempt(job: Job, task: Task): TaskRef {
  return { ...refOf(job, task), attempt: task.attempt + 1 };
}

/** What fails a task without a report of its attempt. */
export function failedOutcome(code: FailureCode, message: string): TaskOutcome {
  return { kind: "failed", code, message, command: null, artifacts: [] };
}

/** A queued request was granted. @returns false when nobody waits for it any more */
export function slotsGranted(job: Job, ref: TaskRef, lease: Lease): boolean {
  const task = job.tasks.get(ref.taskSeq);
  if (task?.state.kind !== "queued" || job.status !== "running" || job.isLeaving) return false;
  begin(job, task, lease);
  return true;
}

function begin(job: Job, task: Task, lease: Lease | null): void {
  const agent = agentOf(job, task);
  const { nodeId, config } = agent.node;
  if (task.attempt === 0 && isExpired(job, task.message)) {
    job.context.slots.release(slotsKey(nextAttempt(job, task)));
    removeTask(job, task);
    deadLetter(job, task.message, "ttl_expired", 0);
    enqueue(job, agent);
    return;
  }
  task.attempt++;
  if (task.attempt > 1) job.tally.retries++;
  const runSuffix = job.runId.slice(-8);
  const sandboxName = `${nodeId}-${runSuffix}-${task.seq}-${task.attempt}`;
  const startedAtMs = job.context.clock.nowMs();
  setTaskState(job, task, { kind: "running", lease, sandboxName, startedAtMs });
  const attempt = { task: task.seq, attempt: task.attempt };
  const { maxAttempts, timeoutSeconds } = executionOf(agent);
  if (task.kind === "command") {
    job.runningTasks++;
    if (lease !== null) {
      addEvent(job, "executor_lease_acquired", nodeId, {
        ...attempt,
        ...leasePayload(lease),
        wait_ms: elapsedMs(task.requestedAtMs ?? startedAtMs, startedAtMs),
      });
    }
    addEvent(job, "sandbox_job_started", nodeId, {
      ...attempt,
      sandbox_name: sandboxName,
      pool: lease?.pool ?? null,
    });
    attemptBegan(job, agent, lease);
  }
  job.draft.effects.starts.push({
    ref: refOf(job, task),
    kind: task.kind,
    publicJobId: job.publicJobId,
    runId: job.runId,
    agentId: nodeId,
    config,
    maxAttempts,
    idempotencyKey: `${job.runId}:${nodeId}:${messageId(job.runId, task.message.seq)}`,
    sandboxName,
    lease,
    envelope: toEnvelope(task.message, job, nodeId, task.attempt),
    agentState: agent.state,
    workflow: { graph_id: job.graph.graphId, job_name: job.graph.jobName, type: job.graph.type },
    bundleFingerprint: job.insert.bundleFingerprint,
    hasOwnPayload: job.insert.hasOwnPayload,
    configurationJson: job.insert.configurationJson,
    traceparent: traceparent(job.insert.trace.traceId, attemptSpan(job.runId, attempt).id),
    humanResponses: answersFor(job, task),
    timeoutMs: timeoutSeconds === 0 ? null : timeoutSeconds * 1_000,
  });
  enqueue(job, agent);
}

/** How the agent's tasks are tried. */
export function executionOf({ node: { config } }: AgentState) {
  return config.kind === "executor" || config.kind === "module" ? config : watching;
}

/** A sensor's file is watched once, for as long as it takes. */
const watching = { timeoutSeconds: 0, maxAttempts: 1, retryBackoffMs: 0 } as const;

/** Whole milliseconds between two readings of the wall clock, which may have been set back between them. */
function elapsedMs(fromMs: number, toMs: number): number {
  return Math.max(0, Math.round(toMs - fromMs));
}

function leasePayload(lease: Lease) {
  const { leaseId, pool, slots, gpus, ports } = lease;
  return {
    lease_id: leaseId,
    pool,
    slots,
    ...(gpus !== undefined && { gpus }),
    ...(ports !== undefined && { ports }),
  };
}

/** The current attempt, if the report is about it. */
export function currentAttempt(job: Job, ref: TaskRef): { task: Task; running: RunningState } | null {
  const task = job.tasks.get(ref.taskSeq);
  if (task?.state.kind !== "running" || task.attempt !== ref.attempt) return null;
  return { task, running: task.state };
}

/** The node whose command the report is about; null when the report is stale, or about no command. */
export function commandNode(job: Job, ref: TaskRef): GraphNode | null {
  const current = currentAttempt(job, ref);
  return current?.task.kind === "command" ? agentOf(job, current.task).node : null;
}

export type RunningState = Extract<TaskState, { kind: "running" }>;

export function releaseLease(
  job: Job,
  task: Task,
  { lease, startedAtMs }: RunningState,
  reason: string,
): void {
  const agent = agentOf(job, task);
  if (task.kind === "command") {
    job.runningTasks--;
    attemptEnded(job, agent);
  }
  if (lease === null) return;
  addEvent(job, "executor_lease_released", agent.node.nodeId, {
    task: task.seq,
    attempt: task.attempt,
    ...leasePayload(lease),
    reason,
    held_ms: elapsedMs(startedAtMs, job.context.clock.nowMs()),
  });
}

/** Keeps the outcome until the agent looks at it: at once, or after a pause. */
export function endTask(job: Job, task: Task, outcome: TaskOutcome): void {
  const kept = outcome.kind === "interrupted" ? outcome : { ...outcome, artifacts: [] };
  const { lease, sandboxName } =
    task.state.kind === "running" ? task.state : { lease: null, sandboxName: "" };
  setTaskState(job, task, { kind: "ended", outcome: kept, lease, sandboxName });
  enqueue(job, agentOf(job, task));
}

/** Gives a task up because its agent or its job is over: what runs is stopped, what waits is taken back. */
export function abandon(job: Job, task: Task): void {
  if (task.state.kind === "running") {
    const ref = refOf(job, task);
    // A command whose start is not even on disk yet is simply never started.
    if (withdrawStart(job, ref)) job.context.slots.release(slotsKey(ref));
    else job.draft.effects.stops.push(ref);
    releaseLease(job, task, task.state, "cancelled");
  } else withdrawRequest(job, task);
  removeTask(job, task);
}

/** What waits for slots asks for them again, with the new priority. */
export function prioritize(job: Job, priority: Priority): void {
  if (job.share.priority === priority) return;
  job.share = { ...job.share, priority };
  job.draft.priority = priority;
  if (job.status !== "running") return;
  for (const task of [...job.tasks.values()]) {
    if (task.state.kind !== "queued") continue;
    withdrawRequest(job, task);
    requestSlots(job, task);
  }
}

/** Takes a waiting request back, so that a paused job is granted nothing. */
export function withdrawRequest(job: Job, task: Task): void {
  if (task.state.kind === "queued") job.context.slots.release(slotsKey(nextAttempt(job, task)));
}

export function removeTask(job: Job, task: Task): void {
  const agent = agentOf(job, task);
  job.tasks.delete(task.seq);
  job.draft.changedTasks.delete(task.seq);
  job.draft.removedTasks.push(task.seq);
  job.draft.changedAgents.add(agent.node.index);
  agent.task = null;
  taskGone(job, agent, task.seq);
  job.waitingChars -= task.message.chars;
  if (holdsJobOpen(agent)) job.openTasks--;
}

export function setTaskState(job: Job, task: Task, state: TaskState): void {
  task.state = state;
  job.draft.changedTasks.add(task.seq);
  job.draft.changedAgents.add(task.agentIndex);
}

/** @returns whether the start was still in the draft, and is now gone */
function withdrawStart({ draft: { effects } }: Job, { taskSeq, attempt }: TaskRef): boolean {
  const at = effects.starts.findIndex(({ ref }) => ref.taskSeq === taskSeq && ref.attempt === attempt);
  if (at >= 0) effects.starts.splice(at, 1);
  return at >= 0;
}
