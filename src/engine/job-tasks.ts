// Tasks of a job: from "a message needs work outside" to "its outcome is applied", over leases, attempts and
// retries.
//
// T1. A task begins (its attempt counts, its lease is held) in one cut with the events that say so; the command
//     itself starts only after that cut is on disk.
// T2. Only the current attempt's first outcome counts; any other report changes nothing.
// T3. An attempt that was interrupted from outside does not count against max_attempts.
// T4. A lease that was announced is released in the history before the job's terminal event.

import type { Failure } from "./failure.ts";
import { failureCatalogue } from "./failure-catalogue.ts";
import { type GraphNode, isLongLived } from "./graph.ts";
import type { AgentSlot, Job, Task } from "./job.ts";
import { noteOutput } from "./job-ends.ts";
import * as human from "./job-human.ts";
import * as mail from "./job-messages.ts";
import * as services from "./job-services.ts";
import type { TaskKind, TaskState } from "./journal.ts";
import { type Message, messageId, toEnvelope } from "./message.ts";
import type { Lease } from "./ports.ts";
import { slotsKey } from "./slots-key.ts";
import type { TaskOutcome, TaskRef } from "./task-port.ts";
import { agentSpan, attemptSpan, traceparent } from "./trace.ts";

const BACKOFF_MS_MAX = 5 * 60 * 1_000;

/** Whether the job may not complete before this task has ended. A companion ends with the job instead. */
function holdsJobOpen(agent: AgentSlot): boolean {
  return !isLongLived(agent.node) || agent.node.isSource;
}

export function createTask(job: Job, agent: AgentSlot, kind: TaskKind, message: Message): void {
  const task: Task = {
    seq: ++job.taskSeq,
    agentIndex: agent.node.index,
    kind,
    message,
    state: { kind: "queued" },
    requestedAtMs: null,
    attempt: 0,
    failures: 0,
  };
  adoptTask(job, task);
  requestSlots(job, agent, task);
}

/** Makes a task the job's own: a new one, or one that the journal held. */
export function adoptTask(job: Job, task: Task): void {
  const agent = job.agents[task.agentIndex]!;
  job.tasks.set(task.seq, task);
  job.draft.dirtyTasks.add(task.seq);
  job.draft.dirtyAgents.add(task.agentIndex);
  agent.task = task;
  job.waitingChars += task.message.chars;
  if (holdsJobOpen(agent)) job.openTasks++;
}

/** Asks the pool for the next attempt's slots, and begins it if they are granted at once. */
export function requestSlots(job: Job, agent: AgentSlot, task: Task): void {
  const { config } = agent.node;
  if (config.kind !== "executor") {
    begin(job, agent, task, null);
    return;
  }
  const { pool, poolSlots: slots } = config;
  setState(job, task, { kind: "queued" });
  task.requestedAtMs = job.context.clock.nowMs();
  const ref = nextAttempt(job, task);
  job.event("executor_lease_requested", agent.node.nodeId, {
    task: task.seq,
    attempt: ref.attempt,
    pool,
    slots,
  });
  const grant = job.context.slots.request(slotsKey(ref), pool, slots);
  if (grant.kind === "granted") begin(job, agent, task, grant.lease);
  else if (grant.kind === "unsatisfiable") {
    end(job, agent, task, {
      kind: "failed",
      code: "resource.unsatisfiable",
      message: grant.reason,
      command: null,
      artifacts: [],
    });
  }
}

function nextAttempt(job: Job, task: Task): TaskRef {
  return { jobId: job.jobId, taskSeq: task.seq, attempt: task.attempt + 1 };
}

/** A queued request was granted. @returns false when nobody waits for it any more */
export function slotsGranted(job: Job, ref: TaskRef, lease: Lease): boolean {
  const task = job.tasks.get(ref.taskSeq);
  if (task?.state.kind !== "queued" || job.status !== "running") return false;
  begin(job, job.agents[task.agentIndex]!, task, lease);
  return true;
}

function begin(job: Job, agent: AgentSlot, task: Task, lease: Lease | null): void {
  const { nodeId, config } = agent.node;
  if (task.attempt === 0 && mail.isExpired(job, task.message)) {
    job.context.slots.release(slotsKey(nextAttempt(job, task)));
    removeTask(job, agent, task);
    mail.deadLetter(job, task.message, "ttl_expired", 0);
    job.enqueue(agent);
    return;
  }
  task.attempt++;
  if (task.attempt > 1) job.tally.retries++;
  const runSuffix = job.runId.slice(-8);
  const sandboxName = `${nodeId}-${runSuffix}-${task.seq}-${task.attempt}`;
  const startedAtMs = job.context.clock.nowMs();
  setState(job, task, { kind: "running", lease, sandboxName, startedAtMs });
  const ref = { jobId: job.jobId, taskSeq: task.seq, attempt: task.attempt };
  if (task.kind === "command") {
    job.runningTasks++;
    if (lease !== null) {
      job.event("executor_lease_acquired", nodeId, {
        task: task.seq,
        attempt: task.attempt,
        ...leasePayload(lease),
        wait_ms: elapsedMs(task.requestedAtMs ?? startedAtMs, startedAtMs),
      });
    }
    job.event("sandbox_job_started", nodeId, {
      task: task.seq,
      sandbox_name: sandboxName,
      pool: lease?.pool ?? null,
      attempt: task.attempt,
    });
    services.attemptBegan(job, agent);
  }
  job.draft.effects.starts.push({
    ref,
    kind: task.kind,
    publicJobId: job.publicJobId,
    runId: job.runId,
    agentId: nodeId,
    config,
    maxAttempts: maxAttempts(agent),
    idempotencyKey: `${job.runId}:${nodeId}:${messageId(job.runId, task.message.seq)}`,
    sandboxName,
    lease,
    envelope: toEnvelope(task.message, job, nodeId, task.attempt),
    agentState: agent.state,
    workflow: { graph_id: job.graph.graphId, job_name: job.graph.jobName, type: job.graph.type },
    bundleFingerprint: job.insert.bundleFingerprint,
    hasOwnPayload: job.insert.hasOwnPayload,
    configurationJson: job.insert.configurationJson,
    traceparent: traceparent(
      job.insert.trace.traceId,
      attemptSpan(job.runId, { task: task.seq, attempt: task.attempt }).id,
    ),
    humanResponses: human.answersFor(job, task),
    timeoutMs: timeoutMs(agent),
  });
  job.enqueue(agent);
}

function maxAttempts(agent: AgentSlot): number {
  const { config } = agent.node;
  return config.kind === "executor" || config.kind === "module" ? config.maxAttempts : 1;
}

function timeoutMs(agent: AgentSlot): number | null {
  const { config } = agent.node;
  if (config.kind !== "executor" && config.kind !== "module") return null;
  return config.timeoutSeconds === 0 ? null : config.timeoutSeconds * 1_000;
}

/** Whole milliseconds between two readings of the wall clock, which may have been set back between them. */
function elapsedMs(fromMs: number, toMs: number): number {
  return Math.max(0, Math.round(toMs - fromMs));
}

function leasePayload(lease: Lease) {
  return { lease_id: lease.leaseId, pool: lease.pool, slots: lease.slots };
}

/** The current attempt, if the report is about it (T2). */
export function currentAttempt(job: Job, ref: TaskRef): { task: Task; running: RunningState } | null {
  const task = job.tasks.get(ref.taskSeq);
  if (task?.state.kind !== "running" || task.attempt !== ref.attempt) return null;
  return { task, running: task.state };
}

/** The node whose command the report is about; null when the report is stale, or about no command (T2). */
export function commandNode(job: Job, ref: TaskRef): GraphNode | null {
  const current = currentAttempt(job, ref);
  return current?.task.kind === "command" ? job.agents[current.task.agentIndex]!.node : null;
}

type RunningState = Extract<TaskState, { kind: "running" }>;

/** An attempt has ended. @returns false when the report is stale or a duplicate (T2) */
export function taskEnded(job: Job, ref: TaskRef, outcome: TaskOutcome): boolean {
  const current = currentAttempt(job, ref);
  if (current === null) return false;
  const { task, running } = current;
  const agent = job.agents[task.agentIndex]!;
  recordArtifacts(job, agent, outcome);
  if (task.kind === "command") recordCommandEnd(job, agent, task, outcome, running);
  releaseLease(job, agent, task, running, outcome.kind);
  if (outcome.kind === "interrupted") interrupted(job, agent, task, outcome.reason);
  else if (outcome.kind === "failed" && retries(agent, task, outcome)) retryLater(job, agent, task, outcome);
  else end(job, agent, task, outcome);
  return true;
}

function recordArtifacts(job: Job, agent: AgentSlot, outcome: TaskOutcome): void {
  if (outcome.kind === "interrupted") return;
  for (const artifact of outcome.artifacts) {
    job.draft.artifacts.push(artifact);
    job.tally.artifacts++;
    noteOutput(job, artifact);
    job.tally.artifactBytes += artifact.size;
    job.event("artifact_written", agent.node.nodeId, {
      artifact_id: artifact.artifactId,
      name: artifact.name,
      kind: artifact.kind,
      size: artifact.size,
      sha256: artifact.sha256,
    });
  }
}

function recordCommandEnd(
  job: Job,
  agent: AgentSlot,
  task: Task,
  outcome: TaskOutcome,
  { sandboxName, lease }: RunningState,
): void {
  if (outcome.kind === "interrupted") return;
  const usage = outcome.command?.usage ?? null;
  job.tally.cpuMs += usage?.cpuMs ?? 0;
  job.tally.rssBytesMax = Math.max(job.tally.rssBytesMax, usage?.rssBytesMax ?? 0);
  const payload = {
    task: task.seq,
    sandbox_name: sandboxName,
    exit_code: outcome.command?.exitCode ?? null,
    pool: lease?.pool ?? null,
    attempt: task.attempt,
    duration_ms: outcome.command?.durationMs ?? null,
    cpu_ms: usage?.cpuMs ?? null,
    max_rss_bytes: usage?.rssBytesMax ?? null,
  };
  if (outcome.kind === "succeeded") job.event("sandbox_job_completed", agent.node.nodeId, payload);
  else job.event("sandbox_job_failed", agent.node.nodeId, payload, failureOf(job, agent, task, outcome));
}

function releaseLease(job: Job, agent: AgentSlot, task: Task, running: RunningState, reason: string): void {
  if (task.kind === "command") {
    job.runningTasks--;
    services.attemptEnded(job, agent);
  }
  const { lease, startedAtMs } = running;
  if (lease === null) return;
  job.event("executor_lease_released", agent.node.nodeId, {
    task: task.seq,
    attempt: task.attempt,
    ...leasePayload(lease),
    reason,
    held_ms: elapsedMs(startedAtMs, job.context.clock.nowMs()),
  });
}

type FailedOutcome = Extract<TaskOutcome, { kind: "failed" }>;

export function failureOf(job: Job, agent: AgentSlot, task: Task, outcome: FailedOutcome): Failure {
  const { nodeId } = agent.node;
  // Only attempts of commands have spans in the timeline; slots that cannot be had fail a task before its first one.
  const hasSpan = task.kind === "command" && task.attempt > 0;
  const span = hasSpan
    ? attemptSpan(job.runId, { task: task.seq, attempt: task.attempt })
    : agentSpan(job.runId, nodeId);
  return job.makeFailure(outcome.code, outcome.message, span, {
    agentId: nodeId,
    ...(task.attempt > 0 && { attempt: task.attempt }),
    maxAttempts: maxAttempts(agent),
    ...(outcome.command?.exitCode != null && { exitCode: outcome.command.exitCode }),
    ...(outcome.command?.signal != null && { signal: outcome.command.signal }),
    ...(outcome.command?.stderr && { stderrTail: outcome.command.stderr }),
  });
}

function retries(agent: AgentSlot, task: Task, outcome: FailedOutcome): boolean {
  return failureCatalogue[outcome.code].retryable && task.failures + 1 < maxAttempts(agent);
}

function retryLater(job: Job, agent: AgentSlot, task: Task, outcome: FailedOutcome): void {
  task.failures++;
  const { config } = agent.node;
  const baseMs = config.kind === "executor" || config.kind === "module" ? config.retryBackoffMs : 0;
  const fullMs = Math.min(baseMs * 2 ** (task.failures - 1), BACKOFF_MS_MAX);
  // Between half and the whole delay, so that tasks which failed together do not come back together.
  const delayMs = Math.round(fullMs * (0.5 + job.context.randomness.fraction() / 2));
  const dueAtMs = job.context.clock.steadyMs() + delayMs;
  setState(job, task, { kind: "backoff", dueAtMs });
  agent.lastError = outcome.message;
  const payload = {
    task: task.seq,
    failed_attempt: task.attempt,
    delay_ms: delayMs,
    code: outcome.code,
  };
  // A command's failure stands in its own last event; a module has none.
  const failure = task.kind === "command" ? undefined : failureOf(job, agent, task, outcome);
  job.event("sandbox_job_retry_scheduled", agent.node.nodeId, payload, failure);
  job.timer(dueAtMs, { kind: "retry", taskSeq: task.seq });
}

/** A backoff is over; late and superseded timers change nothing. */
export function retryDue(job: Job, taskSeq: number): void {
  const task = job.tasks.get(taskSeq);
  if (task?.state.kind !== "backoff" || job.status !== "running") return;
  requestSlots(job, job.agents[task.agentIndex]!, task);
}

/** The attempt ended through no fault of its own: it is made again, unless the node forbids that (T3). */
function interrupted(job: Job, agent: AgentSlot, task: Task, reason: string): void {
  const { config, nodeId } = agent.node;
  job.event("executor_interrupted", nodeId, { task: task.seq, attempt: task.attempt, reason });
  if (config.kind === "executor" && !config.safeToRetry) {
    end(job, agent, task, {
      kind: "failed",
      code: "runtime.recovered_interrupted",
      message: `Attempt ${task.attempt} of agent "${nodeId}" was interrupted (${reason}), and the node says that it must not run twice.`,
      command: null,
      artifacts: [],
    });
  } else if (job.status === "running") requestSlots(job, agent, task);
  else setState(job, task, { kind: "queued" });
}

/** After a restart: what ran is interrupted, what waited asks again. The job's status decides what may go on. */
export function recoverTask(job: Job, task: Task): void {
  const agent = job.agents[task.agentIndex]!;
  const { state } = task;
  switch (state.kind) {
    case "running":
      if (task.kind === "command") job.runningTasks++;
      releaseLease(job, agent, task, state, "interrupted");
      interrupted(job, agent, task, "the runtime was restarted");
      return;
    case "queued":
      if (job.status === "running") requestSlots(job, agent, task);
      return;
    case "backoff":
      job.timer(state.dueAtMs, { kind: "retry", taskSeq: task.seq });
      return;
    case "ended":
      job.enqueue(agent);
      return;
    default:
      state satisfies never;
  }
}

/** Keeps the outcome until the agent looks at it: at once, or after a pause. */
function end(job: Job, agent: AgentSlot, task: Task, outcome: TaskOutcome): void {
  const kept = outcome.kind === "interrupted" ? outcome : { ...outcome, artifacts: [] };
  const { lease, sandboxName } =
    task.state.kind === "running" ? task.state : { lease: null, sandboxName: "" };
  setState(job, task, { kind: "ended", outcome: kept, lease, sandboxName });
  job.enqueue(agent);
}

/** Gives a task up because its agent or its job is over: what runs is stopped, what waits is taken back (T4). */
export function abandon(job: Job, task: Task): void {
  const agent = job.agents[task.agentIndex]!;
  if (task.state.kind === "running") {
    const ref = { jobId: job.jobId, taskSeq: task.seq, attempt: task.attempt };
    // A command whose start is not even on disk yet is simply never started.
    if (job.draft.withdrawStart(ref)) job.context.slots.release(slotsKey(ref));
    else job.draft.effects.stops.push(ref);
    releaseLease(job, agent, task, task.state, "cancelled");
  } else withdrawRequest(job, task);
  removeTask(job, agent, task);
}

/** Takes a waiting request back, so that a paused job is granted nothing. */
export function withdrawRequest(job: Job, task: Task): void {
  if (task.state.kind === "queued") job.context.slots.release(slotsKey(nextAttempt(job, task)));
}

export function removeTask(job: Job, agent: AgentSlot, task: Task): void {
  job.tasks.delete(task.seq);
  job.draft.dirtyTasks.delete(task.seq);
  job.draft.tasksRemoved.push(task.seq);
  job.draft.dirtyAgents.add(agent.node.index);
  agent.task = null;
  human.taskGone(job, agent, task.seq);
  job.waitingChars -= task.message.chars;
  if (holdsJobOpen(agent)) job.openTasks--;
}

function setState(job: Job, task: Task, state: TaskState): void {
  task.state = state;
  job.draft.dirtyTasks.add(task.seq);
  job.draft.dirtyAgents.add(task.agentIndex);
}
