// How schedules start runs: what starts them (src/launch), and what is written with them.

import { DomainError } from "../lib/domain-error.ts";
import type { EventContent, EventWrites } from "./event-records.ts";
import type { DispatchOutcome, Schedule, ScheduleWrites } from "./records.ts";
import { refusedBy, withRun } from "./step.ts";

/** Most open runs that the next one cancels. */
const CANCELLED_MAX = 500;

/** What one transaction may write. */
export interface SchedulerWrites {
  readonly schedules: ScheduleWrites;
  readonly events: EventWrites;
}

/** What a run is started for: a due time or events, for which there is one run at most; or by hand. */
export type Cause =
  | { readonly kind: "time"; readonly dueAtMs: number }
  /** Oldest first, at least one. */
  | { readonly kind: "events"; readonly events: readonly EventContent[] }
  | { readonly kind: "hand" };

/** A run that is about to be started. */
export interface StartedRun {
  readonly runId: string;
  readonly runtimeJobId: string;
}

/** Inserts a run that was checked, in a transaction. */
export type InsertRun<Writes> = (writes: Writes) => Promise<StartedRun>;

/** What starts and cancels runs, in transactions of its own kind. */
export interface RunStarts<Writes> {
  /** Checks everything about a run; writes nothing. @throws DomainError */
  prepare(schedule: Schedule, cause: Cause): Promise<InsertRun<Writes>>;
  /** Whether there is a run of this due time, whatever became of it. */
  isStarted(writes: Writes, schedule: Schedule, dueAtMs: number): Promise<boolean>;
  /** To be called when it is on disk. */
  accepted(runId: string): void;
  cancel(writes: Writes, runId: string): Promise<void>;
  /** To be called when that is on disk. */
  cancelled(jobId: string): void;
}

/** What a start is to write. */
export interface Start<Writes> {
  readonly insert: InsertRun<Writes> | DomainError;
  readonly cancelsOpen: boolean;
  /** The schedule behind it. */
  readonly next: Schedule;
  /** The last of the waiting events that it is for; absent: they did not wait. */
  readonly throughSeq?: number;
}

/** What was written. */
export interface Written {
  readonly schedule: Schedule;
  /** Null: there is none. */
  readonly run: StartedRun | null;
  /** What became of what was due; null: nothing was. */
  readonly outcome: DispatchOutcome | null;
  /** Whether runs were cancelled for it. */
  readonly hasCancelled: boolean;
}

/** What became of an attempt to do what is due; changed: it is to be looked at again. */
export type Taken = Written | "nothing" | "changed";

/** @returns the refusal of a run that cannot be started @throws what is no fault of the run, such as a drain */
export async function preparedOrRefused<Writes>(
  starts: RunStarts<Writes>,
  schedule: Schedule,
  cause: Cause,
): Promise<InsertRun<Writes> | DomainError> {
  try {
    return await starts.prepare(schedule, cause);
  } catch (error) {
    if (!(error instanceof DomainError) || error.code === "unavailable") throw error;
    return error;
  }
}

/** In a transaction: inserts a run and notes it, or what it was refused with; saves the schedule, and what became of events. */
export async function writeStart<Writes extends SchedulerWrites>(
  writes: Writes,
  starts: RunStarts<Writes>,
  { insert, cancelsOpen, next, throughSeq }: Start<Writes>,
): Promise<Written> {
  const { scheduleId } = next;
  const cancelled =
    cancelsOpen && typeof insert === "function"
      ? await writes.schedules.openRuns(scheduleId, CANCELLED_MAX)
      : [];
  for (const runId of cancelled) await starts.cancel(writes, runId);
  const run = typeof insert === "function" ? await insert(writes) : null;
  const behind = typeof insert === "function" ? withRun(next, run?.runId ?? "") : refusedBy(insert, next);
  if (run !== null) await writes.schedules.noteRun({ ...run, scheduleId });
  if (throughSeq !== undefined) {
    const end = { runId: run?.runId ?? null, reason: behind.lastDispatch?.reason ?? null };
    await writes.events.settleWaiting(scheduleId, throughSeq, end);
  }
  const schedule = await withoutLeft(writes, behind);
  await writes.schedules.save(schedule);
  const outcome = run === null ? "failed" : "dispatched";
  return { schedule, run, outcome, hasCancelled: cancelled.length > 0 };
}

/** Events that wait for runs of a schedule that starts none any more are skipped. */
async function withoutLeft({ events }: SchedulerWrites, schedule: Schedule): Promise<Schedule> {
  const { scheduleId, status, waitingEvents } = schedule;
  if (waitingEvents === 0 || status === "active" || status === "paused") return schedule;
  const reason = `the schedule is ${status}`;
  await events.settleWaiting(scheduleId, Number.MAX_SAFE_INTEGER, { runId: null, reason });
  return { ...schedule, waitingEvents: 0, waitingBytes: 0, skipped: schedule.skipped + waitingEvents };
}

/** To be called after the commit. */
export function afterCommit<Writes>(
  { schedule, run, hasCancelled }: Written,
  parts: { readonly starts: RunStarts<Writes>; readonly started: (run: StartedRun) => void },
): void {
  if (run !== null) parts.started(run);
  if (hasCancelled) parts.starts.cancelled(schedule.jobId);
}
