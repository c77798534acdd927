// Who works next: the queue of agents that can do something now, and timers for what waits.

import { isLongLived } from "../graph.ts";
import type { TimerWhat } from "../timers.ts";
import type { AgentState, Job } from "./state.ts";

/** Puts an agent into the ready queue if it can do something now. */
export function enqueue(job: Job, agent: AgentState): void {
  if (agent.isQueued) return;
  if (agent.task?.state.kind !== "ended" && !(agent.mailbox.size > 0 && canTake(agent))) return;
  agent.isQueued = true;
  job.ready.push(agent.node.index);
}

/** Whether the agent may take its next message. */
export function canTake({ task, node }: AgentState): boolean {
  if (task === null || node.config.kind === "sensor") return true;
  return isLongLived(node) && task.state.kind === "running";
}

/** @param dueAtMs on the steady clock */
export function setTimer({ context, jobId }: Job, dueAtMs: number, what: TimerWhat): void {
  context.timers.push({ dueAtMs, jobId, what });
}
