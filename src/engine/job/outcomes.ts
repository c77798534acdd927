// What a task says while it runs and when it has ended, and what that means for its agent and its job: messages, state
// and results of a success; a dead letter and the failure policy for what failed for good.

import { type SucceededOutcome, stepExecutorOutcome, stepWorkerActions } from "../agents/executor.ts";
import { stepSensorFile } from "../agents/sensor.ts";
import type { Failure } from "../failure.ts";
import { isLongLived, isOptional } from "../graph.ts";
import { limits } from "../limits.ts";
import type { TaskEvent, TaskRef, TaskState, WorkerActions } from "../task-port.ts";
import { failureOf } from "./attempts.ts";
import { addEvent, markDone } from "./history.ts";
import { ask, HUMAN_INPUT_REQUESTED } from "./human-questions.ts";
import { deadLetter, discardMailbox } from "./messages.ts";
import { type AgentState, agentOf, type Job, type Task } from "./state.ts";
import { fail } from "./status.ts";
import { apply, sensorDone } from "./steps.ts";
import { currentAttempt, removeTask } from "./tasks.ts";

/**
 * Events of a running attempt, checked by the runner. Logs beyond the run's limit end with one mark.
 * @returns the characters that this added to the history
 */
export function taskEvents(job: Job, ref: TaskRef, events: readonly TaskEvent[]): number {
  const current = currentAttempt(job, ref);
  if (current === null) return 0;
  const agent = agentOf(job, current.task);
  const agentId = agent.node.nodeId;
  let added = 0;
  for (const { type, payload } of events) {
    if (type === HUMAN_INPUT_REQUESTED) added += ask(job, agent, payload, current.task.message);
    else if (type !== "log") added += addEvent(job, type, agentId, payload);
    else if (job.logBytes < limits.runLogBytesMax) {
      const chars = addEvent(job, type, agentId, payload);
      job.logBytes += chars;
      added += chars;
      if (job.logBytes >= limits.runLogBytesMax) {
        const payload = { log_bytes: job.logBytes, limit_bytes: limits.runLogBytesMax };
        addEvent(job, "log_truncated", agentId, payload);
      }
    }
  }
  return added;
}

/** A long-lived command acts while it runs. */
export function taskActions(job: Job, ref: TaskRef, actions: WorkerActions): boolean {
  const current = currentAttempt(job, ref);
  if (current === null) return false;
  const agent = agentOf(job, current.task);
  apply(job, agent, stepWorkerActions(agent.state, actions), current.task.message);
  return true;
}

type EndedState = Extract<TaskState, { kind: "ended" }>;

/** The agent takes its task's outcome. */
export function applyOutcome(job: Job, agent: AgentState, task: Task, ended: EndedState): void {
  const { outcome } = ended;
  removeTask(job, task);
  if (outcome.kind === "failed") failForGood(job, agent, task, failureOf(job, task, outcome));
  else if (outcome.kind === "succeeded") applySuccess(job, agent, task, outcome, ended);
}

function applySuccess(
  job: Job,
  agent: AgentState,
  task: Task,
  outcome: SucceededOutcome,
  { lease, sandboxName }: EndedState,
): void {
  const { config, nodeId } = agent.node;
  agent.lastError = null;
  if (config.kind === "sensor") {
    apply(job, agent, stepSensorFile(config, agent.state, outcome.observation), null);
  } else if (config.kind === "module") {
    apply(job, agent, stepWorkerActions(agent.state, outcome.actions), task.message);
  } else if (config.kind === "executor" && config.longLived) {
    workerExited(job, agent);
  } else if (config.kind === "executor") {
    const attempt = { agentId: nodeId, sandboxName, attempts: task.attempt, lease };
    apply(job, agent, stepExecutorOutcome(config, agent.state, outcome, task.message, attempt), task.message);
  }
}

/** A long-lived worker has ended by itself: nobody reads its mailbox any more. */
function workerExited(job: Job, agent: AgentState): void {
  markDone(job, agent);
  discardMailbox(job, agent);
}

/** No attempt is left: the message is a dead letter, and the failure policy says what becomes of the run. */
function failForGood(job: Job, agent: AgentState, task: Task, failure: Failure): void {
  agent.failed = true;
  agent.lastError = failure.desc;
  job.draft.changedAgents.add(agent.node.index);
  addEvent(job, "agent_failed", agent.node.nodeId, { task: task.seq, attempts: task.attempt }, failure);
  const startedByNothing = isLongLived(agent.node) || task.kind === "file";
  if (!startedByNothing) deadLetter(job, task.message, "processing_failed", task.attempt);
  if (!isOptional(agent.node)) {
    if (job.graph.failurePolicy === "fail_run") {
      fail(job, failure);
      return;
    }
    job.partial = true;
  }
  if (isLongLived(agent.node)) workerExited(job, agent);
  // Nobody watches for its file any more, so it must not hold the job open.
  else if (task.kind === "file") sensorDone(job, agent);
}
