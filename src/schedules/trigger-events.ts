// Trigger events: something has happened, and schedules that react to it start runs.
//
// - An event and what all schedules make of it are one transaction. Runs are checked before it; what has changed until then, and
//   what is too much at once, waits for the scheduler, which comes to it at once.
// - An event_id that is known has no effect again: the first answer is given.

import { isoTime } from "../engine/event.ts";
import type { JsonValue } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { forEachConcurrent } from "../lib/async.ts";
import { DomainError } from "../lib/domain-error.ts";
import { Slices } from "../lib/slices.ts";
import { passesAll, type SeenEvent } from "./event-filter.ts";
import type { EventContent, EventMatch, EventRecords, Listener, MatchedEvent } from "./event-records.ts";
import { arrive, bytesOf, collects, type EventSchedule, isOfEvents, waitForStart } from "./event-step.ts";
import type { Rule, Schedule, ScheduleRecords } from "./records.ts";
import {
  type InsertRun,
  preparedOrRefused,
  type RunStarts,
  type SchedulerWrites,
  type Written,
  writeStart,
} from "./run-starts.ts";

/** More of one event are started by the scheduler. */
const STARTS_MAX = 32;
const CHECKS_AT_ONCE = 4;

export interface NewEvent {
  /** Null: it gets one. */
  readonly eventId: string | null;
  readonly type: string;
  readonly source: string | null;
  readonly payloadJson: string;
  readonly depth: number;
}

export interface TriggerEventsParts<Writes extends SchedulerWrites> {
  readonly records: Pick<ScheduleRecords, "schedule" | "openRuns"> & {
    readonly events: Pick<EventRecords, "event" | "depthOf" | "listeners">;
  };
  readonly starts: RunStarts<Writes>;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** An event that is on disk, and what is to be told of it. */
export interface Emitted {
  readonly event: MatchedEvent;
  /** Whether its event_id was known: nothing has happened. */
  readonly isRepeated: boolean;
  /** Of schedules, each with its run if one was started. */
  readonly written: readonly Written[];
}

/** A transaction in which a part may fail alone. */
export interface EventTransaction extends SchedulerWrites {
  apart<T>(work: () => Promise<T>): Promise<T>;
}

interface Prepared<Writes> {
  /** Of the schedule that the run was checked for. */
  readonly revision: number;
  readonly insert: InsertRun<Writes> | DomainError;
}

export class TriggerEvents<Writes extends EventTransaction> {
  readonly #parts: TriggerEventsParts<Writes>;

  constructor(parts: TriggerEventsParts<Writes>) {
    this.#parts = parts;
  }

  /**
   * Checks what an event would start; writes nothing.
   *
   * @returns what is still to be done, in a transaction; the scheduler is to be told of the result after its commit
   */
  async prepare(event: NewEvent): Promise<(writes: Writes) => Promise<Emitted>> {
    const { eventId } = event;
    const known = eventId === null ? null : await this.#parts.records.events.event(eventId);
    if (known !== null) return async () => ({ event: known, isRepeated: true, written: [] });
    const content = this.#contentOf(event);
    const filtering = new Filtering(content);
    const prepared = await this.#prepareStarts(content, filtering);
    return async (writes) => {
      const known = eventId === null ? null : await writes.events.event(eventId);
      return known === null
        ? this.#write(writes, content, filtering, prepared)
        : { event: known, isRepeated: true, written: [] };
    };
  }

  /** Inserts an event without an id, of a type that no schedule reacts to. */
  async insert(writes: Writes, event: NewEvent): Promise<void> {
    await writes.events.insertEvent(this.#contentOf(event));
  }

  #contentOf({ eventId, ...of }: NewEvent): EventContent {
    const { clock, newId } = this.#parts;
    return {
      ...of,
      eventId: eventId ?? `event_${newId()}`,
      receivedAtMs: clock.nowMs(),
    };
  }

  /** The depth of what happens because of a run. */
  async depthBehind(runId: string): Promise<number> {
    return ((await this.#parts.records.events.depthOf(runId)) ?? -1) + 1;
  }

  /** @throws DomainError `event_not_found` */
  async find(eventId: string): Promise<MatchedEvent> {
    const event = await this.#parts.records.events.event(eventId);
    if (event !== null) return event;
    const detail = `Event ${eventId} was not found: it was not sent, or is older than a week. List the events.`;
    throw new DomainError("event_not_found", detail);
  }

  /** Checks the runs that would begin if nothing changed until the transaction; by their schedules. */
  async #prepareStarts(content: EventContent, filtering: Filtering) {
    const { records, starts } = this.#parts;
    const prepared = new Map<string, Prepared<Writes>>();
    const passing: Listener[] = [];
    const slices = new Slices();
    for (const listener of await records.events.listeners(content.type)) {
      if (slices.isOver) await slices.breathe();
      if (mayStart(listener.rule) && filtering.passes(listener)) passing.push(listener);
    }
    await forEachConcurrent(passing.slice(0, STARTS_MAX), CHECKS_AT_ONCE, async ({ scheduleId }) => {
      const schedule = await records.schedule(scheduleId);
      if (schedule === null || !isOfEvents(schedule)) return;
      const hasOpen = (await records.openRuns(scheduleId, 1)).length > 0;
      if (arrive(schedule, arrived(content), hasOpen)?.kind !== "starts") return;
      const cause = { kind: "events", events: [content] } as const;
      // What cannot be checked now is left to the scheduler, which tries again and logs why: it holds up no other schedule.
      const insert = await preparedOrRefused(starts, schedule, cause).catch(() => null);
      if (insert !== null) prepared.set(scheduleId, { revision: schedule.revision, insert });
    });
    return prepared;
  }

  async #write(
    writes: Writes,
    content: EventContent,
    filtering: Filtering,
    prepared: ReadonlyMap<string, Prepared<Writes>>,
  ): Promise<Emitted> {
    const event = await writes.events.insertEvent(content);
    const matches: EventMatch[] = [];
    const written: Written[] = [];
    for (const listener of await writes.events.listeners(content.type)) {
      if (!filtering.passes(listener)) continue;
      const { scheduleId } = listener;
      const schedule = await writes.schedules.schedule(scheduleId);
      if (schedule === null || !isOfEvents(schedule)) continue;
      const done = await this.#react(writes, schedule, content, prepared.get(scheduleId));
      if (done === null) continue;
      const match = { seq: event.seq, scheduleId, ...done.match };
      await writes.events.insertMatch(match);
      matches.push(match);
      written.push(done.written);
    }
    return { event: { ...event, matches }, isRepeated: false, written };
  }

  /** @returns null when the schedule does not react to it */
  async #react(
    writes: Writes,
    schedule: EventSchedule,
    content: EventContent,
    prepared: Prepared<Writes> | undefined,
  ): Promise<{ readonly match: Reaction; readonly written: Written } | null> {
    const hasOpen =
      !collects(schedule.rule) && (await writes.schedules.openRuns(schedule.scheduleId, 1)).length > 0;
    const wanted = arrive(schedule, arrived(content), hasOpen);
    if (wanted?.kind === "starts" && prepared?.revision === schedule.revision)
      return this.#start(writes, { ...wanted, insert: prepared.insert });
    const arrival = wanted?.kind === "starts" ? waitForStart(schedule, arrived(content)) : wanted;
    if (arrival === null || arrival.kind === "starts") return null;
    if (arrival.kind === "waits" && arrival.replaces && schedule.waitingEvents > 0)
      await writes.events.settleWaiting(schedule.scheduleId, Number.MAX_SAFE_INTEGER, {
        runId: null,
        reason: "a later event came",
      });
    await writes.schedules.save(arrival.next);
    const reason = arrival.kind === "skipped" ? arrival.reason : null;
    return {
      match: { skipped: arrival.skipped, runId: null, reason, isWaiting: arrival.kind === "waits" },
      written: { schedule: arrival.next, run: null, outcome: null, hasCancelled: false },
    };
  }

  /** A run that is refused at the last moment, as one whose job was deleted, leaves its refusal alone. */
  async #start(
    writes: Writes,
    start: {
      readonly insert: Prepared<Writes>["insert"];
      readonly cancelsOpen: boolean;
      readonly next: Schedule;
    },
  ) {
    const { starts } = this.#parts;
    const written = await writes
      .apart(() => writeStart(writes, starts, start))
      .catch((error: unknown) => {
        if (!(error instanceof DomainError)) throw error;
        return writeStart(writes, starts, { ...start, insert: error });
      });
    const isRefused = written.run === null;
    const match: Reaction = {
      skipped: isRefused ? "refused" : null,
      runId: written.run?.runId ?? null,
      reason: isRefused ? (written.schedule.lastDispatch?.reason ?? null) : null,
      isWaiting: false,
    };
    return { match, written };
  }
}

/** Whether an event may start a run at once. */
const mayStart = (rule: Rule) => rule.kind === "event" && !collects(rule);

type Reaction = Omit<EventMatch, "seq" | "scheduleId">;

const arrived = ({ receivedAtMs, payloadJson, depth }: EventContent) => ({
  nowMs: receivedAtMs,
  bytes: bytesOf(payloadJson),
  depth,
});

/** Which schedules an event passes the filters of. They may look through all of a payload: once for each definition. */
class Filtering {
  readonly #content: EventContent;
  #seen: SeenEvent | null = null;
  readonly #known = new Map<string, boolean>();

  constructor(content: EventContent) {
    this.#content = content;
  }

  passes({ scheduleId, revision, rule }: Listener): boolean {
    const key = `${scheduleId} ${revision}`;
    let passes = this.#known.get(key);
    if (passes === undefined) {
      this.#seen ??= seenEvent(this.#content);
      passes = rule.kind === "event" && passesAll(rule.filters, this.#seen);
      this.#known.set(key, passes);
    }
    return passes;
  }
}

/** The event as filters and templates see it. */
export function seenEvent({ eventId, type, source, payloadJson, receivedAtMs }: EventContent): SeenEvent {
  const payload = JSON.parse(payloadJson) as JsonValue;
  return { event_id: eventId, type, source, payload, received_at: isoTime(receivedAtMs) };
}
