// What a running attempt tells its job, and what it is told, until it ends (job-tasks.ts).

import { stepWorkerActions } from "./agents/executor.ts";
import type { AgentSlot, Job } from "./job.ts";
import * as human from "./job-human.ts";
import { currentAttempt } from "./job-tasks.ts";
import { limits } from "./limits.ts";
import { type Message, toEnvelope } from "./message.ts";
import type { TaskEvent, TaskRef, WorkerActions } from "./task-port.ts";

/**
 * Events of a running attempt, checked by the runner. Logs beyond the run's limit end with one mark.
 * @returns the characters that this added to the history
 */
export function taskEvents(job: Job, ref: TaskRef, events: readonly TaskEvent[]): number {
  const current = currentAttempt(job, ref);
  if (current === null) return 0;
  const agent = job.agents[current.task.agentIndex]!;
  const agentId = agent.node.nodeId;
  let added = 0;
  for (const { type, payload } of events) {
    if (type === human.HUMAN_INPUT_REQUESTED) added += human.ask(job, agent, payload, current.task.message);
    else if (type !== "log") added += job.event(type, agentId, payload);
    else if (job.logBytes < limits.runLogBytesMax) {
      const chars = job.event(type, agentId, payload);
      job.logBytes += chars;
      added += chars;
      if (job.logBytes >= limits.runLogBytesMax) {
        job.event("log_truncated", agentId, { log_bytes: job.logBytes, limit_bytes: limits.runLogBytesMax });
      }
    }
  }
  return added;
}

/** A long-lived command acts while it runs. */
export function taskActions(job: Job, ref: TaskRef, actions: WorkerActions): boolean {
  const current = currentAttempt(job, ref);
  if (current === null) return false;
  const { task } = current;
  const agent = job.agents[task.agentIndex]!;
  job.apply(agent, stepWorkerActions(agent.state, actions), task.message);
  return true;
}

/** Hands a message to the agent's long-lived command. */
export function sendToWorker(job: Job, agent: AgentSlot, message: Message): void {
  const { task } = agent;
  if (task === null || task.state.kind !== "running") return;
  job.draft.effects.sends.push({
    ref: { jobId: job.jobId, taskSeq: task.seq, attempt: task.attempt },
    envelope: toEnvelope(message, job, agent.node.nodeId, task.attempt),
  });
}
