// What a task's outcome means for its agent and its job: messages, state and results of a success; a dead letter
// and the failure policy for what failed for good.

import { type SucceededOutcome, stepExecutorOutcome, stepModuleOutcome } from "./agents/executor.ts";
import { stepSensorFile } from "./agents/sensor.ts";
import type { Failure } from "./failure.ts";
import { isLongLived, isOptional } from "./graph.ts";
import type { AgentSlot, Job, Task } from "./job.ts";
import * as control from "./job-control.ts";
import * as mail from "./job-messages.ts";
import { failureOf, removeTask } from "./job-tasks.ts";
import type { TaskState } from "./journal.ts";

type EndedState = Extract<TaskState, { kind: "ended" }>;

/** The agent takes its task's outcome. */
export function applyOutcome(job: Job, agent: AgentSlot, task: Task, ended: EndedState): void {
  const { outcome } = ended;
  removeTask(job, agent, task);
  if (outcome.kind === "failed") failForGood(job, agent, task, failureOf(job, agent, task, outcome));
  else if (outcome.kind === "succeeded") applySuccess(job, agent, task, outcome, ended);
}

function applySuccess(
  job: Job,
  agent: AgentSlot,
  task: Task,
  outcome: SucceededOutcome,
  { lease, sandboxName }: EndedState,
): void {
  const { config, nodeId } = agent.node;
  agent.lastError = null;
  if (config.kind === "sensor") {
    job.apply(agent, stepSensorFile(config, agent.state, outcome.observation), null);
  } else if (config.kind === "module") {
    job.apply(agent, stepModuleOutcome(agent.state, outcome), task.message);
  } else if (config.kind === "executor" && config.longLived) {
    workerExited(job, agent);
  } else if (config.kind === "executor") {
    const attempt = { agentId: nodeId, sandboxName, attempts: task.attempt, lease };
    job.apply(agent, stepExecutorOutcome(config, agent.state, outcome, task.message, attempt), task.message);
  }
}

/** A long-lived worker has ended by itself: nobody reads its mailbox any more. */
function workerExited(job: Job, agent: AgentSlot): void {
  agent.done = true;
  job.draft.dirtyAgents.add(agent.node.index);
  if (!agent.failed) {
    job.event("agent_completed", agent.node.nodeId, { processed_messages: agent.processed });
  }
  mail.discardMailbox(job, agent);
}

/** No attempt is left: the message is a dead letter, and the failure policy says what becomes of the run. */
function failForGood(job: Job, agent: AgentSlot, task: Task, failure: Failure): void {
  agent.failed = true;
  agent.lastError = failure.desc;
  job.draft.dirtyAgents.add(agent.node.index);
  job.event("agent_failed", agent.node.nodeId, { task: task.seq, attempts: task.attempt }, failure);
  const startedByNothing = isLongLived(agent.node) || task.kind === "file";
  if (!startedByNothing) mail.deadLetter(job, task.message, "processing_failed", task.attempt);
  if (!isOptional(agent.node)) {
    if (job.graph.failurePolicy === "fail_run") {
      control.fail(job, failure);
      return;
    }
    job.partial = true;
  }
  if (isLongLived(agent.node)) workerExited(job, agent);
  // Nobody watches for its file any more, so it must not hold the job open.
  else if (task.kind === "file") job.sensorDone(agent);
}
