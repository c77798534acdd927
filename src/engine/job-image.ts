// A job and its image: what a batch carries of it, and how it comes back after a restart.

import { movedSensor } from "./agents/sensor.ts";
import { isoTime } from "./event.ts";
import { type Graph, isOptional } from "./graph.ts";
import { type AgentSlot, Job, type JobContext } from "./job.ts";
import * as control from "./job-control.ts";
import * as human from "./job-human.ts";
import * as mail from "./job-messages.ts";
import * as services from "./job-services.ts";
import * as jobTasks from "./job-tasks.ts";
import type {
  AgentRecord,
  AgentStatus,
  JobChanges,
  JobImage,
  JobProgress,
  JobStatus,
  TaskRecord,
  TaskState,
} from "./journal.ts";
import type { JsonValue } from "./json.ts";
import { toSteady, toWall } from "./steady-time.ts";

/** Takes everything that changed since the last call, as the job's part of the next batch. */
export function takeChanges(job: Job): JobChanges {
  const { draft } = job;
  const eventLines = draft.takeEvents();
  const agents = [...draft.dirtyAgents]
    .sort((a, b) => a - b)
    .map((index) => agentRecord(job, job.agents[index]!));
  const tasks = [...draft.dirtyTasks].flatMap((seq) => taskRecord(job, seq));
  draft.dirtyAgents.clear();
  draft.dirtyTasks.clear();
  const changes: JobChanges = {
    jobId: job.jobId,
    owner: job.context.owner,
    epoch: job.epoch,
    revision: job.revision,
    insert: job.revision === 0 ? job.insert : null,
    progress: progressOf(job),
    agents,
    consumed: draft.takeConsumed(),
    messages: job.isOver ? [] : draft.takeMessages(job.agents),
    ...draft.takeItems(),
    tasks,
    tasksRemoved: draft.takeTasksRemoved(),
    firstEventSeq: job.eventSeq - eventLines.length + 1,
    eventLines,
    deadLetters: draft.takeDeadLetters(),
    deadLettersRetried: draft.takeDeadLettersRetried(),
    humanRequests: draft.takeHumanRequests(),
    artifacts: draft.takeArtifacts(),
  };
  job.revision++;
  return changes;
}

/** The job row as it stands now. */
export function progressOf(job: Job): JobProgress {
  const sandboxNames: string[] = [];
  for (const task of job.tasks.values()) {
    if (task.kind === "command" && task.state.kind === "running") sandboxNames.push(task.state.sandboxName);
  }
  return {
    status: storedStatus(job),
    updatedAtMs: job.updatedAtMs,
    startedAtMs: job.startedAtMs,
    pausedAtMs: stored(job, job.pausedAtMs),
    deadlineAtMs: stored(job, job.deadlineAtMs),
    eventSeq: job.eventSeq,
    messageSeq: job.messageSeq,
    taskSeq: job.taskSeq,
    logBytes: job.logBytes,
    activeExecutors: job.runningTasks,
    sandboxNames,
    lastEventJson: lastEventJson(job),
    partial: job.partial,
    tally: { ...job.tally },
    humanPending: job.human.pending.size,
    resultJson: job.result === undefined ? null : JSON.stringify(job.result),
    failureJson: job.failure === null ? null : JSON.stringify(job.failure),
  };
}

/**
 * A running job is queued while a task of it waits for slots and none runs. Only readers see that: the engine itself lets
 * it work like any running job. What is optional beside the graph, such as a dashboard, does not count.
 */
export function storedStatus({ status, tasks, agents }: Job): JobStatus {
  if (status !== "running") return status;
  let isQueued = false;
  for (const { kind, state, agentIndex } of tasks.values()) {
    if (kind === "file" || isOptional(agents[agentIndex]!.node)) continue;
    if (state.kind === "running") return "running";
    if (state.kind === "queued") isQueued = true;
  }
  return isQueued ? "queued" : "running";
}

/** What is waited for is kept as wall time. */
function stored(job: Job, steadyMs: number | null): number | null {
  return steadyMs === null ? null : toWall(job.context.clock, steadyMs);
}

function waitedFor(job: Job, wallMs: number | null): number | null {
  return wallMs === null ? null : toSteady(job.context.clock, wallMs);
}

function lastEventJson(job: Job): string {
  const { lastEvent } = job;
  if (lastEvent === null) return "null";
  const { nowMs, type, agentId } = lastEvent;
  return JSON.stringify({ timestamp: isoTime(nowMs), type, agent_id: agentId });
}

function agentRecord(job: Job, agent: AgentSlot): AgentRecord {
  const running = agent.task?.state.kind === "running" ? agent.task.state : null;
  return {
    agentId: agent.node.nodeId,
    index: agent.node.index,
    status: agentStatus(job, agent),
    done: agent.done,
    processedMessages: agent.processed,
    stateJson: JSON.stringify(storedState(job, agent)),
    lastError: agent.lastError,
    unroutedJson: agent.unrouted === undefined ? null : JSON.stringify(agent.unrouted),
    lease: running?.lease ?? null,
  };
}

function storedState(job: Job, { node, state }: AgentSlot): JsonValue {
  return node.config.kind === "sensor" ? movedSensor(state, (ms) => toWall(job.context.clock, ms)) : state;
}

/** What the agent is doing. A reader shows `paused` and the final `done` from the job's status. */
function agentStatus(job: Job, agent: AgentSlot): AgentStatus {
  if (agent.failed) return "failed";
  if (agent.isCutOff) return "cancelled";
  if (agent.done || (job.status === "completed" && agent.started)) return "done";
  if (!agent.started) return "pending";
  if (human.waitsForPerson(job, agent)) return "waiting";
  if (agent.task !== null && agent.node.config.kind !== "sensor") {
    return agent.task.state.kind === "running" ? "running" : "waiting";
  }
  return agent.node.config.kind === "sensor" ? "waiting" : "ready";
}

function taskRecord(job: Job, seq: number): TaskRecord[] {
  const task = job.tasks.get(seq);
  if (task === undefined) return [];
  const { agentIndex, kind, attempt, failures, message } = task;
  const state = moved(task.state, (ms) => toWall(job.context.clock, ms));
  return [{ taskSeq: seq, agentIndex, kind, state, attempt, failures, message }];
}

function moved(state: TaskState, to: (ms: number) => number): TaskState {
  return state.kind === "backoff" ? { kind: "backoff", dueAtMs: to(state.dueAtMs) } : state;
}

/**
 * Brings a job back from its image: under a new epoch, with `job_recovered` in its history, its interrupted
 * attempts noted, and everything that waited waiting again.
 */
export function recoverJob(image: JobImage, graph: Graph, context: JobContext): Job {
  const job = new Job({ jobId: image.jobId, epoch: image.epoch, insert: image.insert, graph }, context);
  restoreProgress(job, image);
  for (const record of image.agents) restoreAgent(job, record);
  for (const message of image.messages) {
    const agent = job.agents[message.to]!;
    agent.mailbox.push(mail.withExpiry(job, message));
    agent.storedSeq = message.seq;
    job.waitingMessages++;
    job.waitingChars += message.chars;
  }
  for (const run of image.items) {
    const agent = job.agents[run.agentIndex]!;
    for (const body of run.bodiesJson) {
      agent.collected.push(JSON.parse(body) as JsonValue);
      agent.collectedChars += body.length;
    }
    agent.collectedSeq = run.firstSeq + run.bodiesJson.length - 1;
  }
  for (const agent of job.agents) {
    if (agent.node.config.kind === "sensor" && !agent.done) job.openSensors++;
  }
  for (const request of image.humanRequests) human.restore(job, request);
  goOn(job, image);
  return job;
}

function restoreProgress(job: Job, image: JobImage): void {
  const { progress } = image;
  job.revision = image.revision;
  job.status = progress.status === "queued" ? "running" : progress.status;
  job.eventSeq = progress.eventSeq;
  job.messageSeq = progress.messageSeq;
  job.taskSeq = progress.taskSeq;
  job.logBytes = progress.logBytes;
  job.updatedAtMs = progress.updatedAtMs;
  job.startedAtMs = progress.startedAtMs;
  job.pausedAtMs = waitedFor(job, progress.pausedAtMs);
  job.deadlineAtMs = waitedFor(job, progress.deadlineAtMs);
  job.partial = progress.partial;
  job.tally = { ...progress.tally };
}

function restoreAgent(job: Job, record: AgentRecord): void {
  const agent = job.agents[record.index]!;
  const state = JSON.parse(record.stateJson) as JsonValue;
  const { clock } = job.context;
  agent.state = agent.node.config.kind === "sensor" ? movedSensor(state, (ms) => toSteady(clock, ms)) : state;
  agent.processed = record.processedMessages;
  agent.started = record.status !== "pending";
  agent.failed = record.status === "failed";
  agent.done = record.done;
  agent.lastError = record.lastError;
  if (record.unroutedJson !== null) agent.unrouted = JSON.parse(record.unroutedJson) as JsonValue;
}

function goOn(job: Job, image: JobImage): void {
  const interrupted = image.tasks.filter((task) => task.state.kind === "running").length;
  const isHeld = job.status === "running" && job.graph.recoveryPolicy === "manual_recover";
  job.event("job_recovered", null, {
    epoch: job.epoch,
    interrupted_tasks: interrupted,
    ...(isHeld && { held: "recovery_mode is manual_recover: resume the job to let it go on" }),
  });
  services.jobTakenOver(job);
  if (isHeld) control.pause(job);
  for (const record of image.tasks) {
    const { taskSeq: seq, agentIndex, kind, attempt, failures } = record;
    jobTasks.adoptTask(job, {
      seq,
      agentIndex,
      kind,
      state: moved(record.state, (ms) => toSteady(job.context.clock, ms)),
      requestedAtMs: null,
      attempt,
      failures,
      message: mail.withExpiry(job, record.message),
    });
  }
  for (const task of [...job.tasks.values()]) if (!job.isOver) jobTasks.recoverTask(job, task);
  if (job.isOver) return;
  control.armTimers(job);
  for (const agent of job.agents) job.enqueue(agent);
}
