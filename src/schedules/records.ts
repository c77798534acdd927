// What is kept of schedules: rules by which runs of a job are started. Ports, implemented in src/store.
//
// - A schedule is read and changed in one transaction, and a change that was prepared for an older version is not made. So
//   each due time starts one run, also when two programs come to it.
// - Runs that a schedule has started are noted until their end has been looked at.

import type { JsonObject } from "../engine/json.ts";
import type { Sealed } from "../engine/sealed.ts";
import type { Priority } from "../engine/share.ts";
import type { Page } from "../lib/page.ts";
import type { EventFilter } from "./event-filter.ts";
import type { WebhookScheme } from "./webhook-signatures.ts";

/** Repeats. */
export interface CronRule {
  readonly kind: "cron";
  /** A time is due when one of them matches. */
  readonly expressions: readonly string[];
  /** IANA name. */
  readonly timezone: string;
  /** A due time is put off by up to so long: always the same time for the same schedule and due time. */
  readonly jitterSeconds: number;
}

/** Once. */
export interface DelayedRule {
  readonly kind: "delayed";
  readonly atMs: number;
}

/** When an event comes. */
export interface EventRule {
  readonly kind: "event";
  /** Of the events. */
  readonly type: string;
  /** Each must let an event pass. */
  readonly filters: readonly EventFilter[];
  /** A run starts for the last of several events, when none has come for so long. */
  readonly debounceSeconds: number | null;
  /** After the start of a run, events start none for so long. */
  readonly throttleSeconds: number | null;
  /** A run starts for several events: when there are `max`, or `seconds` after the first. */
  readonly batch: { readonly max: number; readonly seconds: number } | null;
}

/** A path at which other programs' signed requests become events. */
export interface Webhook {
  readonly scheme: WebhookScheme;
  /** How far the time that a request was signed at may be from now. */
  readonly toleranceSeconds: number;
  /** Of the token in the path. */
  readonly tokenHash: string;
  readonly token: Sealed;
  readonly secret: Sealed;
}

/** By the clock. */
export type TimeRule = CronRule | DelayedRule;
export type Rule = TimeRule | EventRule;

export const scheduleKinds = ["cron", "delayed", "event"] as const satisfies readonly Rule["kind"][];
export type ScheduleKind = Rule["kind"];

export const scheduleStates = ["active", "paused", "completed", "failed"] as const;
/** completed: no time will be due any more; failed: its job is gone. */
export type ScheduleStatus = (typeof scheduleStates)[number];

/** When a run of the schedule has not ended at the next due time. */
export const overlapPolicies = ["skip", "allow", "queue_one", "cancel_previous"] as const;
export type OverlapPolicy = (typeof overlapPolicies)[number];

/** Of due times that nobody could start a run at. */
export const missedPolicies = ["skip", "run_once", "run_all"] as const;
export type MissedPolicy = (typeof missedPolicies)[number];

/** What became of a due time. */
export type DispatchOutcome = "dispatched" | "skipped" | "queued" | "failed";

export interface Dispatch {
  readonly dueAtMs: number;
  readonly dispatchedAtMs: number;
  readonly runId: string | null;
  readonly outcome: DispatchOutcome;
  /** Why there is no run; null otherwise. */
  readonly reason: string | null;
}

export interface ScheduleCounts {
  readonly dispatched: number;
  readonly skipped: number;
  /** Of one outage at most MISSED_MAX are counted. */
  readonly missed: number;
  /** Starts that were refused, and runs that failed. */
  readonly failed: number;
}

/** What is said of a schedule when it is made, and later. */
export interface ScheduleSettings {
  readonly name: string;
  readonly rule: Rule;
  /** Only of kind event. */
  readonly webhook: Webhook | null;
  /** Of a schedule its secrets are encrypted, as in configOverrides. */
  readonly inputs: JsonObject;
  readonly configOverrides: JsonObject | null;
  /** Of its runs. */
  readonly priority: Priority;
  readonly overlap: OverlapPolicy;
  readonly missedPolicy: MissedPolicy;
  /** Most missed times that run_all makes up for. */
  readonly catchupLimit: number;
  /** No time behind it is due. */
  readonly untilMs: number | null;
  readonly maxRuns: number | null;
  /** So many failures in a row pause it. */
  readonly pauseAfterFailures: number | null;
}

export interface Schedule extends ScheduleSettings, ScheduleCounts {
  /** `schedule_` and a time-ordered id. */
  readonly scheduleId: string;
  /** Whose runs it starts. */
  readonly jobId: string;
  /** The catalog blueprint that the job was made from for this schedule; null: the job was there. */
  readonly blueprintId: string | null;
  readonly status: ScheduleStatus;
  /** Why it is paused or failed, if it was not asked for. */
  readonly statusReason: string | null;
  /** The next due time by the rule, or when waiting events are due; null when there is none. */
  readonly dueAtMs: number | null;
  /** When there is something to do for it: the due time with its jitter; 0 for a run that has waited for the one before. */
  readonly nextRunAtMs: number | null;
  /** The due time whose run waits for the end of the one before (queue_one); of events, when the run could have begun. */
  readonly queuedDueAtMs: number | null;
  /** Events that runs are still to be started for. */
  readonly waitingEvents: number;
  /** Bytes of their payloads. */
  readonly waitingBytes: number;
  /** Until then events start no runs (throttleSeconds). */
  readonly throttledUntilMs: number | null;
  readonly lastDispatch: Dispatch | null;
  readonly failuresInARow: number;
  /** From 1; each change of the definition adds one. */
  readonly revision: number;
  /** From 1; each change of anything adds one. */
  readonly version: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A run that a schedule has started, until its end was looked at. */
export interface ScheduledRun {
  readonly runId: string;
  readonly scheduleId: string;
  readonly runtimeJobId: string;
}

/** How a scheduled run is now. */
export interface ScheduledRunState {
  /** Whether it runs no more; a run that was deleted does not. */
  readonly hasEnded: boolean;
  readonly hasFailed: boolean;
}

export interface ScheduleFilter {
  readonly kind: ScheduleKind | null;
  readonly status: ScheduleStatus | null;
  readonly jobId: string | null;
}

/** Reads of committed state. */
export interface ScheduleRecords {
  schedule(scheduleId: string): Promise<Schedule | null>;
  scheduleOfWebhook(tokenHash: string): Promise<Schedule | null>;
  /** Newest first, those behind `after` (the last id of the page before). */
  schedules(
    page: ScheduleFilter & { readonly limit: number; readonly after: string | null },
  ): Promise<Page<Schedule>>;
  /** Ids of active schedules with something to do by this time, the longest overdue first. */
  due(nowMs: number, limit: number): Promise<readonly string[]>;
  /** When there is something to do for the next of the active schedules behind this time; null: never. */
  dueAfter(nowMs: number): Promise<number | null>;
  /** The ids of a schedule's runs that have not ended. */
  openRuns(scheduleId: string, limit: number): Promise<readonly string[]>;
  /** Runs whose end was not looked at yet, in the order of their ids. */
  scheduledRuns(after: string, limit: number): Promise<readonly (ScheduledRun & ScheduledRunState)[]>;
}

/** The writes of one transaction, beside which there is no other; reads inside see what it has written so far. */
export interface ScheduleWrites extends Pick<ScheduleRecords, "schedule" | "openRuns"> {
  insert(schedule: Schedule): Promise<void>;
  /** Writes all of a schedule that is there. */
  save(schedule: Schedule): Promise<void>;
  remove(scheduleId: string): Promise<void>;
  noteRun(run: ScheduledRun): Promise<void>;
  /** @returns how the run is now; null when its end was looked at */
  scheduledRun(runId: string): Promise<(ScheduledRun & ScheduledRunState) | null>;
  forgetRun(runId: string): Promise<void>;
}
