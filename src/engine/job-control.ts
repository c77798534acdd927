// How a job ends, and how it is held and let go: the legal changes of its status.
//
//   running  -> paused -> running
//   running, paused -> completed | failed | cancelled, once and for good

import type { Failure } from "./failure.ts";
import type { Job } from "./job.ts";
import { settle } from "./job-ends.ts";
import * as human from "./job-human.ts";
import * as services from "./job-services.ts";
import * as jobTasks from "./job-tasks.ts";
import { isObject, type JsonValue } from "./json.ts";
import { withoutSealed } from "./sealed.ts";

/** A value that is no object is wrapped as {value}. Secrets that came with the inputs are no part of a result. */
export function complete(job: Job, result: JsonValue): void {
  const shown = withoutSealed(result);
  job.result = isObject(shown) ? shown : { value: shown };
  end(job, "completed");
  for (const agent of job.agents) {
    if (!agent.started || agent.failed || agent.done || agent.isCutOff) continue;
    job.event("agent_completed", agent.node.nodeId, { processed_messages: agent.processed });
  }
  const { notReached, missingOutputs } = job.tally.ends!;
  job.event("job_completed", null, {
    ...(job.partial && { partial: true }),
    ...(notReached.length > 0 && { not_reached: notReached }),
    ...(missingOutputs.length > 0 && { missing_outputs: missingOutputs }),
    ...durationOf(job),
  });
}

export function fail(job: Job, failure: Failure): void {
  // A failure that no event has reported yet is reported by the last one.
  const isReported = Number(failure.event_id) <= job.eventSeq;
  end(job, "failed");
  job.failure = isReported ? failure : { ...failure, event_id: String(job.eventSeq + 1) };
  job.event("job_failed", null, { code: failure.code, desc: failure.desc, ...durationOf(job) }, job.failure);
}

export function cancel(job: Job): void {
  end(job, "cancelled");
  job.event("job_cancelled", null, durationOf(job));
}

function durationOf(job: Job): { readonly duration_ms: number } {
  const startedAtMs = job.startedAtMs ?? job.insert.submittedAtMs;
  return { duration_ms: Math.max(0, job.context.clock.nowMs() - startedAtMs) };
}

/**
 * Ends everything that is under way; the terminal event follows. A job ends once (M5). The status is set first: a
 * slot that comes free meanwhile must not go to this job again.
 */
function end(job: Job, status: "completed" | "failed" | "cancelled"): void {
  if (job.isOver) throw new Error(`Job ${job.jobId} ended twice.`);
  job.status = status;
  settle(job);
  for (const task of [...job.tasks.values()]) jobTasks.abandon(job, task);
  services.jobEnded(job);
}

/** Stops dispatch. Running tasks go on; their results wait. Pausing a paused job changes nothing. */
export function pause(job: Job): void {
  if (job.status !== "running") return;
  job.status = "paused";
  for (const task of job.tasks.values()) jobTasks.withdrawRequest(job, task);
  job.pausedAtMs = job.context.clock.steadyMs();
  job.event("job_paused", null, {});
}

/** Lets a paused job go on. Its deadline moves by as long as it was held. */
export function resume(job: Job): void {
  if (job.status !== "paused") return;
  const steadyMs = job.context.clock.steadyMs();
  if (job.deadlineAtMs !== null && job.pausedAtMs !== null) job.deadlineAtMs += steadyMs - job.pausedAtMs;
  job.pausedAtMs = null;
  job.status = "running";
  job.event("job_resumed", null, {});
  for (const task of [...job.tasks.values()]) {
    if (task.state.kind === "queued") jobTasks.requestSlots(job, job.agents[task.agentIndex]!, task);
  }
  armTimers(job);
}

/** Sets every timer that the job's state speaks of; earlier settings of the same timers do no harm. */
export function armTimers(job: Job): void {
  if (job.deadlineAtMs !== null) job.timer(job.deadlineAtMs, { kind: "deadline" });
  for (const task of job.tasks.values()) {
    if (task.state.kind === "backoff") job.timer(task.state.dueAtMs, { kind: "retry", taskSeq: task.seq });
  }
  for (const agent of job.agents) {
    const dueAtMs = job.sensorDueAtMs(agent);
    if (dueAtMs !== null) job.timer(dueAtMs, { kind: "sensor", agentIndex: agent.node.index });
  }
  human.armTimers(job);
}

/** The job's own time limit; a deadline that was moved meanwhile changes nothing. */
export function deadlineDue(job: Job, steadyMs: number): void {
  if (job.status !== "running" || job.deadlineAtMs === null || job.deadlineAtMs > steadyMs) return;
  const seconds = (job.graph.timeoutMs ?? 0) / 1_000;
  job.failRun("job.timeout", `The job did not end within its timeout_seconds of ${seconds}.`);
}
