// What the journal holds of a job: a batch carries what changed of the state, and the sum of all batches is read back as
// the same state. What is waited for is stored as wall time, and waited for on this process's steady clock.

import { movedSensor } from "../agents/sensor.ts";
import { lastEventJson } from "../event.ts";
import { type Graph, isOptional } from "../graph.ts";
import type {
  AgentRecord,
  AgentStatus,
  JobChanges,
  JobImage,
  JobProgress,
  JobStatus,
  TaskRecord,
} from "../journal.ts";
import type { JsonValue } from "../json.ts";
import type { Message } from "../message.ts";
import { type Clocks, toSteady, toWall } from "../ports.ts";
import type { TaskState } from "../task-port.ts";
import { type Effects, newDraft } from "./draft.ts";
import { askerOf, remember, waitsForPerson } from "./human-requests.ts";
import { putInMailbox, withExpiry } from "./messages.ts";
import {
  type AgentState,
  isOver,
  type Job,
  type JobContext,
  newJob,
  type StoredAgentState,
  type StoredJobState,
} from "./state.ts";
import { adoptTask } from "./tasks.ts";

// ------------------------------------------------------------------------------------------------- writing

/** What one job contributes to a batch: what is stored, and what may happen outside once it is. */
export interface JobPart {
  readonly jobId: string;
  readonly changes: JobChanges;
  readonly effects: Effects;
}

/** Takes everything that changed since the last call. */
export function takePart(job: Job): JobPart {
  const { draft, context } = job;
  const { eventLines, effects } = draft;
  const changes: JobChanges = {
    jobId: job.jobId,
    owner: context.owner,
    epoch: job.epoch,
    revision: job.revision,
    insert: job.revision === 0 ? job.insert : null,
    progress: progressOf(job),
    agents: [...draft.changedAgents]
      .sort((a, b) => a - b)
      .map((index) => agentRecord(job, job.agents[index]!)),
    consumed: [...draft.consumed].map(([agentIndex, throughSeq]) => ({ agentIndex, throughSeq })),
    messages: isOver(job) ? [] : takeMessages(job, draft.filledMailboxes),
    itemsCleared: [...draft.cleared],
    items: [...draft.collected].map(([agentIndex, run]) => ({ agentIndex, ...run })),
    tasks: [...draft.changedTasks].map((seq) => taskRecord(job, seq)),
    tasksRemoved: draft.removedTasks,
    firstEventSeq: job.eventSeq - eventLines.length + 1,
    eventLines,
    deadLetters: draft.deadLetters,
    deadLettersRetried: draft.deadLettersRetried,
    humanRequests: [...draft.humanRequests.values()],
    artifacts: draft.artifacts,
    priority: draft.priority,
    isHandedOver: draft.isLast,
  };
  job.revision++;
  job.draft = newDraft();
  return { jobId: job.jobId, changes, effects };
}

/** Messages that wait and are not stored yet: now they are. */
function takeMessages(job: Job, filledMailboxes: ReadonlySet<number>): Message[] {
  const messages: Message[] = [];
  for (const index of filledMailboxes) {
    const agent = job.agents[index]!;
    const { storedSeq } = agent;
    // Mailboxes are in the order of numbers. A large one is not looked through: its messages are all over the memory.
    const tail = agent.mailbox.tailWhile(({ seq }) => seq > storedSeq);
    for (const message of tail) messages.push(message);
    agent.storedSeq = tail.at(-1)?.seq ?? storedSeq;
  }
  return messages;
}

/** The job row as it stands now. */
export function progressOf(job: Job): JobProgress {
  const { clock } = job.context;
  const sandboxNames: string[] = [];
  for (const { kind, state } of job.tasks.values()) {
    if (kind === "command" && state.kind === "running") sandboxNames.push(state.sandboxName);
  }
  const status = storedStatus(job);
  job.tally.waitsFor = status === "queued" ? waitsFor(job) : null;
  return {
    status,
    updatedAtMs: job.updatedAtMs,
    startedAtMs: job.startedAtMs,
    pausedAtMs: job.pausedAtMs === null ? null : toWall(clock, job.pausedAtMs),
    deadlineAtMs: job.deadlineAtMs === null ? null : toWall(clock, job.deadlineAtMs),
    eventSeq: job.eventSeq,
    messageSeq: job.messageSeq,
    taskSeq: job.taskSeq,
    logBytes: job.logBytes,
    activeExecutors: job.runningTasks,
    sandboxNames,
    lastEventJson: job.lastEvent === null ? "null" : lastEventJson(job.lastEvent),
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

/** What the first of its tasks that has told it waits for beside slots. */
function waitsFor({ tasks }: Job): string | null {
  for (const { state, waitsFor } of tasks.values())
    if (state.kind === "queued" && waitsFor !== null) return waitsFor;
  return null;
}

function agentRecord(job: Job, agent: AgentState): AgentRecord {
  const { node, state, task, unrouted } = agent;
  const stored =
    node.config.kind === "sensor" ? movedSensor(state, (ms) => toWall(job.context.clock, ms)) : state;
  return {
    agentId: node.nodeId,
    index: node.index,
    status: agentStatus(job, agent),
    done: agent.done,
    processedMessages: agent.processed,
    stateJson: JSON.stringify(stored),
    lastError: agent.lastError,
    unroutedJson: unrouted === undefined ? null : JSON.stringify(unrouted),
    lease: task?.state.kind === "running" ? task.state.lease : null,
  };
}

/** What the agent is doing. A reader shows `paused` and the final `done` from the job's status. */
function agentStatus(job: Job, agent: AgentState): AgentStatus {
  const isSensor = agent.node.config.kind === "sensor";
  if (agent.failed) return "failed";
  if (agent.isCutOff) return "cancelled";
  if (agent.done || (job.status === "completed" && agent.started)) return "done";
  if (!agent.started) return "pending";
  if (isSensor || waitsForPerson(job, agent)) return "waiting";
  if (agent.task !== null) return agent.task.state.kind === "running" ? "running" : "waiting";
  return "ready";
}

function taskRecord(job: Job, seq: number): TaskRecord {
  const { agentIndex, kind, attempt, failures, message, state } = job.tasks.get(seq)!;
  const stored = moved(state, toWall, job.context.clock);
  return { taskSeq: seq, agentIndex, kind, state: stored, attempt, failures, message };
}

function moved(state: TaskState, to: typeof toWall, clock: Clocks): TaskState {
  return state.kind === "backoff" ? { kind: "backoff", dueAtMs: to(clock, state.dueAtMs) } : state;
}

// ------------------------------------------------------------------------------------------------- reading

/** The job as its last batch left it; nothing of it works yet. */
export function readJob({ jobId, epoch, ...image }: JobImage, graph: Graph, context: JobContext): Job {
  const { clock } = context;
  const job = newJob({ jobId, epoch, insert: image.insert, graph }, context);
  Object.assign(job, readProgress(image, clock));
  for (const record of image.agents)
    Object.assign(job.agents[record.index]!, readAgent(record, graph, clock));
  for (const message of image.messages) {
    const agent = job.agents[message.to]!;
    putInMailbox(job, agent, withExpiry(job, message));
    agent.storedSeq = message.seq;
  }
  for (const { agentIndex, firstSeq, bodiesJson } of image.items) {
    const agent = job.agents[agentIndex]!;
    for (const body of bodiesJson) {
      agent.collected.push(JSON.parse(body) as JsonValue);
      agent.collectedChars += body.length;
    }
    agent.collectedSeq = firstSeq + bodiesJson.length - 1;
  }
  for (const { node, done } of job.agents) if (node.config.kind === "sensor" && !done) job.openSensors++;
  for (const request of image.humanRequests) {
    const isOpen = request.status === "pending";
    const { expiresAtMs } = request;
    const dueAtMs = isOpen && expiresAtMs !== null ? toSteady(clock, expiresAtMs) : null;
    remember(job.human, { request, attempt: 0, dueAtMs });
    if (isOpen) askerOf(job, request).openRequests++;
  }
  for (const { taskSeq, agentIndex, kind, state, attempt, failures, message } of image.tasks) {
    adoptTask(job, {
      seq: taskSeq,
      agentIndex,
      kind,
      state: moved(state, toSteady, clock),
      requestedAtMs: null,
      waitsFor: null,
      attempt,
      failures,
      message: withExpiry(job, message),
    });
  }
  return job;
}

function readProgress(
  { revision, progress }: Pick<JobImage, "revision" | "progress">,
  clock: Clocks,
): StoredJobState {
  const { status, pausedAtMs, deadlineAtMs } = progress;
  return {
    status: status === "queued" ? "running" : status,
    revision,
    eventSeq: progress.eventSeq,
    messageSeq: progress.messageSeq,
    taskSeq: progress.taskSeq,
    logBytes: progress.logBytes,
    updatedAtMs: progress.updatedAtMs,
    startedAtMs: progress.startedAtMs,
    pausedAtMs: pausedAtMs === null ? null : toSteady(clock, pausedAtMs),
    deadlineAtMs: deadlineAtMs === null ? null : toSteady(clock, deadlineAtMs),
    partial: progress.partial,
    tally: { ...progress.tally },
  };
}

function readAgent(record: AgentRecord, { nodes }: Graph, clock: Clocks): StoredAgentState {
  const state = JSON.parse(record.stateJson) as JsonValue;
  const isSensor = nodes[record.index]!.config.kind === "sensor";
  return {
    state: isSensor ? movedSensor(state, (ms) => toSteady(clock, ms)) : state,
    processed: record.processedMessages,
    started: record.status !== "pending",
    failed: record.status === "failed",
    done: record.done,
    lastError: record.lastError,
    unrouted: record.unroutedJson === null ? undefined : (JSON.parse(record.unroutedJson) as JsonValue),
  };
}
