// What an event does to a schedule, at times and with amounts that no program comes to in a test.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { schedule } from "../../test/support/gateway-samples.ts";
import {
  arrive,
  BATCH_BYTES_MAX,
  dueStep,
  type EventSchedule,
  skippedFor,
  startedFor,
  timedEvents,
  WAITING_BYTES_MAX,
  WAITING_EVENTS_MAX,
  waitForStart,
} from "./event-step.ts";
import type { EventRule, Schedule } from "./records.ts";

const NOW_MS = 1_000_000;
const event = { nowMs: NOW_MS, bytes: 10, depth: 0 };

const of = (rule: Partial<EventRule> = {}, given: Partial<Schedule> = {}): EventSchedule => ({
  ...schedule(1, { dueAtMs: null, nextRunAtMs: null, ...given }),
  rule: {
    kind: "event",
    type: "a",
    filters: [],
    debounceSeconds: null,
    throttleSeconds: null,
    batch: null,
    ...rule,
  },
});
const batchOf = (given: Partial<Schedule> = {}) => of({ batch: { max: 3, seconds: 60 } }, given);

describe("throttle", () => {
  test("holds for its seconds after a start, and no longer when the clock is put back", () => {
    const kindAt = (nowMs: number) =>
      arrive(of({ throttleSeconds: 10 }, { throttledUntilMs: NOW_MS }), { ...event, nowMs }, false)?.kind;
    assert.deepEqual([NOW_MS - 1, NOW_MS - 10_000, NOW_MS, NOW_MS - 10_001].map(kindAt), [
      "skipped",
      "skipped",
      "starts",
      "starts",
    ]);
  });

  test("counts from each start", () => {
    const arrival = arrive(of({ throttleSeconds: 10 }), event, false);
    assert.equal(arrival?.next.throttledUntilMs, NOW_MS + 10_000);
  });
});

describe("a batch", () => {
  test("is due so long after its first event, and at once when it is full", () => {
    const first = arrive(batchOf(), event, false)?.next;
    assert.deepEqual(
      [first?.waitingEvents, first?.waitingBytes, first?.nextRunAtMs],
      [1, 10, NOW_MS + 60_000],
    );
    const second = arrive(batchOf(first), { ...event, nowMs: NOW_MS + 5 }, false)?.next;
    assert.deepEqual([second?.waitingEvents, second?.nextRunAtMs], [2, NOW_MS + 60_000]);
    const third = arrive(batchOf(second), { ...event, nowMs: NOW_MS + 9 }, false)?.next;
    assert.deepEqual([third?.waitingEvents, third?.nextRunAtMs], [3, NOW_MS + 9]);
  });

  test("is due no later when the clock is put back", () => {
    const first = arrive(batchOf(), event, false)?.next;
    const second = arrive(batchOf(first), { ...event, nowMs: NOW_MS - 500_000 }, false)?.next;
    assert.equal(second?.nextRunAtMs, NOW_MS - 500_000 + 60_000);
  });

  test("is full with so many bytes", () => {
    const waiting = { waitingEvents: 1, waitingBytes: BATCH_BYTES_MAX - 10, dueAtMs: NOW_MS + 60_000 };
    assert.equal(arrive(batchOf(waiting), event, false)?.next.nextRunAtMs, NOW_MS);
    assert.equal(arrive(batchOf(waiting), { ...event, bytes: 9 }, false)?.next.nextRunAtMs, NOW_MS + 60_000);
  });

  test("that waits for the end of a run is filled, and takes no more then", () => {
    const queued = {
      queuedDueAtMs: 1,
      waitingEvents: 2,
      waitingBytes: 20,
      dueAtMs: 1,
      overlap: "queue_one",
    } as const;
    const joined = arrive(batchOf(queued), event, true);
    assert.deepEqual(
      [joined?.kind, joined?.next.nextRunAtMs, joined?.next.queuedDueAtMs],
      ["waits", null, 1],
    );
    assert.equal(arrive(batchOf({ ...queued, waitingEvents: 3 }), event, true)?.kind, "skipped");
  });

  test("leaves the events that are beyond it for the next one", () => {
    const waiting = batchOf({ waitingEvents: 7, waitingBytes: 70, nextRunAtMs: 1 });
    const taken = { count: 3, bytes: 30, receivedAtMs: 5 };
    const next = startedFor(waiting, taken, NOW_MS);
    assert.deepEqual(
      [next.waitingEvents, next.waitingBytes, next.dispatched, next.nextRunAtMs],
      [4, 40, 1, NOW_MS],
    );
    const last = startedFor(batchOf(next), taken, NOW_MS);
    assert.deepEqual([last.waitingEvents, last.nextRunAtMs], [1, NOW_MS + 60_000]);
    const skipped = skippedFor(batchOf(next), taken, NOW_MS);
    assert.deepEqual([skipped.skipped, skipped.dispatched, skipped.lastDispatch?.outcome], [3, 1, "skipped"]);
  });
});

test("no more events wait for a schedule than are bounded, whatever they wait for", () => {
  for (const full of [
    { waitingEvents: WAITING_EVENTS_MAX },
    { waitingEvents: 1, waitingBytes: WAITING_BYTES_MAX - 9 },
  ]) {
    assert.equal(arrive(batchOf(full), event, false)?.kind, "skipped");
    assert.equal(waitForStart(of({}, full), event).kind, "skipped");
  }
  assert.equal(waitForStart(of(), event).next.nextRunAtMs, 0);
});

test("a burst puts its run off, and the one before it waits no more", () => {
  const first = arrive(of({ debounceSeconds: 5 }), event, false)?.next;
  const second = arrive(
    of({ debounceSeconds: 5 }, first),
    { ...event, nowMs: NOW_MS + 4_000, bytes: 7 },
    false,
  );
  assert.ok(second?.kind === "waits" && second.replaces);
  const { waitingEvents, waitingBytes, nextRunAtMs, skipped } = second.next;
  assert.deepEqual([waitingEvents, waitingBytes, nextRunAtMs, skipped], [1, 7, NOW_MS + 9_000, 1]);
});

test("the end of a chain of 16 runs starts no run, and joins no batch", () => {
  for (const schedule of [of(), batchOf(), of({ debounceSeconds: 5 })]) {
    const deep = arrive(schedule, { ...event, depth: 16 }, false);
    assert.ok(deep?.kind === "skipped");
    assert.equal(deep.skipped, "too_deep");
    assert.notEqual(arrive(schedule, { ...event, depth: 15 }, false)?.kind, "skipped");
  }
});

test("a paused schedule skips events, of a batch too", () => {
  for (const schedule of [of({}, { status: "paused" }), batchOf({ status: "paused" })]) {
    const arrival = arrive(schedule, event, false);
    assert.ok(arrival?.kind === "skipped");
    assert.deepEqual([arrival.skipped, arrival.next.skipped], ["paused", 1]);
  }
});

test("nothing is due before its time, while the schedule is paused, or while a run is waited for", () => {
  const waiting = { waitingEvents: 1, waitingBytes: 10, nextRunAtMs: NOW_MS };
  assert.equal(dueStep(batchOf(waiting), NOW_MS - 1, false), null);
  assert.equal(dueStep(batchOf({ ...waiting, status: "paused" }), NOW_MS, false), null);
  assert.equal(dueStep(batchOf({ ...waiting, nextRunAtMs: null, queuedDueAtMs: 1 }), NOW_MS, false), null);
  assert.equal(dueStep(batchOf(waiting), NOW_MS, false)?.kind, "starts");
});

test("until ends the schedule: what waits is started then, and nothing behind it", () => {
  const until = { untilMs: NOW_MS + 30_000 };
  const first = arrive(batchOf(until), event, false)?.next;
  assert.equal(first?.nextRunAtMs, NOW_MS + 30_000);
  assert.equal(arrive(batchOf({ ...first, ...until }), { ...event, nowMs: NOW_MS + 30_000 }, false), null);
  const last = startedFor(batchOf(first), { count: 1, bytes: 10, receivedAtMs: 1 }, NOW_MS + 30_000);
  assert.deepEqual([last.status, last.nextRunAtMs], ["completed", null]);
  const idle = timedEvents(batchOf(until), NOW_MS);
  assert.deepEqual([idle.status, idle.nextRunAtMs], ["active", NOW_MS + 30_000]);
  const over = dueStep(batchOf(idle), NOW_MS + 30_000, false);
  assert.ok(over?.kind === "changes");
  assert.deepEqual([over.next.status, over.next.nextRunAtMs], ["completed", null]);
});
