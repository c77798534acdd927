// A drain: every job leaves this engine, and others go on with them.
//
// E9. A job goes once none of its attempts runs, with a part of a batch like any other, which sets it free in the journal.
//     From the moment that part was taken nothing changes the job here; so the next owner continues exactly where it stopped.
// - Attempts that run may end by themselves until the deadline. Then they are asked to end, which does not count as an
//   attempt of theirs. Attempts that never end are asked to as soon as nothing else of their job runs.
// - Jobs of type service may go last: they work on as ever until no other job is left, or the deadline.

import type { OpenJobs } from "./batch.ts";
import { mayGo, runningOf, stay, stopAll, stopEndless, withdraw } from "./job/handover.ts";
import { isOver, type Job } from "./job/state.ts";
import type { Clock } from "./ports.ts";

/** Jobs that go with one batch, of those that have nothing running. */
const JOBS_PER_BATCH = 500;

export interface DrainOrder {
  /** When attempts that still run are asked to end, on the steady clock. */
  readonly deadlineMs: number;
  readonly servicesLast: boolean;
  /** Why no new jobs are to be begun here: a sentence for those who submit one, with the next step. */
  readonly reason: string;
}

/** What is left of a drain. */
export interface JobsLeft {
  readonly jobs: number;
  /** Those of them that are services. */
  readonly services: number;
  /** Attempts that run. */
  readonly attempts: number;
  /** Jobs that others may have by now. */
  readonly moved: number;
}

export interface DrainParts {
  readonly clock: Clock;
  readonly open: OpenJobs;
  /** The job has something for the next batch. */
  readonly changed: (job: Job) => void;
  /** Resolves once everything that has changed is on disk; rejects when that never will be. */
  readonly settled: () => Promise<void>;
}

export class Drain {
  readonly #parts: DrainParts;
  #order: DrainOrder;
  #moved = 0;
  #areServicesGoing = false;
  #isOverdue = false;
  #isCancelled = false;
  #cancelTimer = () => {};
  #waiters: (() => void)[] = [];

  constructor(parts: DrainParts, order: DrainOrder) {
    this.#parts = parts;
    this.#order = order;
    this.begin(order);
  }

  get reason(): string {
    return this.#order.reason;
  }

  /** Begins, or goes on in another way. */
  begin(order: DrainOrder): void {
    const { clock } = this.#parts;
    this.#order = order;
    this.#cancelTimer();
    const leftMs = order.deadlineMs - clock.steadyMs();
    this.#isOverdue = leftMs <= 0;
    if (!this.#isOverdue) this.#cancelTimer = clock.after(leftMs, () => this.begin(this.#order));
    this.#areServicesGoing ||= this.#isOverdue || !order.servicesLast;
    this.#send();
  }

  /** A batch was written, or all jobs were given up. @param moved how many jobs went with it */
  written(moved: number): void {
    this.#moved += moved;
    const { all, leaving } = this.#parts.open;
    if (all.size + leaving.size === 0) this.#tellWaiters();
    if (this.#areServicesGoing) return;
    for (const job of all) if (!isService(job)) return;
    this.#areServicesGoing = true;
    this.#send();
  }

  /** Whether the job is to leave too, as things are now. */
  includes(job: Job): boolean {
    return this.#areServicesGoing || !isService(job);
  }

  /** The engine stops: nothing happens at the deadline any more. */
  stop(): void {
    this.#cancelTimer();
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#cancelTimer();
    this.#tellWaiters();
    for (const job of this.#parts.open.all) {
      if (!job.isLeaving || isOver(job)) continue;
      stay(job);
      this.#parts.changed(job);
    }
  }

  /** Resolves when no job is left, or the drain is cancelled. */
  async ended(): Promise<void> {
    const { all, leaving } = this.#parts.open;
    if (this.#isCancelled || all.size + leaving.size === 0) return;
    await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  left(): JobsLeft {
    const { all, leaving } = this.#parts.open;
    let services = 0;
    let attempts = 0;
    for (const job of all) {
      if (isService(job)) services++;
      attempts += runningOf(job).length;
    }
    return { jobs: all.size + leaving.size, services, attempts, moved: this.#moved };
  }

  #tellWaiters(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** Has every job leave whose time has come: all of them begin nothing from now on, and go in portions. */
  #send(): void {
    const { all } = this.#parts.open;
    for (const job of all) if (!isOver(job) && this.includes(job)) job.isLeaving = true;
    const going: Job[] = [];
    for (const job of all) {
      if (isOver(job) || !job.isLeaving) continue;
      withdraw(job);
      const isStopping = this.#isOverdue ? stopAll(job) : stopEndless(job);
      if (isStopping || mayGo(job)) going.push(job);
    }
    void this.#write(going);
  }

  async #write(going: readonly Job[]): Promise<void> {
    const { open, changed, settled } = this.#parts;
    for (const [i, job] of going.entries()) {
      if (this.#isCancelled) return;
      if (open.all.get(job.jobId) === job) changed(job);
      if ((i + 1) % JOBS_PER_BATCH !== 0) continue;
      try {
        await settled();
      } catch {
        // The store is damaged, or all jobs were given up.
        return;
      }
    }
  }
}

const isService = ({ graph }: Job) => graph.type === "service";
