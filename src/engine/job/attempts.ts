// How attempts end: outcomes, failures and retries, interruptions, and what a restart finds.
//
// T2. Only the current attempt's first outcome counts; any other report changes nothing.
// T3. An attempt that was interrupted from outside does not count against max_attempts.

import type { Failure } from "../failure.ts";
import { failureCatalogue } from "../failure-catalogue.ts";
import { outputName } from "../graph.ts";
import type { ArtifactRecord, TaskOutcome, TaskRef } from "../task-port.ts";
import { agentSpan, attemptSpan } from "../trace.ts";
import { addEvent, failureOfRun } from "./history.ts";
import { enqueue, setTimer } from "./schedule.ts";
import type { AgentState, Job, Task } from "./state.ts";
import {
  currentAttempt,
  endTask,
  maxAttempts,
  type RunningState,
  releaseLease,
  requestSlots,
  setTaskState,
} from "./tasks.ts";

const BACKOFF_MS_MAX = 5 * 60 * 1_000;

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
  else endTask(job, agent, task, outcome);
  return true;
}

function recordArtifacts(job: Job, agent: AgentState, outcome: TaskOutcome): void {
  if (outcome.kind === "interrupted") return;
  for (const artifact of outcome.artifacts) {
    job.draft.artifacts.push(artifact);
    job.tally.artifacts++;
    noteOutput(job, artifact);
    job.tally.artifactBytes += artifact.size;
    addEvent(job, "artifact_written", agent.node.nodeId, {
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
  agent: AgentState,
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
  if (outcome.kind === "succeeded") addEvent(job, "sandbox_job_completed", agent.node.nodeId, payload);
  else addEvent(job, "sandbox_job_failed", agent.node.nodeId, payload, failureOf(job, agent, task, outcome));
}

type FailedOutcome = Extract<TaskOutcome, { kind: "failed" }>;

export function failureOf(job: Job, agent: AgentState, task: Task, outcome: FailedOutcome): Failure {
  const { nodeId } = agent.node;
  // Only attempts of commands have spans in the timeline; slots that cannot be had fail a task before its first one.
  const hasSpan = task.kind === "command" && task.attempt > 0;
  const span = hasSpan
    ? attemptSpan(job.runId, { task: task.seq, attempt: task.attempt })
    : agentSpan(job.runId, nodeId);
  return failureOfRun(job, outcome.code, outcome.message, span, {
    agentId: nodeId,
    ...(task.attempt > 0 && { attempt: task.attempt }),
    maxAttempts: maxAttempts(agent),
    ...(outcome.command?.exitCode != null && { exitCode: outcome.command.exitCode }),
    ...(outcome.command?.signal != null && { signal: outcome.command.signal }),
    ...(outcome.command?.stderr && { stderrTail: outcome.command.stderr }),
  });
}

function retries(agent: AgentState, task: Task, outcome: FailedOutcome): boolean {
  return failureCatalogue[outcome.code].retryable && task.failures + 1 < maxAttempts(agent);
}

function retryLater(job: Job, agent: AgentState, task: Task, outcome: FailedOutcome): void {
  task.failures++;
  const { config } = agent.node;
  const baseMs = config.kind === "executor" || config.kind === "module" ? config.retryBackoffMs : 0;
  const fullMs = Math.min(baseMs * 2 ** (task.failures - 1), BACKOFF_MS_MAX);
  // Between half and the whole delay, so that tasks which failed together do not come back together.
  const delayMs = Math.round(fullMs * (0.5 + job.context.randomness.fraction() / 2));
  const dueAtMs = job.context.clock.steadyMs() + delayMs;
  setTaskState(job, task, { kind: "backoff", dueAtMs });
  agent.lastError = outcome.message;
  const payload = {
    task: task.seq,
    failed_attempt: task.attempt,
    delay_ms: delayMs,
    code: outcome.code,
  };
  // A command's failure stands in its own last event; a module has none.
  const failure = task.kind === "command" ? undefined : failureOf(job, agent, task, outcome);
  addEvent(job, "sandbox_job_retry_scheduled", agent.node.nodeId, payload, failure);
  setTimer(job, dueAtMs, { kind: "retry", taskSeq: task.seq });
}

/** A backoff is over; late and superseded timers change nothing. */
export function retryDue(job: Job, taskSeq: number): void {
  const task = job.tasks.get(taskSeq);
  if (task?.state.kind !== "backoff" || job.status !== "running") return;
  requestSlots(job, job.agents[task.agentIndex]!, task);
}

/** The attempt ended through no fault of its own: it is made again, unless the node forbids that (T3). */
function interrupted(job: Job, agent: AgentState, task: Task, reason: string): void {
  const { config, nodeId } = agent.node;
  addEvent(job, "executor_interrupted", nodeId, { task: task.seq, attempt: task.attempt, reason });
  if (config.kind === "executor" && !config.safeToRetry) {
    endTask(job, agent, task, {
      kind: "failed",
      code: "runtime.recovered_interrupted",
      message: `Attempt ${task.attempt} of agent "${nodeId}" was interrupted (${reason}), and the node says that it must not run twice.`,
      command: null,
      artifacts: [],
    });
  } else if (job.status === "running") requestSlots(job, agent, task);
  else setTaskState(job, task, { kind: "queued" });
}

/** After a restart: what ran is interrupted, what waited asks again. The job's status decides what may go on. */
export function recoverTask(job: Job, task: Task): void {
  const agent = job.agents[task.agentIndex]!;
  const { state } = task;
  switch (state.kind) {
    case "running":
      releaseLease(job, agent, task, state, "interrupted");
      interrupted(job, agent, task, "the runtime was restarted");
      return;
    case "queued":
      if (job.status === "running") requestSlots(job, agent, task);
      return;
    case "backoff":
      setTimer(job, state.dueAtMs, { kind: "retry", taskSeq: task.seq });
      return;
    case "ended":
      enqueue(job, agent);
      return;
    default:
      state satisfies never;
  }
}

/** Notes which of the declared outputs this file is, if it is one. */
function noteOutput({ graph, tally }: Job, { name }: ArtifactRecord): void {
  const index = graph.outputs.findIndex((output) => outputName(output) === name);
  if (index >= 0 && !tally.outputs.includes(index)) tally.outputs = [...tally.outputs, index];
}
