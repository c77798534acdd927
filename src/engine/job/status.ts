// The legal changes of a job's status: pausing, resuming, ending, and the final status of its agents
// and outputs: a graph that stops early has warnings.
//
//   running  -> paused -> running
//   running, paused -> completed | failed | cancelled, once and for good

import { sensorDueAtMs } from "../agents/sensor.ts";
import type { Failure, FailureContext } from "../failure.ts";
import type { FailureCode } from "../failure-catalogue.ts";
import { isLongLived, outputName } from "../graph.ts";
import { isObject, type JsonValue } from "../json.ts";
import { withoutSealed } from "../sealed.ts";
import { type AgentEnds, endWarnings, type JobEnds } from "../tally.ts";
import { runSpan } from "../trace.ts";
import { addAgentCompleted, addEvent, failureOfRun } from "./history.ts";
import { armTimer, waitsForPerson } from "./human-requests.ts";
import { setTimer } from "./schedule.ts";
import { jobEnded } from "./services.ts";
import { type AgentState, isOver, type Job } from "./state.ts";
import { abandon, requestSlots, withdrawRequest } from "./tasks.ts";

/** Agents and outputs that are named; more are only counted. */
const NAMES_MAX = 20;

/**
 * A value that is no object is wrapped as {value}. Secrets that came with the inputs are no part of a result.
 *
 * @param isQuiescent whether the job ends because nothing is left to do, and not because an agent completed it
 */
export function complete(job: Job, result: JsonValue, isQuiescent = false): void {
  const shown = withoutSealed(result);
  job.result = isObject(shown) ? shown : { value: shown };
  const { notReached, missingOutputs: missing } = end(job, "completed", isQuiescent);
  for (const agent of job.agents) {
    if (agent.started && !agent.failed && !agent.done && !agent.isCutOff) addAgentCompleted(job, agent);
  }
  addEvent(job, "job_completed", null, {
    ...(job.partial && { partial: true }),
    ...(notReached.length > 0 && { not_reached: notReached }),
    ...(missing.length > 0 && { missing_outputs: missing }),
    ...durationOf(job),
  });
}

export function fail(job: Job, failure: Failure): void {
  // A failure that no event has reported yet is reported by the last one.
  const isReported = Number(failure.event_id) <= job.eventSeq;
  end(job, "failed", false);
  job.failure = isReported ? failure : { ...failure, event_id: String(job.eventSeq + 1) };
  const { code, desc } = failure;
  addEvent(job, "job_failed", null, { code, desc, ...durationOf(job) }, job.failure);
}

/** Ends the run as failed, for a reason that is no attempt's. */
export function failRun(job: Job, code: FailureCode, message: string, context?: FailureContext): void {
  fail(job, failureOfRun(job, code, message, runSpan(job.runId), context));
}

export function cancel(job: Job): void {
  end(job, "cancelled", false);
  addEvent(job, "job_cancelled", null, durationOf(job));
}

function durationOf(job: Job): { readonly duration_ms: number } {
  const startedAtMs = job.startedAtMs ?? job.insert.submittedAtMs;
  return { duration_ms: Math.max(0, job.context.clock.nowMs() - startedAtMs) };
}

/**
 * Ends everything that is under way; the terminal event follows. A job ends once. The status is set first: a
 * slot that comes free meanwhile must not go to this job again.
 */
function end(job: Job, status: "completed" | "failed" | "cancelled", isQuiescent: boolean): JobEnds {
  if (isOver(job)) throw new Error(`Job ${job.jobId} ended twice.`);
  job.status = status;
  // Before what is under way is taken from the agents.
  const ends = endsOf(job, isQuiescent);
  job.tally.ends = ends;
  if (ends.missingOutputsCount > 0) job.partial = true;
  for (const { message } of endWarnings(ends)) {
    addEvent(job, "log", null, { level: "warn", stream: "runtime", message });
  }
  for (const task of [...job.tasks.values()]) abandon(job, task);
  jobEnded(job);
  return ends;
}

function endsOf(job: Job, isQuiescent: boolean): JobEnds {
  const agents: AgentEnds = { done: 0, failed: 0, cancelled: 0, skipped: 0, not_reached: 0 };
  const notReached: string[] = [];
  for (const agent of job.agents) {
    const agentEnd = endOf(job, agent, isQuiescent);
    agents[agentEnd]++;
    if (agentEnd === "cancelled") {
      agent.isCutOff = true;
      job.draft.changedAgents.add(agent.node.index);
    }
    if (agentEnd === "not_reached" && notReached.length < NAMES_MAX) notReached.push(agent.node.nodeId);
  }
  const missing = job.status === "completed" ? missingOutputs(job) : [];
  return {
    agents,
    notReached,
    missingOutputs: missing.slice(0, NAMES_MAX),
    missingOutputsCount: missing.length,
  };
}

function endOf(job: Job, agent: AgentState, isQuiescent: boolean): keyof AgentEnds {
  const { node } = agent;
  if (agent.failed) return "failed";
  // A long-lived worker that is no source ends with its job, whenever that is.
  if (agent.done || (agent.started && isLongLived(node) && !node.isSource)) return "done";
  if (!agent.started) return isQuiescent ? "not_reached" : "skipped";
  if (node.config.kind === "sensor") return job.status === "completed" ? "done" : "cancelled";
  const isAtWork = agent.task !== null || agent.mailbox.size > 0 || waitsForPerson(job, agent);
  return isAtWork ? "cancelled" : "done";
}

/** Outputs that the manifest lists and no worker wrote. */
export function missingOutputs({ graph, tally }: Job): readonly string[] {
  return graph.outputs.filter((_, index) => !tally.outputs.includes(index)).map(outputName);
}

/** Stops dispatch. Running tasks go on; their results wait. Pausing a paused job changes nothing. */
export function pause(job: Job): void {
  if (job.status !== "running") return;
  job.status = "paused";
  for (const task of job.tasks.values()) withdrawRequest(job, task);
  job.pausedAtMs = job.context.clock.steadyMs();
  addEvent(job, "job_paused", null, {});
}

/** Lets a paused job go on. Its deadline moves by as long as it was held. */
export function resume(job: Job): void {
  if (job.status !== "paused") return;
  const steadyMs = job.context.clock.steadyMs();
  if (job.deadlineAtMs !== null && job.pausedAtMs !== null) job.deadlineAtMs += steadyMs - job.pausedAtMs;
  job.pausedAtMs = null;
  job.status = "running";
  addEvent(job, "job_resumed", null, {});
  for (const task of [...job.tasks.values()]) {
    if (task.state.kind === "queued") requestSlots(job, task);
  }
  armTimers(job);
}

/** The job's own time limit; a deadline that was moved meanwhile changes nothing. */
export function deadlineDue(job: Job, steadyMs: number): void {
  if (job.status !== "running" || job.deadlineAtMs === null || job.deadlineAtMs > steadyMs) return;
  const seconds = (job.graph.timeoutMs ?? 0) / 1_000;
  failRun(job, "job.timeout", `The job did not end within its timeout_seconds of ${seconds}.`);
}

/** Sets every timer that the job's state speaks of; earlier settings of the same timers do no harm. */
export function armTimers(job: Job): void {
  if (job.deadlineAtMs !== null) setTimer(job, job.deadlineAtMs, { kind: "deadline" });
  for (const task of job.tasks.values()) {
    if (task.state.kind === "backoff")
      setTimer(job, task.state.dueAtMs, { kind: "retry", taskSeq: task.seq });
  }
  for (const agent of job.agents) {
    const dueAtMs = sensorTimerOf(agent);
    if (dueAtMs !== null) setTimer(job, dueAtMs, { kind: "sensor", agentIndex: agent.node.index });
  }
  for (const entry of job.human.pending.values()) armTimer(job, entry);
}

/** When the timer of a sensor that still waits is due; null for every other agent. */
export function sensorTimerOf({ node, done, state }: AgentState): number | null {
  return node.config.kind === "sensor" && !done ? sensorDueAtMs(state) : null;
}
