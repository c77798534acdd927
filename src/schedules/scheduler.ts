// Starts runs when they are due.
//
// - What is due is in the records, so a restart forgets nothing. In between a timer waits for the next due time, for at most
//   ROUND_MS: clocks are set, and other programs may have made schedules.
// - A run and the schedule's move to its next due time are one transaction.
// - Of several programs one is on duty. The others start what it has left undone for BEHIND_MS.
// - The end of a scheduled run is looked at when this program sees it, or in a round over all of them: at the start, and every
//   ROUND_MS by the program on duty.

import type { Clock, EngineLog } from "../engine/ports.ts";
import { WorkQueue } from "../operations/work-queue.ts";
import { EventQueue } from "./event-queue.ts";
import type { EventRecords } from "./event-records.ts";
import { isOfEvents } from "./event-step.ts";
import type { ScheduleMeter } from "./meter.ts";
import type { Schedule, ScheduleRecords } from "./records.ts";
import {
  afterCommit,
  preparedOrRefused,
  type RunStarts,
  type SchedulerWrites,
  type StartedRun,
  type Taken,
  type Written,
  writeStart,
} from "./run-starts.ts";
import { AT_ONCE, changed, failed, freed, step, succeeded } from "./step.ts";
import type { Emitted } from "./trigger-events.ts";

const ROUND_MS = 30_000;
const BEHIND_MS = 2_000;
/** When a look has failed. */
const RETRY_MS = 1_000;
/** When as many are due as are read at once. */
const DUE_AGAIN_MS = 20;
const PAGE = 500;
const STARTS_AT_ONCE = 32;

export interface SchedulerParts<Writes extends SchedulerWrites> {
  readonly records: ScheduleRecords & {
    readonly events: Pick<EventRecords, "waitingEvents">;
    write<T>(work: (writes: Writes) => Promise<T>): Promise<T>;
  };
  readonly starts: RunStarts<Writes>;
  /** Why no run is to begin on this node; null while they are. */
  readonly closed: () => string | null;
  /** Whether this program is to look after all schedules, for so long from now on. */
  readonly takeDuty: (forMs: number) => Promise<boolean>;
  /** Calls back with the runtime job of each run that ends here. @returns how to stop that */
  readonly onEnd: (ended: (runtimeJobId: string) => void) => () => void;
  readonly meter: ScheduleMeter;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class Scheduler<Writes extends SchedulerWrites> {
  readonly #parts: SchedulerParts<Writes>;
  readonly #events: EventQueue<Writes>;
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
    this.#events = new EventQueue(parts);
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
    this.#parts.meter.dispatched("dispatched");
    this.#open.set(runtimeJobId, runId);
    this.#parts.starts.accepted(runId);
  }

  /** To be called when an event is on disk. */
  emitted(emitted: Emitted): void {
    this.#parts.meter.emitted(emitted);
    for (const one of emitted.written) {
      this.#tell(one);
      this.changed(one.schedule);
    }
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

  /** Starts what is due of a schedule, one run after the other. */
  async #advance(scheduleId: string, signal: AbortSignal): Promise<void> {
    const { records, clock, closed } = this.#parts;
    // Of a node that is drained another one starts them, or its own next look.
    while (!signal.aborted && closed() === null) {
      const schedule = await records.schedule(scheduleId);
      if (schedule === null) return;
      const nowMs = clock.nowMs();
      const written = isOfEvents(schedule)
        ? await this.#events.take(schedule, nowMs)
        : await this.#take(schedule, nowMs);
      if (written === "nothing") {
        this.changed(schedule);
        return;
      }
      if (written === "changed") continue;
      this.#tell(written);
      this.#measure(schedule, written);
    }
  }

  /** @param before as what was due was found */
  #measure({ nextRunAtMs, missed }: Schedule, { schedule, run }: Written): void {
    const { meter, clock } = this.#parts;
    if (run !== null && nextRunAtMs !== null && nextRunAtMs !== AT_ONCE)
      meter.startedLate(clock.nowMs() - nextRunAtMs);
    meter.missed(Math.max(0, schedule.missed - missed));
  }

  async #take(schedule: Schedule, nowMs: number): Promise<Taken> {
    const { records, starts } = this.#parts;
    const { scheduleId } = schedule;
    const likely = step(schedule, nowMs, (await records.openRuns(scheduleId, 1)).length > 0);
    if (likely === null) return "nothing";
    const { start } = likely;
    const prepared =
      start === null ? null : await preparedOrRefused(starts, schedule, { kind: "time", dueAtMs: start });
    return records.write(async (writes) => {
      const now = await writes.schedules.schedule(scheduleId);
      if (now === null || now.version !== schedule.version) return "changed";
      const hasOpen = (await writes.schedules.openRuns(scheduleId, 1)).length > 0;
      const isThere = start !== null && (await starts.isStarted(writes, schedule, start));
      const taken = step(now, nowMs, hasOpen, isThere ? start : null);
      // A run has ended or begun meanwhile, and something else is to be done now.
      if (taken === null || (!isThere && taken.start !== start)) return "changed";
      const insert = isThere ? null : prepared;
      if (insert !== null) return writeStart(writes, starts, { insert, ...taken });
      await writes.schedules.save(taken.next);
      const { lastDispatch } = taken.next;
      const outcome = lastDispatch === now.lastDispatch ? null : (lastDispatch?.outcome ?? null);
      return { schedule: taken.next, run: null, outcome, hasCancelled: false };
    });
  }

  #tell(written: Written): void {
    const { starts, meter, log } = this.#parts;
    const { outcome } = written;
    if (outcome !== null && outcome !== "dispatched") meter.dispatched(outcome);
    afterCommit(written, { starts, started: (run) => this.started(run) });
    const { scheduleId, lastDispatch } = written.schedule;
    if (lastDispatch?.outcome === "failed")
      log.warn({ schedule_id: scheduleId, reason: lastDispatch.reason }, "a scheduled run was refused");
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
