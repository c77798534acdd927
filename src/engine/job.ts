// A job: one graph at work, held by one owner, as a state machine.
//
// M1. All changes go through this class and its neighbours (job-steps, job-messages, job-tasks, job-reports,
//     job-outcomes, job-rest, job-human, job-dead-letters, job-services, job-control, job-image), synchronously, one
//     at a time; nothing here waits.
// M2. Every change is noted in the draft, so that the sum of the batches is the state.
// M3. Built-in agents process every message exactly once: taking a message, the agent's new state and what it
//     emits are one cut.
// M4. An agent works on one message at a time; a message whose work is outside (a task) keeps its agent busy.
// M5. Nothing happens after the terminal event.

import { sensorDueAtMs, startSensor, stepSensorTimer } from "./agents/sensor.ts";
import type { Step } from "./agents/step.ts";
import { Draft } from "./draft.ts";
import { type EngineEventType, type EventHead, renderEvent } from "./event.ts";
import { type Failure, type FailureContext, makeFailure } from "./failure.ts";
import type { FailureCode } from "./failure-catalogue.ts";
import { Fifo } from "./fifo.ts";
import { type Graph, type GraphNode, isLongLived } from "./graph.ts";
import { HumanBook } from "./human-book.ts";
import * as control from "./job-control.ts";
import * as human from "./job-human.ts";
import * as mail from "./job-messages.ts";
import { applyOutcome } from "./job-outcomes.ts";
import * as rest from "./job-rest.ts";
import * as services from "./job-services.ts";
import * as steps from "./job-steps.ts";
import * as jobTasks from "./job-tasks.ts";
import { isTerminal, type JobInsert, type JobStatus, type TaskKind, type TaskState } from "./journal.ts";
import type { JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import { type Message, messageId } from "./message.ts";
import type { Clock, Randomness, Slots } from "./ports.ts";
import { countEvent, newTally, type Tally } from "./tally.ts";
import type { TimerQueue } from "./timers.ts";
import { runSpan, type Span } from "./trace.ts";

/** What all jobs of one engine share. */
export interface JobContext {
  readonly owner: string;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly slots: Slots;
  readonly timers: TimerQueue;
}

/** One agent of a running job. */
export interface AgentSlot {
  readonly node: GraphNode;
  readonly mailbox: Fifo<Message>;
  /** Highest seq of this mailbox that a batch has carried to the journal. */
  storedSeq: number;
  state: JsonValue;
  processed: number;
  started: boolean;
  failed: boolean;
  /** The agent will never do anything again (a sensor that has seen enough, a long-lived worker that exited). */
  done: boolean;
  lastError: string | null;
  /** Last body that no edge carried; undefined if every one found its way. */
  unrouted: JsonValue | undefined;
  collected: JsonValue[];
  collectedSeq: number;
  collectedChars: number;
  task: Task | null;
  /** How much it has asked people that nobody has answered yet. */
  openRequests: number;
  /** Whether the agent stands in the ready queue. */
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
  attempt: number;
  failures: number;
}

export interface JobIdentity {
  readonly jobId: string;
  readonly epoch: number;
  readonly insert: JobInsert;
  readonly graph: Graph;
}

export class Job {
  readonly jobId: string;
  readonly runId: string;
  readonly epoch: number;
  readonly insert: JobInsert;
  /** What workers and messages are told as the job's id. */
  readonly publicJobId: string;
  readonly graph: Graph;
  /** Whether the graph declares services. */
  readonly hasServices: boolean;
  readonly context: JobContext;
  readonly draft = new Draft();
  readonly agents: AgentSlot[];
  readonly tasks = new Map<number, Task>();
  readonly ready = new Fifo<number>();
  readonly restOrder: rest.RestOrder;
  readonly human = new HumanBook();
  /** Dead letters that were sent again, the latest last. */
  readonly retriedLetters = new Set<string>();

  status: JobStatus = "pending";
  revision = 0;
  eventSeq = 0;
  messageSeq = 0;
  taskSeq = 0;
  logBytes = 0;
  updatedAtMs: number;
  startedAtMs: number | null = null;
  /** On the steady clock, like every time that is waited for. */
  pausedAtMs: number | null = null;
  deadlineAtMs: number | null = null;
  lastEvent: EventHead | null = null;
  partial = false;
  /** Whether nothing is left to do but to end. */
  isEndingAtRest = false;
  result: JsonValue | undefined = undefined;
  failure: Failure | null = null;
  tally: Tally = newTally();

  /** Messages in mailboxes, tasks that hold the job open, sensors that still wait. */
  waitingMessages = 0;
  /** Characters of the bodies in mailboxes and tasks. */
  waitingChars = 0;
  openTasks = 0;
  openSensors = 0;
  runningTasks = 0;

  constructor(identity: JobIdentity, context: JobContext) {
    this.jobId = identity.jobId;
    this.runId = identity.insert.runId;
    this.publicJobId = identity.insert.definitionId ?? identity.jobId;
    this.epoch = identity.epoch;
    this.insert = identity.insert;
    this.graph = identity.graph;
    this.hasServices = services.declaresServices(identity.graph);
    this.context = context;
    this.updatedAtMs = identity.insert.submittedAtMs;
    this.agents = identity.graph.nodes.map(newSlot);
    this.restOrder = rest.restOrder(this.agents);
  }

  get isOver(): boolean {
    return isTerminal(this.status);
  }

  /** Whether `step` would do something. */
  get hasWork(): boolean {
    return this.status === "running" && (this.ready.size > 0 || this.isAtRest);
  }

  /** Quiescent: no message, task, sensor or person is left that could still change anything. */
  get isAtRest(): boolean {
    return (
      this.graph.type === "batch" &&
      this.waitingMessages === 0 &&
      this.openTasks === 0 &&
      this.openSensors === 0 &&
      !human.holdsJobOpen(this)
    );
  }

  /** Begins a new job: its first events, its initial messages, its sensors and long-lived workers. */
  start(): void {
    const { clock } = this.context;
    const nowMs = clock.nowMs();
    this.event("job_pending", null, { graph_id: this.graph.graphId });
    this.event("job_validated", null, { nodes: this.graph.nodes.length });
    this.event("job_scheduled", null, { placement_policy: this.graph.placementPolicy });
    this.event("job_running", null, {});
    services.jobStarted(this);
    this.status = "running";
    this.startedAtMs = nowMs;
    if (this.graph.timeoutMs !== null) {
      this.deadlineAtMs = clock.steadyMs() + this.graph.timeoutMs;
      this.timer(this.deadlineAtMs, { kind: "deadline" });
    }
    for (const index of this.graph.entrypoints) {
      for (const body of this.graph.initialInputs.get(index) ?? [{}]) {
        mail.deliver(this, { to: index, from: null, type: "init", body });
      }
    }
    for (const agent of this.agents) this.#startAgent(agent);
  }

  #startAgent(agent: AgentSlot): void {
    const { config } = agent.node;
    if (config.kind === "sensor") {
      this.openSensors++;
      this.markStarted(agent);
      this.apply(agent, startSensor(config, this.context.clock), null);
    } else if (config.kind === "executor" && config.longLived) {
      this.markStarted(agent);
      jobTasks.createTask(this, agent, "command", mail.startMessage(this, agent.node.index));
    }
  }

  /** Does one unit of work: one message, one task outcome, or what follows from being at rest. */
  step(): void {
    if (this.graph.type === "batch" && this.messageSeq > limits.batchJobMessagesMax) {
      this.failRun("job.message_limit", `The job has sent ${this.messageSeq} messages without ending.`);
      return;
    }
    const index = this.ready.shift();
    if (index === undefined) {
      if (this.isAtRest) rest.rest(this);
      return;
    }
    const agent = this.agents[index]!;
    agent.isQueued = false;
    if (agent.task?.state.kind === "ended") applyOutcome(this, agent, agent.task, agent.task.state);
    else if (this.#mayTake(agent)) this.#take(agent);
    this.enqueue(agent);
  }

  /** Puts an agent into the ready queue if it can do something now. */
  enqueue(agent: AgentSlot): void {
    if (agent.isQueued) return;
    if (agent.task?.state.kind !== "ended" && !(agent.mailbox.size > 0 && this.#mayTake(agent))) return;
    agent.isQueued = true;
    this.ready.push(agent.node.index);
  }

  #mayTake(agent: AgentSlot): boolean {
    if (agent.task === null) return true;
    if (agent.node.config.kind === "sensor") return true;
    return isLongLived(agent.node) && agent.task.state.kind === "running";
  }

  #take(agent: AgentSlot): void {
    const message = mail.take(this, agent);
    if (message === undefined) return;
    if (mail.isExpired(this, message)) {
      mail.deadLetter(this, message, "ttl_expired", 0);
      return;
    }
    this.markStarted(agent);
    agent.processed++;
    this.draft.dirtyAgents.add(agent.node.index);
    this.event("agent_message_received", agent.node.nodeId, {
      message_id: messageId(this.runId, message.seq),
      from: message.from,
      type: message.type,
    });
    steps.process(this, agent, message);
  }

  /** Takes over an agent's new state and does what its step asked for. */
  apply(agent: AgentSlot, step: Step, cause: Message | null): void {
    agent.state = step.state;
    this.draft.dirtyAgents.add(agent.node.index);
    for (const action of step.actions) {
      // An emit may end the run: what it sent was too large.
      if (this.isOver) return;
      steps.act(this, agent, action, cause);
    }
  }

  /** A sensor's timer is due; late and superseded timers change nothing. */
  sensorTimer(agentIndex: number): void {
    const { clock } = this.context;
    const agent = this.agents[agentIndex]!;
    const { config } = agent.node;
    const dueAtMs = this.sensorDueAtMs(agent);
    if (config.kind !== "sensor" || this.status !== "running" || dueAtMs === null) return;
    if (dueAtMs > clock.steadyMs()) return;
    this.apply(agent, stepSensorTimer(config, agent.state, clock), null);
  }

  sensorDone(agent: AgentSlot): void {
    agent.done = true;
    this.openSensors--;
    if (!agent.failed) {
      this.event("agent_completed", agent.node.nodeId, { processed_messages: agent.processed });
    }
    if (agent.task !== null) jobTasks.abandon(this, agent.task);
    mail.discardMailbox(this, agent);
  }

  /** When the timer of a sensor that still waits is due; null for every other agent. */
  sensorDueAtMs(agent: AgentSlot): number | null {
    return agent.node.config.kind === "sensor" && !agent.done ? sensorDueAtMs(agent.state) : null;
  }

  markStarted(agent: AgentSlot): void {
    if (agent.started) return;
    agent.started = true;
    this.draft.dirtyAgents.add(agent.node.index);
    this.event("agent_started", agent.node.nodeId, { agent_type: agent.node.agentType });
  }

  /**
   * Appends to the history. Events of workers come through here too, already checked.
   * @returns the length of the event's line in characters
   */
  event(
    type: EngineEventType | (string & {}),
    agentId: string | null,
    payload: unknown,
    failure?: Failure,
  ): number {
    const nowMs = this.context.clock.nowMs();
    const head = { nowMs, type, agentId };
    const line = renderEvent(head, payload, failure);
    this.eventSeq++;
    countEvent(this.tally, { type, payload, hasFailure: failure !== undefined, chars: line.length });
    this.updatedAtMs = nowMs;
    this.draft.eventLines.push(line);
    this.lastEvent = head;
    return line.length;
  }

  /** Ends the run as failed, for a reason that is no attempt's. */
  failRun(code: FailureCode, message: string, context?: FailureContext): void {
    control.fail(this, this.makeFailure(code, message, runSpan(this.runId), context));
  }

  /** Makes a failure of this run; the event that reports it is the next one. */
  makeFailure(code: FailureCode, message: string, span: Span, context?: FailureContext): Failure {
    const { runId } = this;
    const place = {
      runId,
      traceId: this.insert.trace.traceId,
      spanId: span.id,
      eventId: this.eventSeq + 1,
    };
    return makeFailure(code, message, this.context.clock.nowMs(), place, context);
  }

  /** @param dueAtMs on the steady clock */
  timer(dueAtMs: number, what: Parameters<TimerQueue["push"]>[0]["what"]): void {
    this.context.timers.push({ dueAtMs, jobId: this.jobId, what });
  }
}

function newSlot(node: GraphNode): AgentSlot {
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
