// What an event does to a schedule that reacts to it, and what there is to do for events that wait: functions of the
// schedule, the time, and whether runs of it are open.
//
// - An event starts a run at once, waits for one, or is skipped. Each is counted: in a run, as skipped, or as failed.
// - Waiting events are bounded. They survive a pause: runs are started for them once the schedule goes on.

import type { Skip } from "./event-records.ts";
import type { EventRule, Schedule } from "./records.ts";
import { AT_ONCE, changed, HAS_NOT_ENDED, noted, started } from "./step.ts";

export const WAITING_EVENTS_MAX = 10_000;
export const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** A batch with so much is full. */
export const BATCH_BYTES_MAX = 4 * 1024 * 1024;

/** A chain of runs, each of which the end of the one before has started, has so many. */
export const DEPTH_MAX = 16;
const TOO_DEEP = `${DEPTH_MAX} runs have led to this event, each started by the end of the one before`;

/** A schedule of kind event. */
export type EventSchedule = Schedule & { readonly rule: EventRule };

export const isOfEvents = (schedule: Schedule): schedule is EventSchedule => schedule.rule.kind === "event";

/** Whether events wait for others, or for a while, before a run starts: whatever runs are open. */
export const collects = ({ debounceSeconds, batch }: EventRule): boolean =>
  debounceSeconds !== null || batch !== null;

export interface ArrivedEvent {
  readonly nowMs: number;
  /** Of its payload. */
  readonly bytes: number;
  readonly depth: number;
}

export const bytesOf = (payloadJson: string): number => Buffer.byteLength(payloadJson);

export type Arrival =
  | { readonly kind: "starts"; readonly cancelsOpen: boolean; readonly next: Schedule }
  | {
      readonly kind: "waits";
      readonly skipped: Skip;
      /** Whether those that have waited are skipped for it. */
      readonly replaces: boolean;
      readonly next: Schedule;
    }
  | { readonly kind: "skipped"; readonly skipped: Skip; readonly reason: string; readonly next: Schedule };

/**
 * @param hasOpen whether runs are open; of no account if the rule collects events
 * @returns null when the schedule's time is over
 */
export function arrive(schedule: EventSchedule, event: ArrivedEvent, hasOpen: boolean): Arrival | null {
  const { rule, overlap, waitingEvents, queuedDueAtMs } = schedule;
  const { nowMs, bytes } = event;
  if (isOver(schedule, nowMs)) return null;
  if (schedule.status === "paused") return skipped(schedule, nowMs, "paused", "the schedule is paused");
  if (event.depth >= DEPTH_MAX) return skipped(schedule, nowMs, "too_deep", TOO_DEEP);
  if (isThrottled(schedule, nowMs))
    return skipped(
      schedule,
      nowMs,
      "throttled",
      `a run was started less than ${rule.throttleSeconds} s before`,
    );
  if (rule.debounceSeconds !== null) {
    const dueAtMs = dueIn(schedule, rule.debounceSeconds, nowMs);
    const one = { ...schedule, waitingEvents: 1, waitingBytes: bytes, queuedDueAtMs: null };
    const next = { ...one, skipped: schedule.skipped + waitingEvents, dueAtMs, nextRunAtMs: dueAtMs };
    return { kind: "waits", skipped: "debounced", replaces: true, next: changed(next, nowMs) };
  }
  if (rule.batch !== null) return joinBatch(schedule, event, rule.batch);
  const isBusy = hasOpen || waitingEvents > 0;
  if (isBusy && overlap === "skip") return skipped(schedule, nowMs, "overlap", HAS_NOT_ENDED);
  if (isBusy && overlap === "queue_one") {
    if (queuedDueAtMs !== null || waitingEvents > 0)
      return skipped(schedule, nowMs, "overlap", HAS_NOT_ENDED);
    const next = { ...withEvent(schedule, bytes), queuedDueAtMs: nowMs, dueAtMs: nowMs, nextRunAtMs: null };
    const queued = noted(next, { due: nowMs, nowMs, outcome: "queued" });
    return { kind: "waits", skipped: "queued", replaces: false, next: queued };
  }
  const { next } = started(throttled(schedule, nowMs), nowMs, nowMs);
  return { kind: "starts", cancelsOpen: hasOpen && overlap === "cancel_previous", next };
}

/** In place of a start that cannot be made now: it is made soon. */
export function waitForStart(
  schedule: EventSchedule,
  { nowMs, bytes }: Omit<ArrivedEvent, "depth">,
): Arrival {
  if (isFull(schedule, bytes)) return skipped(schedule, nowMs, "overlap", TOO_MANY_WAIT);
  const next = { ...withEvent(schedule, bytes), dueAtMs: nowMs, nextRunAtMs: AT_ONCE };
  return { kind: "waits", skipped: "queued", replaces: false, next: changed(next, nowMs) };
}

function joinBatch(
  schedule: EventSchedule,
  { nowMs, bytes }: Omit<ArrivedEvent, "depth">,
  { max, seconds }: NonNullable<EventRule["batch"]>,
): Arrival {
  const isQueued = schedule.queuedDueAtMs !== null;
  if (isQueued && isBatchFull(schedule, max)) return skipped(schedule, nowMs, "overlap", HAS_NOT_ENDED);
  if (isFull(schedule, bytes)) return skipped(schedule, nowMs, "overlap", TOO_MANY_WAIT);
  const joined = withEvent(schedule, bytes);
  const openUntilMs = dueIn(schedule, seconds, nowMs, true);
  const dueAtMs = isBatchFull(joined, max) ? Math.min(nowMs, openUntilMs) : openUntilMs;
  const next = isQueued ? joined : { ...joined, dueAtMs, nextRunAtMs: dueAtMs };
  return { kind: "waits", skipped: "batched", replaces: false, next: changed(next, nowMs) };
}

export type EventStep =
  /** A run of the oldest waiting events, at most `portionOf`. */
  | { readonly kind: "starts"; readonly cancelsOpen: boolean }
  /** They are skipped. */
  | { readonly kind: "skips" }
  | { readonly kind: "changes"; readonly next: Schedule };

/** What there is to do for the waiting events of a schedule; null: nothing now. */
export function dueStep(schedule: EventSchedule, nowMs: number, hasOpen: boolean): EventStep | null {
  const { status, nextRunAtMs, overlap, waitingEvents } = schedule;
  if (status !== "active" || nextRunAtMs === null || nextRunAtMs > nowMs) return null;
  if (waitingEvents === 0) return { kind: "changes", next: changed(resting(schedule, nowMs), nowMs) };
  if (hasOpen && overlap === "skip") return { kind: "skips" };
  if (hasOpen && overlap === "queue_one") {
    const next = { ...schedule, queuedDueAtMs: nowMs, nextRunAtMs: null };
    return { kind: "changes", next: noted(next, { due: nowMs, nowMs, outcome: "queued" }) };
  }
  return { kind: "starts", cancelsOpen: hasOpen && overlap === "cancel_previous" };
}

/** How many waiting events one run is started for. */
export const portionOf = ({ rule }: EventSchedule): number => rule.batch?.max ?? 1;

/** Events that wait no more. */
export interface TakenEvents {
  readonly count: number;
  readonly bytes: number;
  /** When the last of them came. */
  readonly receivedAtMs: number;
}

/** The schedule behind the start of a run for waiting events; `withRun` or `refusedBy` says what became of it. */
export function startedFor(schedule: EventSchedule, taken: TakenEvents, nowMs: number): Schedule {
  return started(resting(without(throttled(schedule, nowMs), taken), nowMs), taken.receivedAtMs, nowMs).next;
}

/** The schedule behind waiting events that are skipped. */
export function skippedFor(schedule: EventSchedule, taken: TakenEvents, nowMs: number): Schedule {
  const rest = resting(without(schedule, taken), nowMs);
  const counted = { ...rest, skipped: rest.skipped + taken.count };
  return noted(counted, { due: taken.receivedAtMs, nowMs, outcome: "skipped", reason: HAS_NOT_ENDED });
}

/** The schedule when it is new, goes on after a pause, or has another rule. */
export function timedEvents(schedule: EventSchedule, nowMs: number): Schedule {
  return resting({ ...schedule, queuedDueAtMs: null }, nowMs, 0);
}

/** @param batchMs how long a batch may still be filled that is not full */
function resting(
  schedule: EventSchedule,
  nowMs: number,
  batchMs = (schedule.rule.batch?.seconds ?? 0) * 1_000,
): EventSchedule {
  const { rule, waitingEvents, untilMs } = schedule;
  if (waitingEvents > 0) {
    const isWhole = rule.batch === null || isBatchFull(schedule, rule.batch.max);
    const dueAtMs = atMost(schedule, nowMs + (isWhole ? 0 : batchMs));
    return { ...schedule, dueAtMs, nextRunAtMs: dueAtMs };
  }
  const status = isOver(schedule, nowMs) && schedule.status === "active" ? "completed" : schedule.status;
  return { ...schedule, status, dueAtMs: null, nextRunAtMs: status === "completed" ? null : untilMs };
}

const isOver = ({ untilMs }: Schedule, nowMs: number) => untilMs !== null && nowMs >= untilMs;

/** What waits at the schedule's end is started then. */
const atMost = ({ untilMs }: Schedule, dueMs: number) => Math.min(dueMs, untilMs ?? dueMs);

/** @param isSooner whether it stays due when it has been before: not later, also when the clock was put back */
function dueIn(schedule: Schedule, seconds: number, nowMs: number, isSooner = false): number {
  const dueMs = nowMs + seconds * 1_000;
  return atMost(schedule, isSooner ? Math.min(dueMs, schedule.dueAtMs ?? dueMs) : dueMs);
}

/** Not for longer than it says, also when the clock was put back. */
function isThrottled({ rule, throttledUntilMs }: EventSchedule, nowMs: number): boolean {
  if (rule.throttleSeconds === null || throttledUntilMs === null) return false;
  return nowMs < throttledUntilMs && throttledUntilMs - nowMs <= rule.throttleSeconds * 1_000;
}

function throttled(schedule: EventSchedule, nowMs: number): EventSchedule {
  const { throttleSeconds } = schedule.rule;
  return { ...schedule, throttledUntilMs: throttleSeconds === null ? null : nowMs + throttleSeconds * 1_000 };
}

const isFull = ({ waitingEvents, waitingBytes }: Schedule, bytes: number) =>
  waitingEvents >= WAITING_EVENTS_MAX || waitingBytes + bytes > WAITING_BYTES_MAX;

const isBatchFull = ({ waitingEvents, waitingBytes }: Schedule, max: number) =>
  waitingEvents >= max || waitingBytes >= BATCH_BYTES_MAX;

const withEvent = (schedule: EventSchedule, bytes: number): EventSchedule => ({
  ...schedule,
  waitingEvents: schedule.waitingEvents + 1,
  waitingBytes: schedule.waitingBytes + bytes,
});

const without = (schedule: EventSchedule, { count, bytes }: TakenEvents): EventSchedule => ({
  ...schedule,
  waitingEvents: schedule.waitingEvents - count,
  waitingBytes: schedule.waitingBytes - bytes,
  queuedDueAtMs: null,
});

const TOO_MANY_WAIT = "too many events wait for runs of the schedule";

function skipped(schedule: EventSchedule, nowMs: number, why: Skip, reason: string): Arrival {
  const counted = { ...schedule, skipped: schedule.skipped + 1 };
  const next = noted(counted, { due: nowMs, nowMs, outcome: "skipped", reason });
  return { kind: "skipped", skipped: why, reason, next };
}
