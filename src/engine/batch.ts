// The next commit: changed jobs, the callers that wait for them, and the effects that may happen outside only
// afterwards.

import { go, mayGo } from "./job/handover.ts";
import { type JobPart, takePart } from "./job/image.ts";
import type { Job } from "./job/state.ts";
import type { JobMap } from "./job-map.ts";
import type { JournalUnavailable, WriteOutcome } from "./journal.ts";
import { limits } from "./limits.ts";

/** The engine accepts nothing now: it is shutting down, or the store cannot commit. */
export class EngineUnavailable extends Error {
  override readonly name = "EngineUnavailable";
  /** False when the request will take effect by itself: asking again would do it twice. */
  readonly mayRetry: boolean;

  constructor(message: string, mayRetry = true) {
    super(message);
    this.mayRetry = mayRetry;
  }
}

/** The store refuses this job only: nothing of it was accepted, and a retry fails the same way. */
export class JobUnwritable extends Error {
  override readonly name = "JobUnwritable";
}

/** A caller whose answer waits for the commit. */
interface Waiter {
  readonly jobId: string;
  resolve(): void;
  reject(error: Error): void;
}

/** Changes on their way to the journal. */
export interface Batch {
  readonly parts: readonly JobPart[];
  readonly waiters: readonly Waiter[];
}

/** The jobs of one engine, which its loop and its barrier share. */
export interface OpenJobs {
  readonly all: JobMap;
  /** Those with work, in turn. */
  readonly ready: JobMap;
  /** Those that changed since the last batch. */
  readonly pending: PendingBatch;
  /** Those that are no more among all, while the part that hands them over is on its way (E9). */
  readonly leaving: JobMap;
}

/** Logs and progress wait to share a commit with other changes; everything else does not. */
export type Urgency = "urgent" | "lazy";

export class PendingBatch {
  #jobs = new Set<Job>();
  #waiters: Waiter[] = [];
  #oldestChangeMs: number | null = null;
  #isUrgent = false;
  /** When, on the steady clock, the batch no longer waits for jobs that were submitted together, while some have work. */
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  /** Callers that are likely to come, and until when, on the steady clock, the first of them wait for the others. */
  #callers = 0;
  #gathersUntilMs = Number.NEGATIVE_INFINITY;
  /** How many had come when it was last asked. */
  #callersSeen = 0;
  /** Steps done, and characters of task output taken in, since the last batch. */
  operations = 0;
  outputChars = 0;

  get isEmpty(): boolean {
    return this.#jobs.size === 0;
  }

  /** When, on the steady clock, even a batch that may wait is to be written. */
  get dueAtMs(): number {
    if (this.#oldestChangeMs === null) return Number.POSITIVE_INFINITY;
    const lazyMs = this.#oldestChangeMs + limits.lazyFlushMs;
    return this.#isGathering ? Math.min(lazyMs, this.#gathersUntilMs) : lazyMs;
  }

  isDue(steadyMs: number): boolean {
    return !this.isEmpty && ((this.#isUrgent && !this.#isGathering) || steadyMs >= this.dueAtMs);
  }

  get #isGathering(): boolean {
    const callers = this.#waiters.length;
    return callers > 0 && callers < this.#callers && this.operations < limits.batchOperationsMax;
  }

  /**
   * Callers that were answered together come again at about the same time, and those that came meanwhile are already here:
   * they share the next batch, instead of taking turns with one half each.
   */
  gather(answered: number, untilMs: number): void {
    this.#callers = answered + this.#waiters.length;
    this.#callersSeen = this.#waiters.length;
    this.#gathersUntilMs = untilMs;
  }

  /**
   * Whether some of these callers have come since this was last asked, and others may follow: then the thread is busy with
   * taking them in, and a batch without them would be written for half of them.
   */
  haveCallersCome(steadyMs: number): boolean {
    const seen = this.#callersSeen;
    this.#callersSeen = this.#waiters.length;
    const isLate = steadyMs >= this.#gathersUntilMs + limits.batchAgeMsMax;
    return this.#callersSeen > seen && this.#isGathering && !isLate;
  }

  add(job: Job, urgency: Urgency, steadyMs: number): void {
    this.#oldestChangeMs ??= steadyMs;
    this.#jobs.add(job);
    if (urgency === "urgent") this.#isUrgent = true;
  }

  has(job: Job): boolean {
    return this.#jobs.has(job);
  }

  remove(job: Job): void {
    this.#jobs.delete(job);
    if (this.isEmpty) this.#oldestChangeMs = null;
  }

  /** Jobs that no batch has carried yet. */
  newJobs(): Job[] {
    return [...this.#jobs].filter((job) => job.revision === 0);
  }

  /**
   * Jobs that were submitted together are written once they are quiescent, and not first with the work that they
   * have and then without it.
   */
  hold(untilMs: number): void {
    this.#heldUntilMs = untilMs;
  }

  isHeld(steadyMs: number): boolean {
    return steadyMs < this.#heldUntilMs && this.operations < 4 * limits.batchOperationsMax;
  }

  hurry(): void {
    this.#callers = 0;
    this.#isUrgent = true;
  }

  /** Resolves when the batch that is being gathered is on disk. */
  durable(jobId: string): Promise<void> {
    return new Promise((resolve, reject) => this.#waiters.push({ jobId, resolve, reject }));
  }

  /** Takes everything gathered so far; what changes from now on belongs to the next batch. */
  take(): Batch {
    const parts = Array.from(this.#jobs, (job) => {
      if (mayGo(job)) go(job);
      return takePart(job);
    });
    const batch = { parts, waiters: this.takeWaiters() };
    // A cleared set would refer to its new content from its old one (job-map.ts).
    this.#jobs = new Set();
    this.#oldestChangeMs = null;
    this.#isUrgent = false;
    this.#heldUntilMs = Number.NEGATIVE_INFINITY;
    this.operations = 0;
    this.outputChars = 0;
    return batch;
  }

  /** Tells the waiters of this job that it is no longer held here. */
  rejectWaiters(jobId: string, error: Error): void {
    for (const waiter of this.#waiters) if (waiter.jobId === jobId) waiter.reject(error);
    this.#waiters = this.#waiters.filter((waiter) => waiter.jobId !== jobId);
  }

  takeWaiters(): readonly Waiter[] {
    const waiters = this.#waiters;
    this.#waiters = [];
    return waiters;
  }
}

/** The batch without some jobs, and without anything that was to happen for them; nobody waits for it any more. */
export function withoutJobs(batch: Batch, jobIds: ReadonlySet<string>): Batch {
  return { parts: batch.parts.filter(({ jobId }) => !jobIds.has(jobId)), waiters: [] };
}

/**
 * Tells every waiter what is known of its request when the store did not confirm the batch.
 *
 * @param given jobs that were given up, so that nothing of them was accepted
 * @param newJobs those of the batch that no batch has carried before
 */
export function refuse(
  waiters: readonly Waiter[],
  given: ReadonlySet<string>,
  newJobs: ReadonlySet<string>,
  { message, outcome }: JournalUnavailable,
): void {
  for (const { jobId, reject } of waiters) {
    const isGivenUp = given.has(jobId);
    const effect = isGivenUp ? givenUpText[outcome] : effectText(outcome, newJobs.has(jobId) ? jobId : null);
    reject(new EngineUnavailable(`${message} ${effect}`, isGivenUp || outcome === "damaged"));
  }
}

const givenUpText: Readonly<Record<WriteOutcome, string>> = {
  not_written: "Nothing was accepted; try again.",
  unknown: "Nothing was accepted; try again.",
  damaged: "Nothing was accepted.",
};

function effectText(outcome: WriteOutcome, newJobId: string | null): string {
  if (outcome === "damaged") return "The request has no effect.";
  if (outcome === "not_written" && newJobId === null)
    return "The request takes effect as soon as the store can commit again.";
  return newJobId === null
    ? "It is not known whether the request was written; it takes effect when the store commits again."
    : `It is not known whether job ${newJobId} was accepted: look for it before you submit it again.`;
}
