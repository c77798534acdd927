// The barrier between memory and the world: batches go to the journal, and what they caused goes out behind them.
// When a batch is due is the loop's business.
//
// E1. Nothing is visible outside before the batch that caused it is on disk: answers, commands, feeds (commit
//     barrier).
// E2. One batch is under way at a time; changes made meanwhile go into the next one, in order.
// E4. A batch that cannot be written is tried again until it can; until then nothing new is accepted. Jobs that
//     it would have created are dropped, and their callers told that nothing was accepted; unless it is not known whether
//     they were written: those are tried again too, which finds out (J3).
// E5. A job whose commit says "not yours any more" is forgotten at once, with everything it has running.
// E6. A job whose part the store refuses for good ends as failed; the others of its batch continue (J4).
// E7. Once the store is damaged nothing is tried any more, and every waiter gets an error.
// E8. Jobs that are given up are forgotten as lost ones are (E5), all at once. The batch under way is not waited for: when
//     its answer comes, it changes nothing here.

import { type Batch, EngineUnavailable, JobUnwritable, type OpenJobs, refuse, withoutJobs } from "./batch.ts";
import type { Effects } from "./job/draft.ts";
import { type Job, refOf } from "./job/state.ts";
import { nextAttempt } from "./job/tasks.ts";
import { type CommitAnswer, isTerminal, JournalUnavailable } from "./journal.ts";
import { limits } from "./limits.ts";
import { type EnginePorts, slotsKey } from "./ports.ts";
import { failDamagedJob } from "./recovery.ts";
import { tell } from "./service-port.ts";

const RETRY_MS_FIRST = 50;
const RETRY_MS_MAX = 2_000;
const NOT_KNOWN = "Whether the request was written is not known: look for its effect before you repeat it.";
const never = () => new Promise<never>(() => {});

export class CommitBarrier {
  readonly #ports: EnginePorts;
  readonly #open: OpenJobs;
  readonly #wakeLoop: () => void;
  readonly #onWritten: (movedJobs: number) => void;
  #isCommitting = false;
  /** Why the store cannot commit; null while it can. */
  #storeProblem: string | null = null;
  /** Batches taken from what was pending, and batches that are on disk. */
  #batchesTaken = 0;
  #batchesWritten = 0;
  #commitWaiters: (() => void)[] = [];
  /** Nothing is written any more; see `settledWithin`. */
  #isAbandoned = false;
  #isDamaged = false;
  /** What is being written; null between batches. */
  #underWay: Batch | null = null;
  /** Counts how often all jobs were given up: what was begun before that is not gone on with. */
  #givenUp = 0;

  /**
   * @param wakeLoop wakes the loop
   * @param onWritten told how many jobs were handed over by a batch that is on disk, and when all jobs were given up
   */
  constructor(
    ports: EnginePorts,
    open: OpenJobs,
    wakeLoop: () => void,
    onWritten: (movedJobs: number) => void,
  ) {
    this.#ports = ports;
    this.#open = open;
    this.#wakeLoop = wakeLoop;
    this.#onWritten = onWritten;
  }

  /** Whether a batch is under way: what is gathered now has to wait; for ever when the store is damaged. */
  get isCommitting(): boolean {
    return this.#isCommitting || this.#isDamaged;
  }

  /** Why the store cannot commit; null while it can. */
  get storeProblem(): string | null {
    return this.#storeProblem;
  }

  /** Whether the store is damaged: what happens now is never written (E7). */
  get isDamaged(): boolean {
    return this.#isDamaged;
  }

  /**
   * Resolves once everything that changed until now is on disk.
   *
   * @throws EngineUnavailable when the store is damaged, or the jobs are given up
   */
  async settled(): Promise<void> {
    const givenUp = this.#givenUp;
    const last = this.#batchesTaken + (this.#open.pending.isEmpty ? 0 : 1);
    while (this.#batchesWritten < last) {
      if (this.#isDamaged) throw new EngineUnavailable(this.#storeProblem ?? "");
      await this.committed();
      if (givenUp !== this.#givenUp) throw new EngineUnavailable(NOT_KNOWN, false);
    }
  }

  /** The store was found damaged: its waiters get an error. */
  setDamaged(reason: string): void {
    this.#isDamaged = true;
    this.#storeProblem = reason;
    this.#ports.log.error({}, `the store is damaged and takes no writes: ${reason}`);
    this.#tellCommitted();
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
    const settled = this.settled().then(
      () => true,
      () => false,
    );
    const isSettled = await Promise.race([settled, isLate]);
    cancel();
    this.#isAbandoned = !isSettled;
    return isSettled;
  }

  /** Resolves after the next commit; a batch that was waiting to grow is written now. */
  async committed(): Promise<void> {
    if (this.#isDamaged) return;
    this.#open.pending.hurry();
    this.#wakeLoop();
    return new Promise((resolve) => this.#commitWaiters.push(resolve));
  }

  /** Writes what is pending, unless a batch is under way (E2). */
  async flush(): Promise<void> {
    if (this.isCommitting) return;
    this.#isCommitting = true;
    this.#batchesTaken++;
    const startedMs = this.#ports.clock.steadyMs();
    const { batch, answer } = await this.#commit(this.#take());
    for (const jobId of answer.lost) this.#forget(jobId, batch);
    for (const { jobId, reason } of answer.unwritable) await this.#setAside(jobId, reason, batch);
    this.#isCommitting = false;
    this.#underWay = null;
    this.#batchesWritten++;
    this.#gather(batch.waiters.length, startedMs);
    this.#release(batch, new Set([...answer.lost, ...answer.unwritable.map(({ jobId }) => jobId)]));
    this.#tellCommitted();
    if (!this.#open.pending.isEmpty || this.#open.ready.size > 0) this.#wakeLoop();
  }

  /** What changes the jobs that are handed over comes too late from now on (E9). */
  #take(): Batch {
    const { all, ready, pending, leaving } = this.#open;
    const batch = pending.take();
    for (const { jobId, changes } of batch.parts) {
      if (!changes.isHandedOver) continue;
      leaving.add(all.get(jobId)!);
      all.delete(jobId);
      ready.delete(jobId);
    }
    return batch;
  }

  /** Never longer than a commit takes: callers wait at most once more for what they would have waited for anyway. */
  #gather(answered: number, startedMs: number): void {
    const nowMs = this.#ports.clock.steadyMs();
    this.#open.pending.gather(answered, nowMs + Math.min(nowMs - startedMs, limits.batchAgeMsMax));
  }

  /**
   * Gives all jobs up (E8).
   *
   * @param reason a sentence for those who wait
   */
  giveUp(reason: string): void {
    const { all, pending, leaving } = this.#open;
    const unsent = new EngineUnavailable(`${reason} The request has no effect.`);
    for (const waiter of pending.takeWaiters()) waiter.reject(unsent);
    for (const job of all) this.#end(job, unsent);
    for (const job of leaving) this.#gone(job);
    // Nothing is gathered, and output has room.
    pending.take();
    const batch = this.#underWay;
    this.#underWay = null;
    if (batch !== null) {
      for (const waiter of batch.waiters)
        waiter.reject(new EngineUnavailable(`${reason} ${NOT_KNOWN}`, false));
      for (const { effects } of batch.parts) this.#act(effects, true);
    }
    this.#givenUp++;
    this.#isCommitting = false;
    this.#batchesWritten = this.#batchesTaken;
    this.#storeProblem = null;
    this.#tellCommitted();
    // A drain has no job left.
    this.#onWritten(0);
  }

  #tellCommitted(): void {
    const waiters = this.#commitWaiters;
    this.#commitWaiters = [];
    for (const resolve of waiters) resolve();
  }

  /**
   * Writes the batch, however long it takes (E4). A batch that lost all its jobs is still sent: that the store
   * takes it is the sign that the next submission may be tried.
   * @returns what was written, and the jobs of which nothing was
   */
  async #commit(taken: Batch): Promise<{ readonly batch: Batch; readonly answer: CommitAnswer }> {
    let batch = taken;
    this.#underWay = taken;
    let isUnknown = false;
    const answer = await this.#untilTaken(
      () => this.#ports.journal.commit(batch.parts.map(({ changes }) => changes)),
      (error) => {
        isUnknown ||= error.outcome === "unknown";
        batch = this.#giveUpNewJobs(batch, error, isUnknown);
        this.#underWay = batch;
      },
    );
    return { batch, answer };
  }

  /**
   * Tries until the store takes it. Never resolves when it is damaged (E7), when nothing is written any more, or when the
   * jobs are given up meanwhile (E8).
   */
  async #untilTaken<T>(attempt: () => Promise<T>, refused: (error: JournalUnavailable) => void): Promise<T> {
    const givenUp = this.#givenUp;
    let delayMs = RETRY_MS_FIRST;
    for (;;) {
      try {
        const value = await attempt();
        if (givenUp !== this.#givenUp) return await never();
        if (delayMs > RETRY_MS_FIRST) this.#ports.log.warn({}, "the store commits again");
        this.#storeProblem = null;
        return value;
      } catch (error) {
        if (givenUp !== this.#givenUp) return await never();
        if (!(error instanceof JournalUnavailable)) throw error;
        const isDamaged = error.outcome === "damaged";
        if (isDamaged) this.setDamaged(error.message);
        else if (delayMs === RETRY_MS_FIRST) {
          this.#ports.log.error({}, `the store cannot commit: ${error.message}`);
        }
        this.#storeProblem = error.message;
        refused(error);
        if (!isDamaged) await new Promise<void>((resolve) => this.#ports.clock.after(delayMs, resolve));
        if (isDamaged || this.#isAbandoned || givenUp !== this.#givenUp) return await never();
        delayMs = Math.min(delayMs * 2, RETRY_MS_MAX);
      }
    }
  }

  /**
   * Jobs that are known not to be on disk are dropped; every waiter gets the result of its request (E4).
   *
   * @param isUnknown whether the batch's own new jobs may be on disk, so that they stay
   */
  #giveUpNewJobs(batch: Batch, error: JournalUnavailable, isUnknown: boolean): Batch {
    const newParts = batch.parts.filter(({ changes }) => changes.insert !== null);
    const newJobs = new Set(newParts.map(({ jobId }) => jobId));
    const given = isUnknown ? new Set<string>() : new Set(newJobs);
    for (const job of this.#open.pending.newJobs()) given.add(job.jobId);
    for (const jobId of given) {
      const job = this.#open.all.get(jobId);
      if (job !== undefined) this.#drop(job);
      this.#open.leaving.delete(jobId);
    }
    refuse([...batch.waiters, ...this.#open.pending.takeWaiters()], given, newJobs, error);
    return withoutJobs(batch, given);
  }

  /** The batch is on disk: tell everyone (E1). @param lost the jobs of which it is not */
  #release({ parts, waiters }: Batch, lost: ReadonlySet<string>): void {
    const { all, pending } = this.#open;
    let moved = 0;
    for (const { jobId, changes } of parts) {
      if (lost.has(jobId)) continue;
      if (changes.isHandedOver) {
        this.#open.leaving.delete(jobId);
        moved++;
      }
      const { progress, firstEventSeq, eventLines } = changes;
      const isLast = isTerminal(progress.status);
      const job = all.get(jobId);
      if (isLast && job !== undefined && !pending.has(job)) all.delete(jobId);
      if (eventLines.length > 0) this.#ports.feed.published(jobId, firstEventSeq, eventLines, isLast);
    }
    for (const waiter of waiters) waiter.resolve();
    for (const { jobId, effects } of parts) this.#act(effects, lost.has(jobId));
    this.#onWritten(moved);
  }

  /** Whether or not it was handed over is not known: nothing here looks after it any more. */
  #gone(job: Job): void {
    if (job.hasServices) this.#ports.services.jobClosed(job.jobId);
    this.#open.leaving.delete(job.jobId);
  }

  /** What runs of a lost job is only stopped. */
  #act({ starts, stops, sends, responses, services }: Effects, isLost: boolean): void {
    const { runner, services: board } = this.#ports;
    if (!isLost) {
      for (const start of starts) runner.start(start);
      for (const { ref, envelope } of sends) runner.send(ref, envelope);
      for (const { ref, line } of responses) runner.respond(ref, line);
    }
    for (const ref of stops) runner.stop(ref);
    if (!isLost) for (const news of services) tell(board, news);
  }

  /** Another owner has the job (E5). */
  #forget(jobId: string, batch: Batch): void {
    const reason = "The job is now run by another node; look at its state and try again.";
    this.#endLost(jobId, batch, new EngineUnavailable(reason));
    this.#ports.log.warn({ job_id: jobId }, "a job was taken over by another owner; it is forgotten here");
  }

  /** The store refuses the job's part for good (E6). */
  async #setAside(jobId: string, reason: string, batch: Batch): Promise<void> {
    const { insert, owner } = batch.parts.find((part) => part.jobId === jobId)!.changes;
    this.#ports.log.error({ job_id: jobId, reason }, "a job cannot be written and is set aside");
    if (insert !== null) {
      const text = `The store does not take this job (${reason}). Nothing of it was accepted.`;
      this.#endLost(jobId, batch, new JobUnwritable(text));
      return;
    }
    const text = `A record of the job cannot be written (${reason}): the job ends as failed. Look at its state.`;
    this.#endLost(jobId, batch, new EngineUnavailable(text));
    const message = `A record of the job cannot be written: ${reason}`;
    const end = await this.#untilTaken(
      () => failDamagedJob(this.#ports, { jobId, owner }, message),
      () => {},
    );
    if (end !== null) this.#ports.feed.published(jobId, end.eventSeq, [end.line], true);
  }

  #endLost(jobId: string, batch: Batch, error: Error): void {
    const left = this.#open.leaving.get(jobId);
    // It may have come back meanwhile.
    const job = left === undefined ? this.#open.all.get(jobId) : undefined;
    if (left !== undefined) this.#gone(left);
    if (job !== undefined) this.#end(job, error);
    for (const waiter of batch.waiters) if (waiter.jobId === jobId) waiter.reject(error);
  }

  /** Drops the job with everything it has running, and tells those who wait for what is not written yet. */
  #end(job: Job, error: Error): void {
    const { runner, services } = this.#ports;
    for (const task of job.tasks.values()) {
      if (task.state.kind === "running") runner.stop(refOf(job, task));
    }
    // Those that the job has let go of already still run.
    for (const ref of job.draft.effects.stops) runner.stop(ref);
    if (job.hasServices) services.jobClosed(job.jobId);
    this.#drop(job);
    this.#open.pending.rejectWaiters(job.jobId, error);
  }

  #drop(job: Job): void {
    for (const task of job.tasks.values()) {
      const ref = task.state.kind === "queued" ? nextAttempt(job, task) : refOf(job, task);
      this.#ports.slots.release(slotsKey(ref));
    }
    this.#open.all.delete(job.jobId);
    this.#open.ready.delete(job.jobId);
    this.#open.pending.remove(job);
  }
}
