// Starts runs when they are due.
//
// - What is due is in the records, so a restart forgets nothing. In between a timer waits for the next due time, for at most
//   ROUND_MS: clocks are set, and other programs may have made schedules.
// - A run and the schedule's move to its next due time are one transaction.
// - Of several programs one is on duty. The others start what it has left undone for BEHIND_MS.
// - The end of a scheduled run is looked at when this program sees it, or in a round over all of them: at the start, and every
//   ROUND_MS by the program on duty.

import type { Clock, EngineLog } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import { WorkQueue } from "../operations/work-queue.ts";
import type { Schedule, ScheduleRecords, ScheduleWrites } from "./records.ts";
import { changed, failed, freed, step, succeeded } from "./step.ts";

const ROUND_MS = 30_000;
const BEHIND_MS = 2_000;
/** When a look has failed. */
const RETRY_MS = 1_000;
/** When as many are due as are read at once. */
const DUE_AGAIN_MS = 20;
const PAGE = 500;
const STARTS_AT_ONCE = 32;

/** The run of a due time that is about to be started. */
export interface StartedRun {
  readonly runId: string;
  readonly runtimeJobId: string;
}

/** What starts and cancels runs, in transactions of its own kind. */
export interface RunStarts<Writes> {
  /**
   * Checks everything about a run; writes nothing.
   *
   * @param dueAtMs for which there is one run at most; null: it is started by hand
   * @returns inserts it, in the transaction
   * @throws DomainError
   */
  prepare(schedule: Schedule, dueAtMs: number | null): Promise<(writes: Writes) => Promise<StartedRun>>;
  /** Whether there is a run of this due time, whatever became of it. */
  isStarted(writes: Writes, schedule: Schedule, dueAtMs: number): Promise<boolean>;
  /** To be called when it is on disk. */
  accepted(runId: string): void;
  cancel(writes: Writes, runId: string): Promise<void>;
  /** To be called when that is on disk. */
  cancelled(jobId: string): void;
}

export interface SchedulerParts<Writes extends { readonly schedules: ScheduleWrites }> {
  readonly records: ScheduleRecords & { write<T>(work: (writes: Writes) => Promise<T>): Promise<T> };
  readonly starts: RunStarts<Writes>;
  /** Why no run is to begin on this node; null while they are. */
  readonly closed: () => string | null;
  /** Whether this program is to look after all schedules, for so long from now on. */
  readonly takeDuty: (forMs: number) => Promise<boolean>;
  /** Calls back with the runtime job of each run that ends here. @returns how to stop that */
  readonly onEnd: (ended: (runtimeJobId: string) => void) => () => void;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class Scheduler<Writes extends { readonly schedules: ScheduleWrites }> {
  readonly #parts: SchedulerParts<Writes>;
  readonly #dispatches: WorkQueue;
  readonly #ends: WorkQueue;
  /** Runs of schedules whose end is looked at when it comes, by their runtime jobs. */
  readonly #open = new Map<string, string>();
  #cancelTimer = () => {};
  #wakesAtSteadyMs = Number.POSITIVE_INFINITY;
  #roundAtMs: number | null = null;
  #isOnDuty = false;
  #look: Promise<void> = Promise.resolve();
  #isStopped = true;
  #stopListening = () => {};

  constructor(parts: SchedulerParts<Writes>) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#dispatches = new WorkQueue({
      what: "the start of a scheduled run",
      keyName: "schedule_id",
      atOnceMax: STARTS_AT_ONCE,
      work: (scheduleId, signal) => this.#advance(scheduleId, signal),
      clock,
      log,
    });
    this.#ends = new WorkQueue({
      what: "the end of a scheduled run",
      keyName: "run_id",
      atOnceMax: STARTS_AT_ONCE,
      work: (runId) => this.#settle(runId),
      clock,
      log,
    });
  }

  start(): void {
    this.#isStopped = false;
    this.#stopListening = this.#parts.onEnd((runtimeJobId) => {
      const runId = this.#open.get(runtimeJobId);
      this.#open.delete(runtimeJobId);
      if (runId !== undefined) this.#ends.add(runId);
    });
    this.#wakeAt(this.#parts.clock.nowMs());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer();
    this.#stopListening();
    await this.#look;
    await Promise.all([this.#dispatches.stop(), this.#ends.stop()]);
  }

  /** To be called when a schedule on disk has another due time. */
  changed({ scheduleId, status, nextRunAtMs }: Schedule): void {
    if (this.#isStopped || status !== "active" || nextRunAtMs === null) return;
    const { clock } = this.#parts;
    const leftMs = nextRunAtMs - clock.nowMs();
    if (leftMs <= 0) this.#dispatches.add(scheduleId);
    else this.#wakeAt(nextRunAtMs + this.#behindMs);
  }

  /** To be called when a run that a schedule has started is on disk. */
  started({ runId, runtimeJobId }: StartedRun): void {
    this.#open.set(runtimeJobId, runId);
    this.#parts.starts.accepted(runId);
  }

  get #behindMs(): number {
    return this.#isOnDuty ? 0 : BEHIND_MS;
  }

  /** @param atMs wall time, which may be set meanwhile: so it looks at least every ROUND_MS */
  #wakeAt(atMs: number): void {
    const { clock } = this.#parts;
    const delayMs = Math.min(ROUND_MS, Math.max(0, atMs - clock.nowMs()));
    const steadyMs = clock.steadyMs() + delayMs;
    if (this.#isStopped || steadyMs >= this.#wakesAtSteadyMs) return;
    this.#cancelTimer();
    this.#wakesAtSteadyMs = steadyMs;
    this.#cancelTimer = clock.after(delayMs, () => {
      this.#wakesAtSteadyMs = Number.POSITIVE_INFINITY;
      this.#look = this.#look.then(() => this.#lookNow());
    });
  }

  async #lookNow(): Promise<void> {
    const { records, clock, closed, log } = this.#parts;
    const nowMs = clock.nowMs();
    let nextMs = nowMs + ROUND_MS;
    try {
      if (closed() === null) {
        await this.#lookAtEnds(nowMs);
        const behindMs = this.#behindMs;
        const due = await records.due(nowMs - behindMs, PAGE);
        for (const scheduleId of due) this.#dispatches.add(scheduleId);
        const next = await records.dueAfter(nowMs - behindMs);
        if (next !== null) nextMs = Math.min(nextMs, next + behindMs);
        // There may be more.
        if (due.length === PAGE) nextMs = nowMs + DUE_AGAIN_MS;
      }
    } catch (error) {
      log.warn({ error: String(error) }, "due schedules cannot be read yet");
      nextMs = nowMs + RETRY_MS;
    }
    this.#wakeAt(nextMs);
  }

  /** Looks at the ends of all runs that schedules have started, if it is time: some may have ended elsewhere, or unseen. */
  async #lookAtEnds(nowMs: number): Promise<void> {
    const isFirst = this.#roundAtMs === null;
    if (this.#roundAtMs !== null && Math.abs(nowMs - this.#roundAtMs) < ROUND_MS) return;
    this.#isOnDuty = await this.#parts.takeDuty(2 * ROUND_MS);
    this.#roundAtMs = nowMs;
    if (!isFirst && !this.#isOnDuty) return;
    const before = [...this.#open.keys()];
    const open = new Set<string>();
    for (let after = "", isLast = false; !isLast; ) {
      const runs = await this.#parts.records.scheduledRuns(after, PAGE);
      for (const { runId, runtimeJobId, hasEnded } of runs) {
        if (hasEnded) {
          this.#ends.add(runId);
          continue;
        }
        open.add(runtimeJobId);
        this.#open.set(runtimeJobId, runId);
      }
      isLast = runs.length < PAGE;
      after = runs.at(-1)?.runId ?? after;
    }
    for (const runtimeJobId of before) if (!open.has(runtimeJobId)) this.#open.delete(runtimeJobId);
  }

  /** Starts what is due of a schedule, one due time after the other. */
  async #advance(scheduleId: string, signal: AbortSignal): Promise<void> {
    const { records, clock, closed } = this.#parts;
    // Of a node that is drained another one starts them, or its own next look.
    while (!signal.aborted && closed() === null) {
      const schedule = await records.schedule(scheduleId);
      if (schedule === null) return;
      const nowMs = clock.nowMs();
      const likely = step(schedule, nowMs, (await records.openRuns(scheduleId, 1)).length > 0);
      if (likely === null) {
        this.changed(schedule);
        return;
      }
      await this.#take(schedule, nowMs, likely.start);
    }
  }

  /** @param likelyStart the due time that a run is started for, if nothing changes until the transaction */
  async #take(schedule: Schedule, nowMs: number, likelyStart: number | null): Promise<void> {
    const { records, starts, log } = this.#parts;
    const prepared = likelyStart === null ? null : await this.#prepared(schedule, likelyStart);
    const { scheduleId, jobId } = schedule;
    const done = await records.write(async (writes) => {
      const now = await writes.schedules.schedule(scheduleId);
      if (now === null || now.version !== schedule.version) return null;
      const hasOpen = (await writes.schedules.openRuns(scheduleId, 1)).length > 0;
      const isThere = likelyStart !== null && (await starts.isStarted(writes, schedule, likelyStart));
      const taken = step(now, nowMs, hasOpen, isThere ? likelyStart : null);
      // A run has ended or begun meanwhile, and something else is to be done now.
      if (taken === null || (!isThere && taken.start !== likelyStart)) return null;
      const { cancelsOpen, next } = taken;
      const insert = isThere ? null : prepared;
      if (insert === null || insert instanceof DomainError) {
        const saved = insert === null ? next : refusedBy(insert, next);
        await writes.schedules.save(saved);
        return { next: saved };
      }
      const cancelled = cancelsOpen ? await writes.schedules.openRuns(scheduleId, PAGE) : [];
      for (const runId of cancelled) await starts.cancel(writes, runId);
      const run = await insert(writes);
      await writes.schedules.noteRun({ ...run, scheduleId });
      await writes.schedules.save(withRun(next, run.runId));
      return { next, run, cancelsOpen };
    });
    if (done === null) return;
    if (done.run !== undefined) this.started(done.run);
    if (done.cancelsOpen === true) starts.cancelled(jobId);
    if (done.next.lastDispatch?.outcome === "failed")
      log.warn(
        { schedule_id: scheduleId, reason: done.next.lastDispatch.reason },
        "a scheduled run was refused",
      );
  }

  /** @returns the refusal of a run that cannot be started */
  async #prepared(schedule: Schedule, dueAtMs: number) {
    try {
      return await this.#parts.starts.prepare(schedule, dueAtMs);
    } catch (error) {
      // It is drained meanwhile, which is no fault of this run.
      if (!(error instanceof DomainError) || error.code === "unavailable") throw error;
      return error;
    }
  }

  async #settle(runId: string): Promise<void> {
    const { records, clock } = this.#parts;
    const saved = await records.write(async ({ schedules }) => {
      const run = await schedules.scheduledRun(runId);
      if (run === null || !run.hasEnded) return null;
      await schedules.forgetRun(runId);
      const schedule = await schedules.schedule(run.scheduleId);
      if (schedule === null) return null;
      const counted = run.hasFailed ? failed(schedule, `run ${runId} failed`) : succeeded(schedule);
      const hasOpen = (await schedules.openRuns(run.scheduleId, 1)).length > 0;
      const next = hasOpen ? counted : freed(counted);
      if (next === schedule) return null;
      const saved = changed(next, clock.nowMs());
      await schedules.save(saved);
      return saved;
    });
    if (saved !== null) this.changed(saved);
  }
}

function withRun(schedule: Schedule, runId: string): Schedule {
  const { lastDispatch } = schedule;
  return { ...schedule, lastDispatch: lastDispatch === null ? null : { ...lastDispatch, runId } };
}

function refusedBy({ code, message }: DomainError, next: Schedule): Schedule {
  const { lastDispatch } = next;
  const outcome =
    lastDispatch === null ? null : { ...lastDispatch, outcome: "failed" as const, reason: message };
  const counted = failed({ ...next, lastDispatch: outcome }, message);
  if (code !== "job_not_found") return counted;
  return {
    ...counted,
    status: "failed",
    statusReason: message,
    dueAtMs: null,
    nextRunAtMs: null,
    queuedDueAtMs: null,
  };
}
