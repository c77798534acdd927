// The engine: all jobs of one owner, and what callers and task runners may ask of them. It only changes jobs; the
// loop (loop.ts, E3) lets them work, and the barrier (commit-barrier.ts, E1, E2, E4, E5, E8) makes it durable and seen.

import { EngineUnavailable, JobUnwritable, type OpenJobs, PendingBatch } from "./batch.ts";
import { CommitBarrier } from "./commit-barrier.ts";
import { Drain, type DrainOrder, type JobsLeft } from "./drain.ts";
import type { DeclaredOutput } from "./graph.ts";
import { taskEnded } from "./job/attempts.ts";
import { stopEndless } from "./job/handover.ts";
import { answer, type PersonsAnswer } from "./job/human-answers.ts";
import { progressOf, readJob, storedStatus } from "./job/image.ts";
import { goOnAfterRestart, start } from "./job/job.ts";
import { deliver, type Letter, retryDeadLetters } from "./job/messages.ts";
import { taskActions, taskEvents } from "./job/outcomes.ts";
import { serviceChanged } from "./job/services.ts";
import { type AgentState, isOver, type Job, type JobContext, refOf } from "./job/state.ts";
import { cancel, pause, resume } from "./job/status.ts";
import { commandNode, prioritize, slotsGranted } from "./job/tasks.ts";
import type {
  ControlAnswer,
  DeliverAnswer,
  ExternalMessage,
  HumanAnswer,
  JobControl,
  NotOpen,
  RetryAnswer,
} from "./job-control.ts";
import { JobMap } from "./job-map.ts";
import { JournalUnavailable } from "./journal.ts";
import { limits } from "./limits.ts";
import { Loop } from "./loop.ts";
import { messageId } from "./message.ts";
import { type EnginePorts, parseSlotsKey, slotsKey } from "./ports.ts";
import { type ClaimedJob, recoverJobs } from "./recovery.ts";
import type { ServiceChange } from "./service-port.ts";
import type { Priority } from "./share.ts";
import {
  agentsInTurns,
  hasManyAgents,
  type Submission,
  type SubmittedJob,
  submittedJob,
} from "./submission.ts";
import type {
  Lease,
  RunningAttempt,
  TaskEvent,
  TaskListener,
  TaskOutcome,
  TaskRef,
  WorkerActions,
} from "./task-port.ts";
import { type Timer, TimerQueue } from "./timers.ts";

export class Engine implements TaskListener, JobControl {
  readonly #ports: EnginePorts;
  readonly #context: JobContext;
  readonly #jobs = new JobMap();
  readonly #pending = new PendingBatch();
  readonly #barrier: CommitBarrier;
  readonly #open: OpenJobs;
  readonly #loop: Loop;
  #stopReason: string | null = null;
  /** Why all jobs were given up; null while this engine may hold some. */
  #absence: string | null = null;
  /** Jobs that are this owner's, and not read yet. */
  #claimed: string[] = [];
  #drain: Drain | null = null;

  constructor(ports: EnginePorts) {
    this.#ports = ports;
    this.#context = {
      owner: ports.owner,
      clock: ports.clock,
      randomness: ports.randomness,
      slots: ports.slots,
      schemaProblem: ports.schemaProblem,
      timers: new TimerQueue((timer) => this.#isLive(timer)),
    };
    this.#open = { all: this.#jobs, ready: new JobMap(), pending: this.#pending, leaving: new JobMap() };
    this.#barrier = new CommitBarrier(
      ports,
      this.#open,
      () => this.#loop.wake(),
      (moved) => this.#drain?.written(moved),
    );
    this.#loop = new Loop(this.#context, this.#open, this.#barrier);
    ports.slots.onGranted = (key, lease) => this.#slotsGranted(key, lease);
  }

  /** Why nothing is accepted; null while it is. */
  get unavailable(): string | null {
    return this.#stopReason ?? this.#absence ?? this.#barrier.storeProblem;
  }

  /** Why no new jobs are to be begun here; null while they are. What is submitted even so is handed over at once. */
  get closed(): string | null {
    return this.unavailable ?? this.#drain?.reason ?? null;
  }

  get openJobs(): number {
    return this.#jobs.size + this.#open.leaving.size;
  }

  /** Waiting messages of all open jobs; O(open jobs). */
  waiting(): { readonly messages: number; readonly people: number } {
    let messages = 0;
    let people = 0;
    for (const job of this.#jobs) {
      messages += job.waitingMessages;
      people += job.human.pending.size;
    }
    return { messages, people };
  }

  /** The attempts that open jobs have under way, and the node that runs each; null: this one. O(open jobs). */
  *attempts(): Generator<RunningAttempt & { readonly node: string | null }> {
    for (const job of this.#jobs) {
      if (isOver(job)) continue;
      for (const task of job.tasks.values()) {
        if (task.state.kind === "running")
          yield { ref: refOf(job, task), runId: job.runId, node: task.state.lease?.node ?? null };
      }
    }
  }

  /** The files that an open job's manifest calls its outputs. */
  declaredOutputs(jobId: string): readonly DeclaredOutput[] {
    return this.#jobs.get(jobId)?.graph.outputs ?? [];
  }

  /** Checks whether the store takes writes, for a caller whose own write was refused. */
  async askStore(): Promise<void> {
    if (this.#barrier.isCommitting) await this.#barrier.committed();
    void this.#barrier.flush();
  }

  /** Resolves once everything that changed until now is on disk. */
  settled(): Promise<void> {
    return this.#barrier.settled();
  }

  /**
   * Like `settled`, for an engine that was stopped: what cannot be written in time is given up, as a crash would,
   * and was never seen outside (E1).
   * @returns whether everything is on disk
   */
  settledWithin(limitMs: number): Promise<boolean> {
    return this.#barrier.settledWithin(limitMs);
  }

  /** Whether the job is held here: it is open, or its end, or that it was handed over, is not on disk yet. */
  holds(jobId: string): boolean {
    return this.#jobs.has(jobId) || this.#open.leaving.has(jobId);
  }

  /**
   * Accepts a job. When the promise resolves the job is on disk, with all the work it could do at once.
   *
   * @throws EngineUnavailable; the same submission may be made again if `mayRetry`, and nothing was accepted
   *   then. JobUnwritable when nothing was accepted, nor ever will be
   */
  async submit(submission: Submission): Promise<SubmittedJob> {
    const [answer] = await this.submitAll([submission]);
    if (answer instanceof JobUnwritable) throw answer;
    return answer!;
  }

  /**
   * Accepts several jobs in one commit: all of them or none, but for those that the store will never take.
   *
   * @returns them, or why not, in the order of their submissions
   * @throws EngineUnavailable as `submit`
   */
  async submitAll(submissions: readonly Submission[]): Promise<readonly (SubmittedJob | JobUnwritable)[]> {
    this.#mustTake(submissions);
    const agents: (AgentState[] | undefined)[] = [];
    for (const { graph } of submissions) {
      agents.push(hasManyAgents(graph) ? await agentsInTurns(graph, () => this.#turn()) : undefined);
    }
    // Others may have had their turn meanwhile.
    if (agents.some((list) => list !== undefined)) this.#mustTake(submissions);
    // Taken in at once: what changes between two turns of the loop is one batch.
    const jobs = submissions.map((submission, index) => this.#accept(submission, agents[index]));
    if (jobs.length > 1) this.#pending.hold(this.#ports.clock.steadyMs() + limits.submittedTogetherMsMax);
    return Promise.all(jobs.map((job) => this.#accepted(job)));
  }

  #mustTake(submissions: readonly Submission[]): void {
    this.#mustAccept();
    if (this.#jobs.size + submissions.length > limits.openJobsMax) {
      throw new EngineUnavailable(
        `At most ${limits.openJobsMax} jobs may be open, and ${this.#jobs.size} are; wait until some have ended.`,
      );
    }
    for (const { identity } of submissions) {
      // One whose acceptance was not known is still being written.
      if (identity !== null && this.holds(identity.jobId))
        throw new EngineUnavailable(`Job ${identity.jobId} is being written; look for it.`, false);
    }
  }

  #accept(submission: Submission, agents: AgentState[] | undefined): Job {
    const job = submittedJob(submission, this.#context, agents);
    job.isLeaving = this.#drain?.includes(job) ?? false;
    this.#jobs.add(job);
    start(job);
    this.#loop.changed(job);
    return job;
  }

  /** The result of a submission, once it is known. */
  async #accepted(job: Job): Promise<SubmittedJob | JobUnwritable> {
    const { jobId, runId, insert } = job;
    try {
      await this.#pending.durable(jobId);
    } catch (error) {
      if (error instanceof JobUnwritable) return error;
      throw error;
    }
    const hasEnded = isOver(job) && !this.holds(jobId);
    return { jobId, runId, ended: hasEnded ? { insert, progress: progressOf(job) } : null };
  }

  cancel(jobId: string): Promise<ControlAnswer> {
    return this.#control(jobId, cancel);
  }

  pause(jobId: string): Promise<ControlAnswer> {
    return this.#control(jobId, pause);
  }

  resume(jobId: string): Promise<ControlAnswer> {
    return this.#control(jobId, resume);
  }

  prioritize(jobId: string, priority: Priority): Promise<ControlAnswer> {
    return this.#control(jobId, (job) => prioritize(job, priority));
  }

  async #control(jobId: string, change: (job: Job) => void): Promise<ControlAnswer> {
    const job = this.#openJob(jobId);
    if (job === null) return this.#notOpen(jobId);
    this.#mustAccept();
    change(job);
    const status = storedStatus(job);
    await this.#written(job);
    return { kind: "done", status };
  }

  async deliver(jobId: string, message: ExternalMessage): Promise<DeliverAnswer> {
    const job = this.#openJob(jobId);
    if (job === null) return this.#notOpen(jobId);
    const to = job.graph.indexOf.get(message.agentId);
    if (to === undefined) return { kind: "unknown_agent" };
    this.#mustAccept();
    const { type, body, correlationId, ttlMs } = message;
    const seq = deliver(job, to, { from: null, type, body, correlationId, ttlMs });
    await this.#written(job);
    return { kind: "accepted", messageId: messageId(job.runId, seq) };
  }

  async answerHuman(jobId: string, given: PersonsAnswer): Promise<HumanAnswer> {
    const job = this.#openJob(jobId);
    if (job === null) return this.#notOpen(jobId);
    this.#mustAccept();
    const answered = answer(job, given);
    if (answered.kind === "answered") await this.#written(job);
    else await this.settled(); // It may have been closed a moment ago (E1).
    return answered;
  }

  async retryDeadLetters(jobId: string, letters: readonly Letter[]): Promise<RetryAnswer> {
    const job = this.#openJob(jobId);
    if (job === null) return this.#notOpen(jobId);
    this.#mustAccept();
    const retried = retryDeadLetters(job, letters);
    if (retried.length > 0) await this.#written(job);
    return { kind: "done", retried };
  }

  /** A caller has changed the job: resolves once that is on disk. */
  #written(job: Job): Promise<void> {
    this.#loop.changed(job);
    return this.#pending.durable(job.jobId);
  }

  #isLive({ jobId, what }: Timer): boolean {
    const job = this.#jobs.get(jobId);
    return job !== undefined && (what.kind !== "human" || job.human.pending.has(what.requestId));
  }

  #openJob(jobId: string): Job | null {
    const job = this.#jobs.get(jobId);
    return job === undefined || isOver(job) ? null : job;
  }

  /** The answer about a job that is over, or that was handed over, once that is on disk. */
  async #notOpen(jobId: string): Promise<NotOpen> {
    // Of a job that was given up nothing is known here.
    if (this.#absence !== null) throw new EngineUnavailable(this.#absence);
    if (this.holds(jobId)) await this.settled();
    return { kind: "not_open" };
  }

  /**
   * Gives all jobs up at once (E8): others may have them from now on. What runs of them is stopped, and nothing is
   * accepted until `takeUp`. Giving up again changes nothing.
   *
   * @param reason a sentence for those who wait, with the next step
   */
  giveUp(reason: string): void {
    if (this.#absence !== null) return;
    this.#absence = reason;
    this.#claimed = [];
    this.#barrier.giveUp(reason);
  }

  /** Works again, under a new name. To be called once nothing runs of the jobs that were given up. */
  takeUp(owner: string): void {
    this.#context.owner = owner;
    this.#absence = null;
  }

  /** Whether what was begun under this name may go on. */
  #worksAs(owner: string): boolean {
    return this.#absence === null && this.#context.owner === owner;
  }

  /**
   * Takes over every open job that no living owner has, and lets it go on, until the engine is stopped. May be called
   * again at any time, one call after the other.
   * @returns how many
   */
  async recover(): Promise<number> {
    let recovered = 0;
    const { owner } = this.#context;
    const canGoOn = () => this.#worksAs(owner) && this.#stopReason === null;
    const recoverer = {
      owner,
      claimed: this.#claimed,
      canGoOn,
      // What goes from here would come back.
      canClaim: () => this.#drain === null,
      goOn: (job: ClaimedJob) => {
        this.#goOn(job);
        recovered++;
      },
      turn: () => this.#turn(),
      settled: () => this.settled(),
    };
    try {
      await recoverJobs(this.#ports, recoverer);
    } catch (error) {
      // What it has read belongs to others by now.
      if (!this.#worksAs(owner)) return recovered;
      if (error instanceof JournalUnavailable && error.outcome === "damaged") {
        this.#barrier.setDamaged(error.message);
      }
      // Stored data can still be read; health reports that nothing else is possible (E7).
      if (!this.#barrier.isDamaged) throw error;
    }
    return recovered;
  }

  #goOn({ image, graph, wasHandedOver }: ClaimedJob): void {
    const job = readJob(image, graph, this.#context);
    job.isLeaving = this.#drain?.includes(job) ?? false;
    goOnAfterRestart(job, wasHandedOver);
    this.#jobs.add(job);
    this.#loop.changed(job);
  }

  /**
   * Has every job leave (drain.ts): none begins an attempt here, those included that are submitted later. May be called again
   * with another order.
   */
  drain(order: DrainOrder): void {
    if (this.#drain !== null) this.#drain.begin(order);
    else {
      const changed = (job: Job) => this.#loop.changed(job);
      const settled = () => this.settled();
      const parts = { clock: this.#ports.clock, open: this.#open, changed, settled };
      this.#drain = new Drain(parts, order);
    }
  }

  /** The jobs that are still here stay. */
  undrain(): void {
    this.#drain?.cancel();
    this.#drain = null;
  }

  /** What is left of a drain; null when there is none. O(open jobs). */
  jobsLeft(): JobsLeft | null {
    return this.#drain?.left() ?? null;
  }

  /** Resolves when a drain has no job left, or is cancelled. */
  async drained(): Promise<void> {
    await this.#drain?.ended();
  }

  /** Lets everything else have its turn. */
  #turn(): Promise<void> {
    return new Promise((resolve) => this.#ports.clock.soon(resolve));
  }

  /** Stops accepting and stepping; task outcomes are still kept. Running jobs stay open for the next owner. */
  stop(reason: string): void {
    this.#stopReason = reason;
    this.#drain?.stop();
    this.#loop.stop();
  }

  // ------------------------------------------------------------------------------------- task reports

  taskEvents(ref: TaskRef, events: readonly TaskEvent[]): void {
    const job = this.#jobs.get(ref.jobId);
    if (job === undefined || isOver(job) || this.#isLosing) return;
    this.#pending.outputChars += taskEvents(job, ref, events);
    this.#loop.changed(job, "lazy");
  }

  taskActions(ref: TaskRef, actions: WorkerActions): void {
    const job = this.#jobs.get(ref.jobId);
    if (job === undefined || isOver(job)) return;
    const before = job.waitingChars;
    if (!taskActions(job, ref, actions)) return;
    this.#pending.outputChars += Math.max(0, job.waitingChars - before);
    this.#loop.changed(job);
  }

  taskEnded(ref: TaskRef, outcome: TaskOutcome): void {
    const job = this.#jobs.get(ref.jobId);
    // What a stopping runtime interrupts stays "running" in the journal: the next owner makes it again.
    const isHandedOver = this.#stopReason !== null && outcome.kind === "interrupted";
    if (job !== undefined && !isOver(job) && !isHandedOver) {
      const node = job.hasServices ? commandNode(job, ref) : null;
      if (taskEnded(job, ref, outcome)) {
        if (node !== null && node.services.length > 0) this.#ports.services.agentEnded(job.jobId, node);
        if (job.isLeaving) stopEndless(job);
        this.#loop.changed(job);
      }
    }
    // After the job has noted the end: what is released may at once be granted to the same job.
    this.#ports.slots.release(slotsKey(ref));
  }

  /** The finding of a service check; dropped when the service, or its job, has ended. */
  serviceChanged(jobId: string, change: ServiceChange): void {
    const job = this.#openJob(jobId);
    if (job === null || this.#isLosing || !serviceChanged(job, change)) return;
    this.#loop.changed(job, "lazy");
  }

  /** Stopping while the store refuses, or a damaged store: reports are dropped from now on. */
  get #isLosing(): boolean {
    return this.#barrier.isDamaged || (this.#stopReason !== null && this.#barrier.storeProblem !== null);
  }

  backpressure(): Promise<void> | null {
    const hasRoom = this.#pending.outputChars < limits.uncommittedBytesMax;
    return hasRoom || this.#isLosing ? null : this.#barrier.committed();
  }

  #slotsGranted(key: string, lease: Lease): void {
    const ref = parseSlotsKey(key);
    const job = this.#jobs.get(ref.jobId);
    if (job !== undefined && !isOver(job) && this.#stopReason === null && slotsGranted(job, ref, lease)) {
      this.#loop.changed(job);
    } else this.#ports.slots.release(key);
  }

  #mustAccept(): void {
    const problem = this.unavailable;
    if (problem !== null) throw new EngineUnavailable(problem);
  }
}
