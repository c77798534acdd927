// A job that leaves this engine for another one: it begins no attempt here any more, and goes once none of it runs.

import { isLongLived } from "../graph.ts";
import { addEvent } from "./history.ts";
import { agentOf, isOver, type Job, refOf, type Task } from "./state.ts";
import { requestSlots, withdrawRequest } from "./tasks.ts";

/** Takes back what the job waits for here. It is marked before: what comes free by that is not for one that leaves. */
export function withdraw(job: Job): void {
  for (const task of job.tasks.values()) withdrawRequest(job, task);
}

/** The job stays after all: what waited for its next attempt asks for slots. */
export function stay(job: Job): void {
  job.isLeaving = false;
  if (job.status !== "running") return;
  for (const task of [...job.tasks.values()]) if (task.state.kind === "queued") requestSlots(job, task);
}

/**
 * Asks attempts to end that would never end by themselves, once nothing else of the job runs. Those that must not run
 * twice are left alone.
 *
 * @returns whether there were some
 */
export function stopEndless(job: Job): boolean {
  const running = runningOf(job);
  const areAllEndless = running.every((task) => isEndless(job, task) && mayRunTwice(job, task));
  return areAllEndless && stop(job, running);
}

/** Asks everything that runs to end. @returns whether there was something */
export function stopAll(job: Job): boolean {
  return stop(job, runningOf(job));
}

/** Behind the batch under way, which may be the one that starts them. */
function stop(job: Job, running: readonly Task[]): boolean {
  for (const task of running) job.draft.effects.stops.push(refOf(job, task));
  return running.length > 0;
}

/** Whether the job's next part may be its last one here. */
export function mayGo(job: Job): boolean {
  return job.isLeaving && !isOver(job) && runningOf(job).length === 0;
}

/** The next part of the job is its last one here. */
export function go(job: Job): void {
  addEvent(job, "job_handed_over", null, { epoch: job.epoch });
  if (job.hasServices) job.draft.effects.services.push({ kind: "job_closed", jobId: job.jobId });
  job.draft.isLast = true;
}

export function runningOf({ tasks }: Job): readonly Task[] {
  return [...tasks.values()].filter(({ state }) => state.kind === "running");
}

function isEndless(job: Job, task: Task): boolean {
  return task.kind === "file" || isLongLived(agentOf(job, task).node);
}

function mayRunTwice(job: Job, task: Task): boolean {
  const { config } = agentOf(job, task).node;
  return config.kind !== "executor" || config.safeToRetry;
}
