// A job at work, as the loop sees it: it starts, and then does one unit of work after the other.

import { startSensor } from "../agents/sensor.ts";
import { limits } from "../limits.ts";
import { messageId } from "../message.ts";
import { recoverTask } from "./attempts.ts";
import { addEvent, markStarted } from "./history.ts";
import { deadLetter, deliver, isExpired, startMessage, takeMessage } from "./messages.ts";
import { applyOutcome } from "./outcomes.ts";
import { goOnOrComplete, isQuiescent } from "./quiescence.ts";
import { canTake, enqueue, setTimer } from "./schedule.ts";
import { jobStarted, jobTakenOver } from "./services.ts";
import { type AgentState, isOver, type Job } from "./state.ts";
import { armTimers, failRun, pause } from "./status.ts";
import { apply, process } from "./steps.ts";
import { createTask } from "./tasks.ts";

/** Begins a new job: its first events, its initial messages, its sensors and long-lived workers. */
export function start(job: Job): void {
  const { graph, context } = job;
  const nowMs = context.clock.nowMs();
  addEvent(job, "job_pending", null, { graph_id: graph.graphId });
  addEvent(job, "job_validated", null, { nodes: graph.nodes.length });
  addEvent(job, "job_scheduled", null, { placement_policy: graph.placementPolicy });
  addEvent(job, "job_running", null, {});
  jobStarted(job);
  job.status = "running";
  job.startedAtMs = nowMs;
  if (graph.timeoutMs !== null) {
    job.deadlineAtMs = context.clock.steadyMs() + graph.timeoutMs;
    setTimer(job, job.deadlineAtMs, { kind: "deadline" });
  }
  for (const index of graph.entrypoints) {
    for (const body of graph.initialInputs.get(index) ?? [{}]) {
      deliver(job, index, { from: null, type: "init", body, timestampMs: nowMs });
    }
  }
  for (const agent of job.agents) startAgent(job, agent);
}

function startAgent(job: Job, agent: AgentState): void {
  const { config } = agent.node;
  if (config.kind === "sensor") {
    job.openSensors++;
    markStarted(job, agent);
    apply(job, agent, startSensor(config, job.context.clock), null);
  } else if (config.kind === "executor" && config.longLived) {
    markStarted(job, agent);
    createTask(job, agent, "command", startMessage(job, agent.node.index));
  }
}

/**
 * Lets a job go on that was read from the journal: with `job_recovered` in its history, its interrupted attempts noted,
 * and everything that waited waiting again.
 *
 * @param wasHandedOver by its owner, so that nothing of it was lost
 */
export function goOnAfterRestart(job: Job, wasHandedOver = false): void {
  const tasks = [...job.tasks.values()];
  const isManual = job.graph.recoveryPolicy === "manual_recover" && !wasHandedOver;
  const isHeld = job.status === "running" && isManual;
  addEvent(job, "job_recovered", null, {
    epoch: job.epoch,
    interrupted_tasks: tasks.filter(({ state }) => state.kind === "running").length,
    ...(wasHandedOver && { handed_over: true }),
    ...(isHeld && { held: "recovery_mode is manual_recover: resume the job to let it go on" }),
  });
  jobTakenOver(job);
  if (isHeld) pause(job);
  for (const task of tasks) if (!isOver(job)) recoverTask(job, task);
  if (isOver(job)) return;
  armTimers(job);
  for (const agent of job.agents) enqueue(job, agent);
}

/** Whether `step` would do something. */
export function hasWork(job: Job): boolean {
  return job.status === "running" && (job.ready.size > 0 || isQuiescent(job));
}

/** Does one unit of work: one message, one task outcome, or what follows from quiescence. */
export function step(job: Job): void {
  if (job.graph.type === "batch" && job.messageSeq > limits.batchJobMessagesMax) {
    failRun(job, "job.message_limit", `The job has sent ${job.messageSeq} messages without ending.`);
    return;
  }
  const index = job.ready.shift();
  if (index === undefined) {
    if (isQuiescent(job)) goOnOrComplete(job);
    return;
  }
  const agent = job.agents[index]!;
  agent.isQueued = false;
  if (agent.task?.state.kind === "ended") applyOutcome(job, agent, agent.task, agent.task.state);
  else if (canTake(agent)) takeNext(job, agent);
  enqueue(job, agent);
}

function takeNext(job: Job, agent: AgentState): void {
  const message = takeMessage(job, agent);
  if (message === undefined) return;
  if (isExpired(job, message)) {
    deadLetter(job, message, "ttl_expired", 0);
    return;
  }
  markStarted(job, agent);
  agent.processed++;
  job.draft.changedAgents.add(agent.node.index);
  addEvent(job, "agent_message_received", agent.node.nodeId, {
    message_id: messageId(job.runId, message.seq),
    from: message.from,
    type: message.type,
  });
  process(job, agent, message);
}
