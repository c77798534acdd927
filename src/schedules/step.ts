// What there is to do for a schedule by the clock: a function of the schedule, the time, and whether runs of it are open.
//
// - One step is for one due time, and is one transaction. Its result says what is due next, so that a crash in the middle of
//   many missed times goes on where it stopped.
// - A due time is missed when nobody has come to it for LATE_MS.
// - The clock may jump. A time that was stepped over, in whatever direction the clock moved since, does not come again.

import type { DomainError } from "../lib/domain-error.ts";
import type { Dispatch, Schedule } from "./records.ts";
import { dueAfter, duesAfter, duesBetween, MISSED_MAX, startOf } from "./rule.ts";

const LATE_MS = 60_000;

export interface Step {
  /** The due time that a run is to be started for; null: none. */
  readonly start: number | null;
  /** Whether the runs that have not ended are to be cancelled. */
  readonly cancelsOpen: boolean;
  /** The schedule behind it, of the next version. */
  readonly next: Schedule;
}

/**
 * @param hasOpen whether a run of it has not ended
 * @param startedDue a due time that a run is there of: it comes again when the clock was put back and somebody has changed or
 *   resumed the schedule since
 * @returns null when there is nothing to do
 */
export function step(
  schedule: Schedule,
  nowMs: number,
  hasOpen: boolean,
  startedDue: number | null = null,
): Step | null {
  const { status, queuedDueAtMs, nextRunAtMs } = schedule;
  if (status !== "active" || nextRunAtMs === null || nextRunAtMs > nowMs) return null;
  if (queuedDueAtMs !== null && !hasOpen) {
    const rest = moveTo({ ...schedule, queuedDueAtMs: null }, schedule.dueAtMs, nowMs);
    if (queuedDueAtMs === startedDue) return skipped(rest, queuedDueAtMs, nowMs, IS_THERE);
    return started(rest, queuedDueAtMs, nowMs);
  }
  const { dues, missed, followedBy } = duesOf(schedule, nowMs);
  const [due = null] = dues;
  const moved = moveTo({ ...schedule, missed: schedule.missed + missed }, dues[1] ?? followedBy, nowMs);
  if (due === null) return { start: null, cancelsOpen: false, next: changed(moved, nowMs) };
  if (due === startedDue) return skipped(moved, due, nowMs, IS_THERE);
  if (hasOpen && schedule.overlap === "skip") return skipped(moved, due, nowMs, HAS_NOT_ENDED);
  if (hasOpen && schedule.overlap === "queue_one") {
    if (queuedDueAtMs !== null) return skipped(moved, due, nowMs, HAS_NOT_ENDED);
    const queued = { ...moved, status: schedule.status, queuedDueAtMs: due };
    return { start: null, cancelsOpen: false, next: noted(queued, { due, nowMs, outcome: "queued" }) };
  }
  return started(moved, due, nowMs, hasOpen && schedule.overlap === "cancel_previous");
}

/** The schedule behind a start that was refused, or behind a run that has failed. */
export function failed(schedule: Schedule, reason: string): Schedule {
  const failuresInARow = schedule.failuresInARow + 1;
  const isEnough = schedule.pauseAfterFailures !== null && failuresInARow >= schedule.pauseAfterFailures;
  const counted = { ...schedule, failed: schedule.failed + 1, failuresInARow };
  if (!isEnough || schedule.status !== "active") return counted;
  const statusReason = `${failuresInARow} failures in a row; the last one: ${reason}`;
  return { ...counted, status: "paused", statusReason };
}

/** The schedule behind a run that has not failed. */
export function succeeded(schedule: Schedule): Schedule {
  return schedule.failuresInARow === 0 ? schedule : { ...schedule, failuresInARow: 0 };
}

/** At once, also when the clock is put back now. */
export const AT_ONCE = 0;

/** The schedule when one of its runs has ended, and none is open any more: what waited for that is due. */
export function freed(schedule: Schedule): Schedule {
  return schedule.queuedDueAtMs === null ? schedule : { ...schedule, nextRunAtMs: AT_ONCE };
}

/** The schedule with the first due time from now on: it is new, goes on after a pause, or has another rule. */
export function timed(schedule: Schedule, nowMs: number): Schedule {
  const { rule } = schedule;
  // A delay that is over is made up for.
  const due = rule.kind === "delayed" ? rule.atMs : dueAfter(rule, nowMs);
  return moveTo({ ...schedule, queuedDueAtMs: null }, due, nowMs);
}

interface Dues {
  /** For which runs are to be started, oldest first. */
  readonly dues: readonly number[];
  /** How many there are none for. */
  readonly missed: number;
  /** The first one that is not due yet. */
  readonly followedBy: number | null;
}

function duesOf({ rule, dueAtMs, untilMs, missedPolicy, catchupLimit }: Schedule, nowMs: number): Dues {
  if (dueAtMs === null) return { dues: [], missed: 0, followedBy: null };
  if (dueAtMs > nowMs) return { dues: [], missed: 0, followedBy: dueAtMs };
  const endMs = Math.min(nowMs, untilMs ?? nowMs);
  const second = dueAfter(rule, dueAtMs);
  const isOnly = second === null || second > endMs;
  const all = isOnly ? [dueAtMs] : duesBetween(rule, dueAtMs, endMs, MISSED_MAX);
  const followedBy = second === null || second > nowMs ? second : dueAfter(rule, nowMs);
  const wanted =
    missedPolicy === "run_all"
      ? all.slice(-catchupLimit)
      : all.slice(-1).filter((due) => missedPolicy === "run_once" || nowMs - due <= LATE_MS);
  return { dues: wanted, missed: all.length - wanted.length, followedBy };
}

/** @param dueAtMs what is due next by the rule */
function moveTo(schedule: Schedule, dueAtMs: number | null, nowMs: number): Schedule {
  const { scheduleId, rule, untilMs, queuedDueAtMs } = schedule;
  const isOver = dueAtMs === null || (untilMs !== null && dueAtMs > untilMs);
  if (!isOver) {
    const nextRunAtMs = dueAtMs <= nowMs ? dueAtMs : startOf(scheduleId, rule, dueAtMs);
    return { ...schedule, dueAtMs, nextRunAtMs };
  }
  const status = queuedDueAtMs === null && schedule.status === "active" ? "completed" : schedule.status;
  return { ...schedule, dueAtMs: null, nextRunAtMs: null, status };
}

export function started(schedule: Schedule, due: number, nowMs: number, cancelsOpen = false): Step {
  const dispatched = schedule.dispatched + 1;
  const isLast = schedule.maxRuns !== null && dispatched >= schedule.maxRuns;
  const next: Schedule = isLast
    ? { ...schedule, status: "completed", dueAtMs: null, nextRunAtMs: null, queuedDueAtMs: null }
    : schedule;
  return {
    start: due,
    cancelsOpen,
    next: noted({ ...next, dispatched }, { due, nowMs, outcome: "dispatched" }),
  };
}

export const HAS_NOT_ENDED = "the run before has not ended";
const IS_THERE = "a run of this time is there";

function skipped(schedule: Schedule, due: number, nowMs: number, reason: string): Step {
  const next = noted(
    { ...schedule, skipped: schedule.skipped + 1 },
    { due, nowMs, outcome: "skipped", reason },
  );
  return { start: null, cancelsOpen: false, next };
}

interface Noted {
  readonly due: number;
  readonly nowMs: number;
  readonly outcome: Dispatch["outcome"];
  /** Why there is no run. */
  readonly reason?: string;
}

/** @returns the next version; the run's id is for who has started it */
export function noted(schedule: Schedule, { due, nowMs, outcome, reason }: Noted): Schedule {
  const lastDispatch = { dueAtMs: due, dispatchedAtMs: nowMs, runId: null, outcome, reason: reason ?? null };
  return changed({ ...schedule, lastDispatch }, nowMs);
}

/** The schedule with the run that was started. */
export function withRun(schedule: Schedule, runId: string): Schedule {
  const { lastDispatch } = schedule;
  return { ...schedule, lastDispatch: lastDispatch === null ? null : { ...lastDispatch, runId } };
}

/** The schedule behind a start that was refused. @param next behind the start */
export function refusedBy({ code, message }: DomainError, next: Schedule): Schedule {
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

export function changed(schedule: Schedule, nowMs: number): Schedule {
  return {
    ...schedule,
    version: schedule.version + 1,
    updatedAtMs: Math.max(nowMs, schedule.updatedAtMs),
  };
}

/** The next due times, as a reader is shown them. */
export function nextDues({ rule, dueAtMs, untilMs }: Schedule, limit: number): readonly number[] {
  if (dueAtMs === null) return [];
  return duesAfter(rule, dueAtMs - 1, limit).filter((due) => untilMs === null || due <= untilMs);
}
