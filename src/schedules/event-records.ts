// What is kept of trigger events: what has happened outside, and what schedules have made of it. Ports, implemented in
// src/store.
//
// - An event_id is taken once, while its event is kept.
// - An event, its matches and what they change in their schedules are one transaction.
// - A match waits until a run is started for it, or it is decided that there is none.

import type { Page } from "../lib/page.ts";
import type { Schedule } from "./records.ts";

export interface EventContent {
  /** The sender's, or `event_` and a time-ordered id. */
  readonly eventId: string;
  readonly type: string;
  readonly source: string | null;
  readonly payloadJson: string;
  readonly receivedAtMs: number;
  /** How many runs have led to it, each started by the end of the one before. */
  readonly depth: number;
}

export interface TriggerEvent extends EventContent {
  /** From 1, in the order of their coming; later ones are greater. */
  readonly seq: number;
}

/** Why no run was started at once for an event that a schedule matches. */
export const skips = [
  "debounced",
  "throttled",
  "batched",
  "overlap",
  "paused",
  "queued",
  "refused",
  "too_deep",
] as const;
export type Skip = (typeof skips)[number];

/** What a schedule has made of an event. */
export interface EventMatch {
  readonly seq: number;
  readonly scheduleId: string;
  /** What the sender was answered; null: that a run was started. */
  readonly skipped: Skip | null;
  /** The run that was started for it, at once or later. */
  readonly runId: string | null;
  /** Why there is no run, and there will be none; null otherwise. */
  readonly reason: string | null;
  readonly isWaiting: boolean;
}

/** An event with what schedules have made of it, in the order of their ids. */
export interface MatchedEvent extends TriggerEvent {
  readonly matches: readonly EventMatch[];
}

/** A schedule that reacts to events of a type. */
export type Listener = Pick<Schedule, "scheduleId" | "rule" | "revision">;

export interface EventPage {
  readonly type: string | null;
  readonly source: string | null;
  readonly limit: number;
  /** The last of the page before. */
  readonly afterSeq: number | null;
}

/** Reads of committed state. */
export interface EventRecords {
  event(eventId: string): Promise<MatchedEvent | null>;
  /** Newest first. */
  events(page: EventPage): Promise<Page<MatchedEvent>>;
  /** The greatest depth of the events that a run was started for; null when they are not known any more. */
  depthOf(runId: string): Promise<number | null>;
  /** Schedules that react to events of a type: active and paused ones, in the order of their ids. */
  listeners(type: string): Promise<readonly Listener[]>;
  /** Events that wait for runs of a schedule, oldest first; fewer when their payloads are long, but at least one. */
  waitingEvents(scheduleId: string, limit: number): Promise<readonly TriggerEvent[]>;
  /** How many events wait, once for each schedule that they wait for; at most `maximum` are counted. */
  countWaiting(maximum: number): Promise<number>;
  /**
   * Removes events that came before a time, or before the newest `keptMax`, oldest first; waiting ones stay.
   *
   * @returns how many
   */
  forgetEvents(beforeMs: number, keptMax: number, limit: number): Promise<number>;
}

/** The writes of one transaction; reads inside see what it has written so far. */
export interface EventWrites extends Pick<EventRecords, "event" | "listeners"> {
  /** How many schedules react to events of a type. */
  countListeners(type: string): Promise<number>;
  /** @returns it with its seq */
  insertEvent(event: EventContent): Promise<TriggerEvent>;
  insertMatch(match: EventMatch): Promise<void>;
  /** The seqs of the events that wait for runs of a schedule, oldest first. */
  waitingSeqs(scheduleId: string, limit: number): Promise<readonly number[]>;
  /** Ends the waiting of a schedule's events up to `throughSeq`: with a run, or with the reason why there is none. */
  settleWaiting(
    scheduleId: string,
    throughSeq: number,
    end: { readonly runId: string | null; readonly reason: string | null },
  ): Promise<void>;
}
