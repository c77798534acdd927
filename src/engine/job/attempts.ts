// How attempts end: outcomes, failures and retries, interruptions, and what a restart finds.
//
// - Only the current attempt's first outcome counts; any other report changes nothing.
// - An attempt that was interrupted from outside does not count against max_attempts.

import type { Failure } from "../failure.ts";
import { failureCatalogue } from "../failure-catalogue.ts";
import { outputName } from "../graph.ts";
import { weaker } from "../resources.ts";
import type { ArtifactRecord, TaskOutcome, TaskRef } from "../task-port.ts";
import { agentSpan, attemptSpan } from "../trace.ts";
import { addEvent, failureOfRun } from "./history.ts";
import { enqueue, setTimer } from "./schedule.ts";
import { agentOf, type Job, type Task } from "./state.ts";
import {
  currentAttempt,
  endTask,
  executionOf,
  failedOutcome,
  type RunningState,
  releaseLease,
  requestSlots,
  setTaskState,
} from "./tasks.ts";

const BACKOFF_MS_MAX = 5 * 60 * 1_000;

/** An attempt has ended. @returns false when the report is stale or a duplicate */
export function taskEnded(job: Job, ref: TaskRef, outcome: TaskOutcome): boolean {
  const current = currentAttempt(job, ref);
  if (current === null) return false;
  const { task, running } = current;
  if (outcome.kind !== "interrupted") {
    for (const artifact of outcome.artifacts) addArtifact(job, task, artifact);
    if (task.kind === "command") recordCommandEnd(job, task, outcome, running);
  }
  releaseLease(job, task, running, outcome.kind);
  if (outcome.kind === "interrupted")
    interrupted(job, task, job.isLeaving ? "its node is drained" : outcome.reason);
  else if (outcome.kind === "failed" && retries(job, task, outcome)) retryLater(job, task, outcome);
  else endTask(job, task, outcome);
  return true;
}

function addArtifact(job: Job, task: Task, artifact: ArtifactRecord): void {
  const { graph, tally, draft } = job;
  const { artifactId: artifact_id, name, kind, size, sha256 } = artifact;
  draft.artifacts.push(artifact);
  tally.artifacts++;
  tally.artifactBytes += size;
  const output = graph.outputs.findIndex((one) => outputName(one) === name);
  if (output >= 0 && !tally.outputs.includes(output)) tally.outputs = [...tally.outputs, output];
  const { nodeId } = agentOf(job, task).node;
  addEvent(job, "artifact_written", nodeId, { artifact_id, name, kind, size, sha256 });
}

function recordCommandEnd(
  job: Job,
  task: Task,
  outcome: Exclude<TaskOutcome, { kind: "interrupted" }>,
  { sandboxName, lease }: RunningState,
): void {
  const { nodeId } = agentOf(job, task).node;
  const { command } = outcome;
  const usage = command?.usage ?? null;
  job.tally.cpuMs += usage?.cpuMs ?? 0;
  job.tally.rssBytesMax = Math.max(job.tally.rssBytesMax, usage?.rssBytesMax ?? 0);
  const { enforcement } = command ?? {};
  if (enforcement !== undefined)
    job.tally.enforcement = weaker(job.tally.enforcement ?? enforcement, enforcement);
  const payload = {
    task: task.seq,
    sandbox_name: sandboxName,
    exit_code: command?.exitCode ?? null,
    pool: lease?.pool ?? null,
    attempt: task.attempt,
    duration_ms: command?.durationMs ?? null,
    cpu_ms: usage?.cpuMs ?? null,
    max_rss_bytes: usage?.rssBytesMax ?? null,
  };
  if (outcome.kind === "succeeded") addEvent(job, "sandbox_job_completed", nodeId, payload);
  else addEvent(job, "sandbox_job_failed", nodeId, payload, failureOf(job, task, outcome));
}

type FailedOutcome = Extract<TaskOutcome, { kind: "failed" }>;

export function failureOf(job: Job, task: Task, { code, message, command }: FailedOutcome): Failure {
  const agent = agentOf(job, task);
  const { nodeId } = agent.node;
  const { seq, attempt } = task;
  // Only attempts of commands have spans in the timeline; slots that cannot be had fail a task before its first one.
  const hasSpan = task.kind === "command" && attempt > 0;
  const span = hasSpan ? attemptSpan(job.runId, { task: seq, attempt }) : agentSpan(job.runId, nodeId);
  return failureOfRun(job, code, message, span, {
    agentId: nodeId,
    ...(attempt > 0 && { attempt }),
    maxAttempts: executionOf(agent).maxAttempts,
    ...(command?.exitCode != null && { exitCode: command.exitCode }),
    ...(command?.signal != null && { signal: command.signal }),
    ...(command?.stderr && { stderrTail: command.stderr }),
  });
}

function retries(job: Job, task: Task, { code }: FailedOutcome): boolean {
  const { maxAttempts } = executionOf(agentOf(job, task));
  return failureCatalogue[code].retryable && task.failures + 1 < maxAttempts;
}

function retryLater(job: Job, task: Task, outcome: FailedOutcome): void {
  const { clock, randomness } = job.context;
  const agent = agentOf(job, task);
  task.failures++;
  const fullMs = Math.min(executionOf(agent).retryBackoffMs * 2 ** (task.failures - 1), BACKOFF_MS_MAX);
  // Between half and the whole delay, so that tasks which failed together do not come back together.
  const delayMs = Math.round(fullMs * (0.5 + randomness.fraction() / 2));
  const dueAtMs = clock.steadyMs() + delayMs;
  setTaskState(job, task, { kind: "backoff", dueAtMs });
  agent.lastError = outcome.message;
  const { seq, attempt: failed_attempt } = task;
  const payload = { task: seq, failed_attempt, delay_ms: delayMs, code: outcome.code };
  // A command's failure is in its own last event; a module has none.
  const failure = task.kind === "command" ? undefined : failureOf(job, task, outcome);
  addEvent(job, "sandbox_job_retry_scheduled", agent.node.nodeId, payload, failure);
  setTimer(job, dueAtMs, { kind: "retry", taskSeq: seq });
}

/** A backoff is over; late and superseded timers change nothing. */
export function retryDue(job: Job, taskSeq: number): void {
  const task = job.tasks.get(taskSeq);
  if (task?.state.kind !== "backoff" || job.status !== "running") return;
  if (task.state.dueAtMs > job.context.clock.steadyMs()) return;
  requestSlots(job, task);
}

/**
 * The attempt ended through no fault of its own: it is made again, unless the node forbids that.
 *
 * @param endedAtMs when it has ended for certain, on the steady clock
 */
function interrupted(job: Job, task: Task, reason: string, endedAtMs = Number.NEGATIVE_INFINITY): void {
  const { config, nodeId } = agentOf(job, task).node;
  addEvent(job, "executor_interrupted", nodeId, { task: task.seq, attempt: task.attempt, reason });
  if (config.kind === "executor" && !config.safeToRetry) {
    const attempt = `Attempt ${task.attempt} of agent "${nodeId}" was interrupted (${reason})`;
    const message = `${attempt}, and the node says that it must not run twice.`;
    endTask(job, task, failedOutcome("runtime.recovered_interrupted", message));
  } else if (endedAtMs > job.context.clock.steadyMs()) {
    setTaskState(job, task, { kind: "backoff", dueAtMs: endedAtMs });
    setTimer(job, endedAtMs, { kind: "retry", taskSeq: task.seq });
  } else if (job.status === "running") requestSlots(job, task);
  else setTaskState(job, task, { kind: "queued" });
}

/** After a restart: what ran is interrupted, what waited asks again. The job's status decides what may go on. */
export function recoverTask(job: Job, task: Task): void {
  const { state } = task;
  switch (state.kind) {
    case "running": {
      const { lease } = state;
      releaseLease(job, task, state, "interrupted");
      const endedAtMs = lease === null ? undefined : job.context.slots.endOfFormer(lease);
      interrupted(job, task, "the runtime was restarted", endedAtMs);
      return;
    }
    case "queued":
      if (job.status === "running") requestSlots(job, task);
      return;
    case "backoff":
      setTimer(job, state.dueAtMs, { kind: "retry", taskSeq: task.seq });
      return;
    case "ended":
      enqueue(job, agentOf(job, task));
      return;
    default:
      state satisfies never;
  }
}
