// The loop: lets jobs work in turn, and decides when a batch is written.
//
// E3. Events from outside only change jobs and wake the loop; the loop is the only place that steps jobs, and
//     the barrier's flush (commit-barrier.ts) the only place that waits.

import type { OpenJobs, Urgency } from "./batch.ts";
import type { CommitBarrier } from "./commit-barrier.ts";
import { retryDue } from "./job/attempts.ts";
import { expireRequest } from "./job/human-answers.ts";
import { hasWork, step } from "./job/job.ts";
import { isOver, type Job, type JobContext } from "./job/state.ts";
import { deadlineDue } from "./job/status.ts";
import { sensorTimerDue } from "./job/steps.ts";
import { limits } from "./limits.ts";
import type { Clock } from "./ports.ts";
import type { TimerQueue } from "./timers.ts";

/** How often the loop looks at the clock. */
const STEPS_PER_CLOCK_LOOK = 64;

export class Loop {
  readonly #clock: Clock;
  readonly #timers: TimerQueue;
  readonly #open: OpenJobs;
  readonly #barrier: CommitBarrier;
  #isScheduled = false;
  #isStopped = false;
  #cancelTimer: (() => void) | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;

  constructor({ clock, timers }: JobContext, open: OpenJobs, barrier: CommitBarrier) {
    this.#clock = clock;
    this.#timers = timers;
    this.#open = open;
    this.#barrier = barrier;
  }

  /** Steps no job and fires no timer any more; later changes are still written. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  /** A job was changed from outside: it joins the next batch, and works if there is work. */
  changed(job: Job, urgency: Urgency = "urgent"): void {
    this.#open.pending.add(job, urgency, this.#clock.steadyMs());
    if (hasWork(job)) this.#open.ready.add(job);
    if (urgency === "urgent") this.wake();
    else this.#scheduleTimer();
  }

  /** Schedules one turn of the loop. */
  wake(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.soon(() => {
      this.#isScheduled = false;
      this.#turn();
    });
  }

  /** Lets jobs work until all are idle or the batch is full, then has the batch written. */
  #turn(): void {
    const steadyMs = this.#clock.steadyMs();
    this.#fireTimers(steadyMs);
    if (!this.#isStopped && !this.#isFull(steadyMs)) this.#work(steadyMs);
    const isHeld = this.#open.ready.size > 0 && !this.#isStopped && this.#open.pending.isHeld(steadyMs);
    if (this.#open.pending.isDue(steadyMs) && !isHeld && !this.#barrier.isCommitting) {
      if (this.#open.pending.haveCallersCome(steadyMs)) this.wake();
      else void this.#barrier.flush();
    }
    if (this.#open.ready.size > 0 && !this.#isStopped && !this.#isFull(steadyMs)) this.wake();
    this.#scheduleTimer();
  }

  /** Whether the batch is to be written before more is added to it, which may have to wait for the one under way. */
  #isFull(steadyMs: number): boolean {
    const { pending } = this.#open;
    const isCrowded = pending.operations >= limits.batchOperationsMax && !pending.isHeld(steadyMs);
    return this.#barrier.storeProblem !== null || isCrowded;
  }

  #work(sinceMs: number): void {
    let steps = 0;
    for (const job of this.#open.ready) {
      this.#open.ready.delete(job.jobId);
      let turn: number = limits.stepsPerTurn;
      while (hasWork(job) && turn-- > 0) {
        step(job);
        steps++;
        if (steps % STEPS_PER_CLOCK_LOOK === 0 && this.#isBatchDue(steps, sinceMs)) turn = 0;
      }
      this.#open.pending.add(job, "urgent", sinceMs);
      if (hasWork(job)) this.#open.ready.add(job);
      if (this.#isBatchDue(steps, sinceMs)) break;
    }
    this.#open.pending.operations += steps;
  }

  #isBatchDue(steps: number, sinceMs: number): boolean {
    return steps >= limits.batchOperationsMax || this.#clock.steadyMs() - sinceMs >= limits.batchAgeMsMax;
  }

  #fireTimers(steadyMs: number): void {
    if (this.#isStopped) return;
    for (;;) {
      const timer = this.#timers.popDue(steadyMs);
      if (timer === undefined) return;
      const job = this.#open.all.get(timer.jobId);
      if (job === undefined || isOver(job)) continue;
      const before = job.eventSeq;
      switch (timer.what.kind) {
        case "deadline":
          deadlineDue(job, steadyMs);
          break;
        case "retry":
          retryDue(job, timer.what.taskSeq);
          break;
        case "sensor":
          sensorTimerDue(job, timer.what.agentIndex);
          break;
        case "human":
          expireRequest(job, timer.what.requestId);
          break;
        default:
          timer.what satisfies never;
      }
      // A module's next attempt begins without an event.
      if (job.eventSeq !== before || job.draft.changedTasks.size > 0) this.changed(job);
    }
  }

  /** One real timer, set for whatever comes first: a job's timer, or the limit of a batch that waits to grow. */
  #scheduleTimer(): void {
    // A turn that is scheduled looks again.
    if (this.#isStopped || this.#isScheduled) return;
    // While a batch is under way the next one waits for its end, not for the clock.
    const lazyMs = this.#barrier.isCommitting ? Number.POSITIVE_INFINITY : this.#open.pending.dueAtMs;
    const dueMs = Math.min(this.#timers.nextDueMs ?? Number.POSITIVE_INFINITY, lazyMs);
    if (dueMs === this.#timerDueMs) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#timerDueMs = dueMs;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#clock.after(Math.max(0, dueMs - this.#clock.steadyMs()), () => {
      this.#timerDueMs = Number.POSITIVE_INFINITY;
      this.#cancelTimer = null;
      this.#turn();
    });
  }
}
