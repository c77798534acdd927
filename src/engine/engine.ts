// The engine: all jobs of one owner, the loop that lets them work, and the barrier between memory and the world.
//
// E1. Nothing is visible outside before the batch that caused it is on disk: answers, commands, feeds (commit
//     barrier).
// E2. One batch is under way at a time; changes made meanwhile go into the next one, in order.
// E3. Events from outside only change jobs and wake the loop; the loop is the only place that steps jobs, and
//     the flush the only place that waits.
// E4. A batch that cannot be written is tried again until it can; until then nothing new is accepted. Jobs that
//     it would have created are given up, so that their callers can be told the truth.
// E5. A job whose commit says "not yours any more" is forgotten at once, with everything it has running.

import { type Batch, EngineUnavailable, PendingBatch, refuse, type Urgency, withoutJobs } from "./batch.ts";
import type { DeclaredOutput, Graph } from "./graph.ts";
import { Job, type JobContext } from "./job.ts";
import * as control from "./job-control.ts";
import { deliver } from "./job-messages.ts";
import * as jobTasks from "./job-tasks.ts";
import type { JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import type {
  Clock,
  EngineLog,
  Feed,
  Journal,
  Lease,
  Randomness,
  Slots,
  TaskEvent,
  TaskListener,
  TaskOutcome,
  TaskRef,
  TaskRunner,
  WorkerActions,
} from "./ports.ts";
import { isTerminal, type JobInsert, JournalUnavailable } from "./ports.ts";
import { claimedJobs } from "./recovery.ts";
import { TimerQueue } from "./timers.ts";

export interface EnginePorts {
  /** Names this process among all owners; never used twice. */
  readonly owner: string;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly journal: Journal;
  readonly runner: TaskRunner;
  readonly slots: Slots;
  readonly feed: Feed;
  readonly log: EngineLog;
}

export interface Submission {
  readonly graph: Graph;
  /** Given by a caller that already keeps a record of this run; null: the engine names both. */
  readonly identity: GivenIdentity | null;
  readonly manifestJson: string;
  readonly bundleFingerprint: string | null;
  readonly configurationJson: string | null;
}

export interface GivenIdentity {
  /** Never used before. */
  readonly jobId: string;
  readonly runId: string;
  /** What workers are told as their job's id. */
  readonly definitionId: string;
}

export interface ExternalMessage {
  readonly agentId: string;
  readonly type: string;
  readonly body: JsonValue;
  readonly correlationId: string | null;
  readonly ttlMs: number | null;
}

export type ControlAnswer =
  | { readonly kind: "done"; readonly status: string }
  /** The job is terminal, or another owner's: what it is now stands in the journal. */
  | { readonly kind: "not_open" };

export type DeliverAnswer =
  | { readonly kind: "accepted"; readonly messageId: string }
  | { readonly kind: "unknown_agent" }
  | { readonly kind: "not_open" };

const JOBS_PER_RECOVERY_BATCH = 500;
const RETRY_MS_FIRST = 50;
const RETRY_MS_MAX = 2_000;
/** How often the loop looks at the clock. */
const STEPS_PER_CLOCK_LOOK = 64;

export class Engine implements TaskListener {
  readonly #ports: EnginePorts;
  readonly #context: JobContext;
  readonly #jobs = new Map<string, Job>();
  /** Jobs with work, in turn. */
  readonly #ready = new Set<Job>();
  readonly #pending = new PendingBatch();
  #isCommitting = false;
  #isLoopScheduled = false;
  #cancelTimer: (() => void) | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;
  /** Why the store cannot commit; null while it can. */
  #storeProblem: string | null = null;
  #stopReason: string | null = null;
  /** Batches taken from what was pending, and batches that are on disk. */
  #batchesTaken = 0;
  #batchesWritten = 0;
  #commitWaiters: (() => void)[] = [];
  /** Nothing is written any more; see `settledWithin`. */
  #isAbandoned = false;

  constructor(ports: EnginePorts) {
    this.#ports = ports;
    this.#context = {
      owner: ports.owner,
      clock: ports.clock,
      randomness: ports.randomness,
      slots: ports.slots,
      timers: new TimerQueue((jobId) => this.#jobs.has(jobId)),
    };
    ports.slots.onGranted = (key, lease) => this.#slotsGranted(key, lease);
  }

  /** Why nothing new is accepted; null while all is well. */
  get unavailable(): string | null {
    return this.#stopReason ?? this.#storeProblem;
  }

  get openJobs(): number {
    return this.#jobs.size;
  }

  /** The files that an open job's manifest calls its outputs. */
  declaredOutputs(jobId: string): readonly DeclaredOutput[] {
    return this.#jobs.get(jobId)?.graph.outputs ?? [];
  }

  /** Resolves once everything that changed until now is on disk. */
  async settled(): Promise<void> {
    const last = this.#batchesTaken + (this.#pending.isEmpty ? 0 : 1);
    while (this.#batchesWritten < last) await this.#committed();
  }

  /**
   * Like `settled`, for an engine that was stopped: what cannot be written in time is given up, as a crash would,
   * and was never seen outside (E1).
   * @returns whether everything is on disk
   */
  async settledWithin(limitMs: number): Promise<boolean> {
    let cancel = () => {};
    const isLate = new Promise<false>((resolve) => {
      cancel = this.#ports.clock.after(limitMs, () => resolve(false));
    });
    const isSettled = await Promise.race([this.settled().then(() => true), isLate]);
    cancel();
    this.#isAbandoned = !isSettled;
    return isSettled;
  }

  /**
   * Accepts a job. When the promise resolves the job is on disk, with all the work it could do at once.
   *
   * @throws EngineUnavailable when nothing was accepted; the same submission may be made again
   */
  async submit(submission: Submission): Promise<{ readonly jobId: string; readonly runId: string }> {
    this.#mustAccept();
    if (this.#jobs.size >= limits.openJobsMax) {
      throw new EngineUnavailable(`${limits.openJobsMax} jobs are open; wait until some have ended.`);
    }
    const { graph, identity } = submission;
    const { randomness, clock } = this.#ports;
    const jobId = identity?.jobId ?? `${graph.graphId}-${randomness.id()}`;
    const insert: JobInsert = {
      graphId: graph.graphId,
      jobName: graph.jobName,
      runId: identity?.runId ?? `run_${randomness.id()}`,
      type: graph.type,
      submittedAtMs: clock.nowMs(),
      placementPolicy: graph.placementPolicy,
      recoveryPolicy: graph.recoveryPolicy,
      executorCount: graph.nodes.filter((node) => node.agentType === "executor").length,
      rootAgentIds: graph.entrypoints.map((index) => graph.nodes[index]!.nodeId),
      manifestJson: submission.manifestJson,
      bundleFingerprint: submission.bundleFingerprint,
      definitionId: identity?.definitionId ?? null,
      configurationJson: submission.configurationJson,
    };
    const job = new Job({ jobId, epoch: 1, insert, graph }, this.#context);
    this.#jobs.set(jobId, job);
    job.start();
    this.#changed(job);
    await this.#pending.durable(jobId);
    return { jobId, runId: insert.runId };
  }

  cancel(jobId: string): Promise<ControlAnswer> {
    return this.#control(jobId, control.cancel);
  }

  pause(jobId: string): Promise<ControlAnswer> {
    return this.#control(jobId, control.pause);
  }

  resume(jobId: string): Promise<ControlAnswer> {
    return this.#control(jobId, control.resume);
  }

  async #control(jobId: string, change: (job: Job) => void): Promise<ControlAnswer> {
    const job = this.#jobs.get(jobId);
    if (job === undefined) return { kind: "not_open" };
    if (job.isOver) {
      await this.settled();
      return { kind: "not_open" };
    }
    this.#mustAccept();
    change(job);
    const { status } = job;
    this.#changed(job);
    await this.#pending.durable(jobId);
    return { kind: "done", status };
  }

  /** Sends a message from outside to one agent; resolves once it is on disk. */
  async deliver(jobId: string, message: ExternalMessage): Promise<DeliverAnswer> {
    const job = this.#jobs.get(jobId);
    if (job === undefined) return { kind: "not_open" };
    if (job.isOver) {
      await this.settled();
      return { kind: "not_open" };
    }
    const to = job.graph.indexOf.get(message.agentId);
    if (to === undefined) return { kind: "unknown_agent" };
    this.#mustAccept();
    const { type, body, correlationId, ttlMs } = message;
    const messageId = deliver(job, { to, from: null, type, body, correlationId, ttlMs });
    this.#changed(job);
    await this.#pending.durable(jobId);
    return { kind: "accepted", messageId };
  }

  /**
   * Takes over every open job that no living owner has, and lets it go on.
   * @returns how many
   */
  async recover(): Promise<number> {
    let recovered = 0;
    for await (const job of claimedJobs(this.#ports.journal, this.#context)) {
      this.#jobs.set(job.jobId, job);
      this.#changed(job);
      recovered++;
      if (recovered % JOBS_PER_RECOVERY_BATCH === 0) await this.settled();
    }
    await this.settled();
    return recovered;
  }

  /** Stops accepting and stepping; task outcomes are still kept. Running jobs stay open for the next owner. */
  stop(reason: string): void {
    this.#stopReason = reason;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  // ------------------------------------------------------------------------------------- task reports

  taskEvents(ref: TaskRef, events: readonly TaskEvent[]): void {
    const job = this.#jobs.get(ref.jobId);
    if (job === undefined || job.isOver || this.#isLosing) return;
    this.#pending.outputChars += jobTasks.taskEvents(job, ref, events);
    this.#changed(job, "lazy");
  }

  taskActions(ref: TaskRef, actions: WorkerActions): void {
    const job = this.#jobs.get(ref.jobId);
    if (job === undefined || job.isOver) return;
    const before = job.waitingChars;
    if (!jobTasks.taskActions(job, ref, actions)) return;
    this.#pending.outputChars += Math.max(0, job.waitingChars - before);
    this.#changed(job);
  }

  taskEnded(ref: TaskRef, outcome: TaskOutcome): void {
    const job = this.#jobs.get(ref.jobId);
    // What a stopping runtime interrupts stays "running" in the journal: the next owner makes it again.
    const isHandedOver = this.#stopReason !== null && outcome.kind === "interrupted";
    if (job !== undefined && !job.isOver && !isHandedOver && jobTasks.taskEnded(job, ref, outcome)) {
      this.#changed(job);
    }
    // After the job has noted the end: what is released may at once be granted to the same job.
    this.#ports.slots.release(jobTasks.slotsKey(ref));
  }

  /** Stopping while the store refuses: what is reported now is given up, and made again by the next start. */
  get #isLosing(): boolean {
    return this.#stopReason !== null && this.#storeProblem !== null;
  }

  backpressure(): Promise<void> | null {
    const hasRoom = this.#pending.outputChars < limits.uncommittedBytesMax;
    return hasRoom || this.#isLosing ? null : this.#committed();
  }

  #slotsGranted(key: string, lease: Lease): void {
    const ref = jobTasks.parseSlotsKey(key);
    const job = this.#jobs.get(ref.jobId);
    if (
      job !== undefined &&
      !job.isOver &&
      this.#stopReason === null &&
      jobTasks.slotsGranted(job, ref, lease)
    ) {
      this.#changed(job);
    } else this.#ports.slots.release(key);
  }

  // ---------------------------------------------------------------------------------------------- loop

  #changed(job: Job, urgency: Urgency = "urgent"): void {
    this.#pending.add(job, urgency, this.#ports.clock.nowMs());
    if (job.hasWork) this.#ready.add(job);
    if (urgency === "urgent") this.#scheduleLoop();
    else this.#scheduleTimer();
  }

  #scheduleLoop(): void {
    if (this.#isLoopScheduled) return;
    this.#isLoopScheduled = true;
    this.#ports.clock.soon(() => {
      this.#isLoopScheduled = false;
      this.#turn();
    });
  }

  /** Lets jobs work until all are idle or the batch is full, then has the batch written. */
  #turn(): void {
    const nowMs = this.#ports.clock.nowMs();
    this.#fireTimers(nowMs);
    if (this.#stopReason === null && !this.#isFull()) this.#work(nowMs);
    if (this.#pending.isDue(nowMs)) void this.#flush();
    if (this.#ready.size > 0 && this.#stopReason === null && !this.#isFull()) this.#scheduleLoop();
    this.#scheduleTimer();
  }

  /** While a batch is under way, the next one may grow to a few times the size; then the loop waits for it. */
  #isFull(): boolean {
    const isCrowded = this.#isCommitting && this.#pending.operations >= 4 * limits.batchOperationsMax;
    return this.unavailable !== null || isCrowded;
  }

  #work(sinceMs: number): void {
    let steps = 0;
    for (const job of this.#ready) {
      this.#ready.delete(job);
      let turn: number = limits.stepsPerTurn;
      while (job.hasWork && turn-- > 0) {
        job.step();
        steps++;
        if (steps % STEPS_PER_CLOCK_LOOK === 0 && this.#isBatchDue(steps, sinceMs)) turn = 0;
      }
      this.#pending.add(job, "urgent", sinceMs);
      if (job.hasWork) this.#ready.add(job);
      if (this.#isBatchDue(steps, sinceMs)) break;
    }
    this.#pending.operations += steps;
  }

  #isBatchDue(steps: number, sinceMs: number): boolean {
    return steps >= limits.batchOperationsMax || this.#ports.clock.nowMs() - sinceMs >= limits.batchAgeMsMax;
  }

  #fireTimers(nowMs: number): void {
    if (this.#stopReason !== null) return;
    for (;;) {
      const timer = this.#context.timers.popDue(nowMs);
      if (timer === undefined) return;
      const job = this.#jobs.get(timer.jobId);
      if (job === undefined || job.isOver) continue;
      const before = job.eventSeq;
      switch (timer.what.kind) {
        case "deadline":
          control.deadlineDue(job, nowMs);
          break;
        case "retry":
          jobTasks.retryDue(job, timer.what.taskSeq);
          break;
        case "sensor":
          job.sensorTimer(timer.what.agentIndex, nowMs);
          break;
        default:
          timer.what satisfies never;
      }
      if (job.eventSeq !== before) this.#changed(job);
    }
  }

  /** One real timer, set for whatever comes first: a job's timer, or a batch that waits for company. */
  #scheduleTimer(): void {
    if (this.#stopReason !== null) return;
    // While a batch is under way the next one waits for its end, not for the clock.
    const lazyMs = this.#isCommitting ? Number.POSITIVE_INFINITY : this.#pending.dueAtMs;
    const dueMs = Math.min(this.#context.timers.nextDueMs ?? Number.POSITIVE_INFINITY, lazyMs);
    if (dueMs === this.#timerDueMs) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#timerDueMs = dueMs;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#ports.clock.after(Math.max(0, dueMs - this.#ports.clock.nowMs()), () => {
      this.#timerDueMs = Number.POSITIVE_INFINITY;
      this.#cancelTimer = null;
      this.#turn();
    });
  }

  // --------------------------------------------------------------------------------------------- flush

  async #flush(): Promise<void> {
    if (this.#isCommitting) return;
    this.#isCommitting = true;
    this.#batchesTaken++;
    const { batch, lost } = await this.#commit(this.#pending.take());
    this.#isCommitting = false;
    this.#batchesWritten++;
    for (const jobId of lost) this.#forget(jobId, batch);
    this.#release(batch, new Set(lost));
    const waiters = this.#commitWaiters;
    this.#commitWaiters = [];
    for (const resolve of waiters) resolve();
    if (!this.#pending.isEmpty || this.#ready.size > 0) this.#scheduleLoop();
  }

  /**
   * Writes the batch, however long it takes (E4). A batch that lost all its jobs is still sent: that the store
   * takes it is the sign that the next submission may be tried.
   * @returns what was written, and the jobs that are not ours any more
   */
  async #commit(taken: Batch): Promise<{ readonly batch: Batch; readonly lost: readonly string[] }> {
    let batch = taken;
    let delayMs = RETRY_MS_FIRST;
    for (;;) {
      try {
        const { lost } = await this.#ports.journal.commit(batch.changes);
        if (delayMs > RETRY_MS_FIRST) this.#ports.log.warn({}, "the store commits again");
        this.#storeProblem = null;
        return { batch, lost };
      } catch (error) {
        if (!(error instanceof JournalUnavailable)) throw error;
        if (delayMs === RETRY_MS_FIRST) {
          this.#ports.log.error({}, `the store cannot commit: ${error.message}`);
        }
        this.#storeProblem = error.message;
        batch = this.#giveUpNewJobs(batch, error.message);
        await new Promise<void>((resolve) => this.#ports.clock.after(delayMs, resolve));
        if (this.#isAbandoned) return await new Promise<never>(() => {});
        delayMs = Math.min(delayMs * 2, RETRY_MS_MAX);
      }
    }
  }

  /** Jobs that were never on disk vanish; whoever waits for anything is told what became of it (E4). */
  #giveUpNewJobs(batch: Batch, reason: string): Batch {
    const given = new Set(batch.changes.filter((one) => one.insert !== null).map((one) => one.jobId));
    for (const job of this.#pending.newJobs()) given.add(job.jobId);
    for (const jobId of given) {
      const job = this.#jobs.get(jobId);
      if (job !== undefined) this.#drop(job);
    }
    refuse([...batch.waiters, ...this.#pending.takeWaiters()], given, reason);
    return withoutJobs(batch, given);
  }

  /** The batch is on disk: tell everyone (E1). */
  #release(batch: Batch, lost: ReadonlySet<string>): void {
    const { feed, runner } = this.#ports;
    for (const { jobId, progress, firstEventSeq, eventLines } of batch.changes) {
      if (lost.has(jobId)) continue;
      const terminal = isTerminal(progress.status);
      if (terminal) {
        const job = this.#jobs.get(jobId);
        if (job !== undefined && !this.#pending.has(job)) this.#jobs.delete(jobId);
      }
      if (eventLines.length > 0) feed.published(jobId, firstEventSeq, eventLines, terminal);
    }
    for (const waiter of batch.waiters) waiter.resolve();
    for (const effects of batch.effects) {
      for (const start of effects.starts) if (!lost.has(start.ref.jobId)) runner.start(start);
      for (const { ref, envelope } of effects.sends) runner.send(ref, envelope);
      for (const ref of effects.stops) runner.stop(ref);
    }
  }

  /** Another owner has the job (E5). */
  #forget(jobId: string, batch: Batch): void {
    const job = this.#jobs.get(jobId);
    if (job !== undefined) {
      for (const task of job.tasks.values()) {
        if (task.state.kind === "running") {
          this.#ports.runner.stop({ jobId, taskSeq: task.seq, attempt: task.attempt });
        }
      }
      this.#drop(job);
    }
    const error = new EngineUnavailable(
      "The job is now run by another node; look at its state and try again.",
    );
    for (const waiter of batch.waiters) if (waiter.jobId === jobId) waiter.reject(error);
    this.#pending.rejectWaiters(jobId, error);
    this.#ports.log.warn({ job_id: jobId }, "a job was taken over by another owner; it is forgotten here");
  }

  #drop(job: Job): void {
    for (const task of job.tasks.values()) {
      this.#ports.slots.release(
        jobTasks.slotsKey({
          jobId: job.jobId,
          taskSeq: task.seq,
          attempt: task.state.kind === "queued" ? task.attempt + 1 : task.attempt,
        }),
      );
    }
    this.#jobs.delete(job.jobId);
    this.#ready.delete(job);
    this.#pending.remove(job);
  }

  #mustAccept(): void {
    const problem = this.unavailable;
    if (problem !== null) throw new EngineUnavailable(problem);
  }

  /** Resolves after the next commit; whatever waits for company is written now. */
  #committed(): Promise<void> {
    this.#pending.hurry();
    this.#scheduleLoop();
    return new Promise((resolve) => this.#commitWaiters.push(resolve));
  }
}
