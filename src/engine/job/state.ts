// The state of a job: one record of plain data, with one writer.
//
// - Only the functions of this folder change it, synchronously, one at a time; nothing here waits. They are in
//   layers: state, what is noted of it (draft, history, schedule), changes (messages, people, tasks, status, steps),
//   and job.ts, which the loop calls.
// - Every change is noted in the draft, so that the sum of the batches is the state: image.ts writes it and reads it
//   back, and image.test.ts compares every field.
// - Built-in agents process every message exactly once: taking a message, the agent's new state and what it
//   emits are one cut.
// - An agent works on one message at a time; a message whose work is outside (a task) keeps its agent busy.
// - Nothing happens after the terminal event.

import type { EventHead } from "../event.ts";
import type { Failure } from "../failure.ts";
import { Fifo } from "../fifo.ts";
import type { Graph, GraphNode } from "../graph.ts";
import { type HumanRequest, isTerminal, type JobInsert, type JobStatus } from "../journal.ts";
import type { JsonValue } from "../json.ts";
import type { Message } from "../message.ts";
import type { Clock, EnginePorts, Randomness, Slots } from "../ports.ts";
import type { Share } from "../share.ts";
import { newTally, type Tally } from "../tally.ts";
import type { TaskKind, TaskRef, TaskState } from "../task-port.ts";
import type { TimerQueue } from "../timers.ts";
import { type Draft, newDraft } from "./draft.ts";

/** What all jobs of one engine share. */
export interface JobContext {
  /** Under which the jobs are held now. */
  owner: string;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly slots: Slots;
  readonly schemaProblem: EnginePorts["schemaProblem"];
  readonly timers: TimerQueue;
}

/** What a job is; it never changes. */
export interface JobIdentity {
  readonly jobId: string;
  readonly epoch: number;
  readonly insert: JobInsert;
  readonly graph: Graph;
}

/** What the journal holds of the job itself. Recovery reads each of these fields, or it does not compile. */
export interface StoredJobState {
  status: JobStatus;
  /** How many batches the journal has. */
  revision: number;
  eventSeq: number;
  messageSeq: number;
  taskSeq: number;
  logBytes: number;
  updatedAtMs: number;
  startedAtMs: number | null;
  /** On the steady clock, like every time that is waited for. */
  pausedAtMs: number | null;
  deadlineAtMs: number | null;
  partial: boolean;
  tally: Tally;
}

/** What follows from agents and tasks, counted so that nobody has to look at all of them. */
interface CountedJobState {
  waitingMessages: number;
  /** Characters of the bodies in mailboxes and tasks. */
  waitingChars: number;
  /** Tasks that hold the job open. */
  openTasks: number;
  /** Sensors that still wait. */
  openSensors: number;
  runningTasks: number;
}

export interface JobState extends JobIdentity, StoredJobState, CountedJobState {
  readonly runId: string;
  /** With which its commands ask for slots. */
  share: Share;
  /** What workers and messages are told as the job's id. */
  readonly publicJobId: string;
  /** Whether the graph declares services. */
  readonly hasServices: boolean;
  readonly agents: readonly AgentState[];
  readonly tasks: Map<number, Task>;
  readonly human: HumanRequests;
  /** Of a job that has ended. */
  result: JsonValue | undefined;
  failure: Failure | null;

  // ---- What a restart begins anew
  lastEvent: EventHead | null;
  /** Agents that can do something now, by their index. */
  readonly ready: Fifo<number>;
  readonly aggregators: Aggregators;
  /** Dead letters that were sent again, the latest last. */
  readonly retriedLetters: Set<string>;
  /** Whether it is to be handed over: it begins no attempt here (handover.ts). */
  isLeaving: boolean;
}

/** A job in this process: its state, what it changes beside it, and what of all that no batch has carried yet. */
export interface Job extends JobState {
  readonly context: JobContext;
  draft: Draft;
}

/** What the journal holds of an agent beside its mailbox and what it collected. */
export interface StoredAgentState {
  state: JsonValue;
  processed: number;
  started: boolean;
  failed: boolean;
  /** The agent will never do anything again (a sensor that has seen enough, a long-lived worker that exited). */
  done: boolean;
  lastError: string | null;
  /** Last body that no edge carried; undefined if every one found its way. */
  unrouted: JsonValue | undefined;
}

/** One agent of a running job. */
export interface AgentState extends StoredAgentState {
  readonly node: GraphNode;
  readonly mailbox: Fifo<Message>;
  /** Highest seq of this mailbox that a batch has carried to the journal. */
  storedSeq: number;
  collected: JsonValue[];
  /** How many bodies were collected since the agent last started afresh. */
  collectedSeq: number;
  collectedChars: number;
  task: Task | null;
  /** How much it has asked people that nobody has answered yet. */
  openRequests: number;
  /** Whether the agent is in the ready queue. */
  isQueued: boolean;
  /** Whether the job's end has cut it off. */
  isCutOff: boolean;
}

/** Work outside the engine for one message, over all its attempts. */
export interface Task {
  readonly seq: number;
  readonly agentIndex: number;
  readonly kind: TaskKind;
  readonly message: Message;
  state: TaskState;
  /** When it last asked for slots; null until it has asked in this process. */
  requestedAtMs: number | null;
  /** What it waited for beside slots when it asked; null for nothing else. */
  waitsFor: string | null;
  attempt: number;
  failures: number;
}

/** What the job asked people: all requests that are open, and the latest that were closed. */
export interface HumanRequests {
  readonly pending: Map<string, HumanEntry>;
  readonly closed: Map<string, HumanEntry>;
  closedChars: number;
  /** Whether the history says that no more can be open; see limits.humanRequestsOpenMax. */
  isFullSaid: boolean;
}

export interface HumanEntry {
  readonly request: HumanRequest;
  /**
   * Which attempt of its task asked it last; of a long-lived command, which one was sent the answer. 0 for what was
   * before a restart, or had no task.
   */
  readonly attempt: number;
  /** When its time is over, on the steady clock; null when it is closed, or has no end. */
  readonly dueAtMs: number | null;
}

/** The aggregators in the order in which they form their results at quiescence: earlier in the graph first. */
export interface Aggregators {
  readonly inOrder: readonly AgentState[];
  readonly placeOf: ReadonlyMap<AgentState, number>;
  /** Those before it have nothing to emit: each collection moves it back, so that all quiescences together are linear. */
  cursor: number;
}

/** A job that has not begun. */
export function newJob(
  { jobId, epoch, insert, graph }: JobIdentity,
  context: JobContext,
  agents: AgentState[] = graph.nodes.map(newAgent),
): Job {
  const publicJobId = insert.definitionId ?? jobId;
  return {
    jobId,
    epoch,
    insert,
    graph,
    runId: insert.runId,
    publicJobId,
    share: { job: publicJobId, priority: insert.priority, weight: insert.weight },
    hasServices: graph.services.length > 0 || graph.nodes.some(({ services }) => services.length > 0),
    agents,
    tasks: new Map(),
    human: { pending: new Map(), closed: new Map(), closedChars: 0, isFullSaid: false },
    status: "pending",
    revision: 0,
    eventSeq: 0,
    messageSeq: 0,
    taskSeq: 0,
    logBytes: 0,
    updatedAtMs: insert.submittedAtMs,
    startedAtMs: null,
    pausedAtMs: null,
    deadlineAtMs: null,
    partial: false,
    tally: newTally(),
    result: undefined,
    failure: null,
    waitingMessages: 0,
    waitingChars: 0,
    openTasks: 0,
    openSensors: 0,
    runningTasks: 0,
    lastEvent: null,
    ready: new Fifo(),
    aggregators: aggregatorsOf(agents),
    retriedLetters: new Set(),
    isLeaving: false,
    context,
    draft: newDraft(),
  };
}

export function newAgent(node: GraphNode): AgentState {
  return {
    node,
    mailbox: new Fifo(),
    storedSeq: 0,
    state: {},
    processed: 0,
    started: false,
    failed: false,
    done: false,
    lastError: null,
    unrouted: undefined,
    collected: [],
    collectedSeq: 0,
    collectedChars: 0,
    task: null,
    openRequests: 0,
    isQueued: false,
    isCutOff: false,
  };
}

function aggregatorsOf(agents: readonly AgentState[]): Aggregators {
  const inOrder = agents
    .filter(({ node }) => node.agentType === "aggregator")
    .sort((a, b) => a.node.rank - b.node.rank);
  return { inOrder, placeOf: new Map(inOrder.map((agent, place) => [agent, place])), cursor: 0 };
}

export function isOver({ status }: JobState): boolean {
  return isTerminal(status);
}

/** The agent that waits for the task. */
export function agentOf(job: Job, task: Task): AgentState {
  return job.agents[task.agentIndex]!;
}

/** The task's current attempt, as runners and slots know it. */
export function refOf({ jobId }: Job, { seq: taskSeq, attempt }: Task): TaskRef {
  return { jobId, taskSeq, attempt };
}
