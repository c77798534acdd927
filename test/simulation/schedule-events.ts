// Trigger events in the simulated world of schedules: senders repeat an event until they are answered, and sometimes behind that,
// at any program; schedules react to them in every way.
//
// - Each event is kept once. Of each schedule that it matched it is in one run, or waits, or there is a reason why not.
// - A run has the events that it is said to have, and no others.
// - The numbers of a schedule are those of its events.

import assert from "node:assert/strict";
import type { EventMatch, MatchedEvent } from "../../src/schedules/event-records.ts";
import { isOfEvents } from "../../src/schedules/event-step.ts";
import type { EventRule, Schedule } from "../../src/schedules/records.ts";
import type { Kind } from "./kinds.ts";
import type { ScheduleWorld } from "./schedules.ts";

const SCHEDULES = 6;
const TYPES = ["a", "b"] as const;
/** Behind it a sender does not believe in an answer any more. */
const ANSWER_MS = 10_000;
const EVENTS_MAX = 10_000;

/** What a match has come to, as it is told. */
const reasons: readonly (readonly [RegExp, Kind])[] = [
  [/a later event came/, "event that a later one replaced"],
  [/a run was started less than/, "event that was throttled"],
  [/has not ended/, "event that came while a run was open"],
  [/is paused/, "event that came during a pause"],
  [/^Not now/, "event whose run was refused"],
  [/^the schedule is (completed|failed)/, "event of an ended schedule"],
];

export class EventTraffic {
  readonly #world: ScheduleWorld;
  /** By event_id: what the first sender was answered. */
  readonly #answered = new Map<string, string>();
  /** By schedule that never ends: how many events were sent before it was there. */
  readonly #madeAt = new Map<string, number>();
  #sent = 0;

  constructor(world: ScheduleWorld) {
    this.#world = world;
  }

  start(): void {
    const { random } = this.#world;
    for (let n = 0; n < SCHEDULES; n++) this.#world.plan(random.below(60_000), () => void this.#make());
    this.#world.plan(1_000, () => this.#next());
  }

  async #make(): Promise<void> {
    const made = await this.#world.schedule(this.#rule());
    if (made?.maxRuns === null && made.untilMs === null) this.#madeAt.set(made.scheduleId, this.#sent);
  }

  #rule(): EventRule {
    const { random } = this.#world;
    const pace = random.below(4);
    return {
      kind: "event",
      type: random.pick(TYPES),
      filters: random.chance(0.3) ? [{ path: "/payload", op: "gt", value: 4 }] : [],
      debounceSeconds: pace === 1 ? random.pick([1, 30]) : null,
      throttleSeconds: pace === 2 ? random.pick([5, 60]) : null,
      batch: pace === 3 ? { max: random.between(1, 6), seconds: random.pick([1, 60]) } : null,
    };
  }

  /** One event, or several at one moment. */
  #next(): void {
    const { random } = this.#world;
    if (!this.#world.isFaulty) return;
    const count = random.chance(0.1) ? random.between(5, 20) : 1;
    for (let n = 0; n < count; n++) this.#send(`e${this.#sent++}`, random.pick(TYPES), random.below(10));
    this.#world.plan(random.pick([200, 60_000, 180_000]), () => this.#next());
  }

  #send(eventId: string, type: string, payload: number): void {
    const { random } = this.#world;
    let isAnswered = false;
    const sent = this.#world.ask(async ({ triggerEvents, records, scheduler }) => {
      const insert = await triggerEvents.prepare({
        eventId,
        type,
        source: null,
        payloadJson: `${payload}`,
        depth: 0,
      });
      const emitted = await records.write(insert);
      scheduler.emitted(emitted);
      isAnswered = true;
      this.#answeredWith(emitted.event);
    });
    sent.catch((error: unknown) => this.#world.unexpected(String(error)));
    this.#world.plan(ANSWER_MS, () => {
      if (isAnswered && !random.chance(0.05)) return;
      this.#world.counts.add("event that was sent again");
      this.#send(eventId, type, payload);
    });
  }

  /** Every answer is the first one. */
  #answeredWith({ eventId, matches }: MatchedEvent): void {
    const answer = JSON.stringify(
      matches.map(({ scheduleId, skipped, runId }) => [scheduleId, skipped ?? runId]),
    );
    assert.equal(answer, this.#answered.get(eventId) ?? answer, `event ${eventId} is answered otherwise`);
    this.#answered.set(eventId, answer);
  }

  async check(schedules: readonly Schedule[]): Promise<void> {
    const all = { type: null, source: null, limit: EVENTS_MAX, afterSeq: null };
    const { rows } = await this.#world.records.events.events(all);
    assert.deepEqual(
      rows.map(({ eventId }) => eventId).toSorted(),
      Array.from({ length: this.#sent }, (_, n) => `e${n}`).toSorted(),
      "each event is kept once",
    );
    const runs = await this.#world.database.read<{ run_id: string; trigger_id: string; inputs_json: string }>(
      "SELECT run_id, trigger_id, inputs_json FROM runs WHERE trigger_kind = 'event'",
      [],
    );
    const said = new Map<string, string[]>();
    for (const { eventId, matches } of rows.toReversed())
      for (const { scheduleId, runId } of matches)
        if (runId !== null) said.set(runId, [...(said.get(runId) ?? [scheduleId]), eventId]);
    assert.deepEqual(
      runs.map(({ run_id: id, trigger_id: by, inputs_json: ids }) => [id, by, ...JSON.parse(ids)]).toSorted(),
      [...said].map(([id, of]) => [id, ...of]).toSorted(),
      "runs have the events that they are said to have",
    );
    for (const schedule of schedules) this.#checkSchedule(schedule, rows);
  }

  #checkSchedule(schedule: Schedule, events: readonly MatchedEvent[]): void {
    if (!isOfEvents(schedule)) return;
    const name = JSON.stringify(schedule);
    const { scheduleId, rule } = schedule;
    const own = events.flatMap(({ matches, payloadJson }) =>
      matches.filter((one) => one.scheduleId === scheduleId).map((match) => ({ ...match, payloadJson })),
    );
    const waiting = own.filter(({ isWaiting }) => isWaiting);
    assert.equal(schedule.waitingEvents, waiting.length, `events that wait: ${name}`);
    assert.equal(
      schedule.waitingBytes,
      waiting.reduce((bytes, one) => bytes + one.payloadJson.length, 0),
      name,
    );
    for (const match of own) this.#checkMatch(match);
    const madeAt = this.#madeAt.get(scheduleId) ?? Number.POSITIVE_INFINITY;
    const missed = events.filter(
      ({ eventId, type, payloadJson, matches }) =>
        Number(eventId.slice(1)) >= madeAt &&
        type === rule.type &&
        (rule.filters.length === 0 || Number(payloadJson) > 4) &&
        !matches.some((one) => one.scheduleId === scheduleId),
    );
    assert.deepEqual(missed, [], `events that were not seen: ${name}`);
    const isRefused = ({ reason }: EventMatch) => reason?.startsWith("Not now") === true;
    const skipped = own.filter((one) => !one.isWaiting && one.runId === null && !isRefused(one));
    assert.equal(schedule.skipped, skipped.length, `events that were skipped: ${name}`);
    const sizes = Map.groupBy(
      own.filter(({ runId }) => runId !== null),
      ({ runId }) => runId,
    );
    for (const { length } of sizes.values()) {
      assert.ok(length <= (rule.batch?.max ?? 1), `a run has ${length} events: ${name}`);
      if (rule.batch !== null) this.#world.counts.add("event in a batch", length);
    }
  }

  #checkMatch(match: EventMatch): void {
    const { counts } = this.#world;
    const { skipped, runId, reason, isWaiting } = match;
    assert.equal(
      [runId !== null, reason !== null, isWaiting].filter(Boolean).length,
      1,
      JSON.stringify(match),
    );
    if (runId !== null)
      counts.add(skipped === null ? "event that started a run" : "event that waited for its run");
    for (const [pattern, kind] of reasons) if (pattern.test(reason ?? "")) counts.add(kind);
  }
}
