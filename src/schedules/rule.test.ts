// Which times are due: against the calendar of Intl, over ten years of zones.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import type { CronRule } from "./records.ts";
import {
  describeRule,
  dueAfter,
  duesAfter,
  duesBetween,
  expressionProblem,
  runIdOf,
  startOf,
} from "./rule.ts";

const cron = (expressions: readonly string[], timezone = "UTC", jitterSeconds = 0): CronRule => ({
  kind: "cron",
  expressions,
  timezone,
  jitterSeconds,
});

/** Zones that put their clocks forward and back by an hour, by half an hour, or at midnight. */
const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "America/Santiago",
  "Australia/Lord_Howe",
  "Africa/Cairo",
];
const FROM = Date.UTC(2020, 0, 1);
const UNTIL = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;

function localOf(timezone: string) {
  const format = new Intl.DateTimeFormat("en-CA", {
    timeZone: timezone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  return (ms: number) => {
    const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
    return { day: `${parts.year}-${parts.month}-${parts.day}`, time: `${parts.hour}:${parts.minute}` };
  };
}

describe("a time of day", () => {
  for (const timezone of ZONES) {
    for (const [expression, wanted] of [
      ["30 2 * * *", "02:30"],
      ["0 0 * * *", "00:00"],
    ] as const) {
      test(`${wanted} in ${timezone} is due once on each day of ten years`, () => {
        const local = localOf(timezone);
        const days = new Set<string>();
        let moved = 0;
        for (let due = dueAfter(cron([expression], timezone), FROM); due !== null && due < UNTIL; ) {
          const { day, time } = local(due);
          assert.ok(!days.has(day), `twice on ${day}`);
          days.add(day);
          if (time !== wanted) {
            moved++;
            // It does not exist on that day: what comes before is earlier than it.
            const before = local(due - 60_000);
            assert.ok(time > wanted && `${before.day} ${before.time}` < `${day} ${wanted}`, `${day} ${time}`);
          }
          due = dueAfter(cron([expression], timezone), due);
        }
        const all = Math.round((UNTIL - FROM) / DAY_MS);
        assert.ok(Math.abs(days.size - all) <= 1, `${days.size} of ${all} days`);
        assert.ok(moved <= 12, `${moved} times were moved`);
      });
    }
  }

  test("a list of hours is due once at each, also when clocks are put back", () => {
    const dues = duesAfter(cron(["30 2,14 * * *"], "Europe/Berlin"), Date.parse("2026-10-24T22:00:00Z"), 2);
    assert.deepEqual(
      dues.map((due) => new Date(due).toISOString()),
      ["2026-10-25T00:30:00.000Z", "2026-10-25T13:30:00.000Z"],
    );
  });
});

test("a distance goes on as if clocks were not changed", () => {
  const rule = cron(["0 * * * *"], "Europe/Berlin");
  for (const change of ["2026-03-29T00:00:00Z", "2026-10-24T23:00:00Z"]) {
    const dues = duesAfter(rule, Date.parse(change), 5);
    assert.deepEqual(
      dues.slice(1).map((due, i) => due - (dues[i] ?? 0)),
      Array(4).fill(3_600_000),
    );
  }
});

const expressions = fc.uniqueArray(
  fc.constantFrom("*/5 * * * *", "0 9 * * MON-FRI", "15 10 1 * *", "*/20 * * * * *", "@daily", "30 2 * * *"),
  { minLength: 1, maxLength: 3 },
);

test("looking ahead and looking back find the same times, each once and in order", () => {
  fc.assert(
    fc.property(
      expressions,
      fc.constantFrom(...ZONES),
      fc.integer({ min: FROM, max: UNTIL }),
      (given, zone, atMs) => {
        const rule = cron(given, zone);
        const ahead = duesAfter(rule, atMs, 8);
        let one = atMs;
        for (const due of ahead) {
          const next = dueAfter(rule, one);
          assert.equal(due, next);
          one = due;
        }
        const last = ahead.at(-1) ?? atMs;
        assert.deepEqual(duesBetween(rule, atMs + 1, last, 9), ahead);
      },
    ),
    { numRuns: 60 },
  );
});

test("a delay is due once", () => {
  const rule = { kind: "delayed", atMs: 5_000 } as const;
  assert.deepEqual([dueAfter(rule, 4_999), dueAfter(rule, 5_000)], [5_000, null]);
  const between = (fromMs: number, untilMs: number) => duesBetween(rule, fromMs, untilMs, 9);
  assert.deepEqual([between(0, 5_000), between(0, 4_999), between(5_001, 9_000)], [[5_000], [], []]);
});

test("what is no expression, and what never comes, is told", () => {
  assert.equal(expressionProblem("0 9 * * MON-FRI"), null);
  for (const [expression, problem] of [
    ["61 * * * *", /minute: 61/],
    ["soon", /five, six, or seven/],
    ["0 0 31 2 *", /never comes/],
    ["@reboot", /not supported/],
    ["", /five, six, or seven|must be/],
  ] as const)
    assert.match(expressionProblem(expression) ?? "nothing", problem);
  assert.doesNotMatch(expressionProblem("soon") ?? "", /\.$/, "it becomes a part of a sentence");
});

test("the jitter of a due time is always the same, within its limit, and spread", () => {
  const rule = cron(["0 * * * *"], "UTC", 60);
  const delays = Array.from(
    { length: 200 },
    (_, n) => startOf("schedule_1", rule, n * 3_600_000) - n * 3_600_000,
  );
  assert.ok(delays.every((delay) => delay >= 0 && delay < 60_000));
  assert.ok(new Set(delays).size > 190 && Math.max(...delays) > 50_000 && Math.min(...delays) < 10_000);
  assert.equal(startOf("schedule_1", rule, 3_600_000), startOf("schedule_1", rule, 3_600_000));
});

test("the id of a run follows from its schedule and due time, and sorts by it", () => {
  const id = runIdOf("schedule_1", 1_790_000_000_000);
  assert.match(id, /^run_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(id, runIdOf("schedule_1", 1_790_000_000_000));
  assert.notEqual(id, runIdOf("schedule_2", 1_790_000_000_000));
  assert.ok(id < runIdOf("schedule_2", 1_790_000_001_000));
});

test("of many times the last ones are taken, and none before the first is looked for", () => {
  const rule = cron(["* * * * * *", "*/7 * * * * *"]);
  assert.deepEqual(duesBetween(rule, 0, 1_000_500, 3), [998_000, 999_000, 1_000_000]);
  assert.deepEqual(duesBetween(rule, 998_500, 1_000_000, 100), [999_000, 1_000_000]);
});

for (const expression of [
  "? ? * * *",
  "@YEARLY",
  " @hourly ",
  "0 0 * * MON#L",
  "0 0 1W,15W * *",
  "0 0 0 29 2 +MON *",
]) {
  test(`what one library takes and the other has no words for stands for itself: ${expression}`, () => {
    assert.equal(expressionProblem(expression), null);
    assert.equal(describeRule(cron([expression])), `${expression} (UTC)`);
  });
}

test("a rule is said in plain English", () => {
  assert.equal(
    describeRule(cron(["0 9 * * MON-FRI", "@daily"], "Europe/Berlin", 30)),
    "At 09:00, Monday through Friday; and At 00:00 (Europe/Berlin), up to 30 s later",
  );
  assert.equal(describeRule({ kind: "delayed", atMs: 0 }), "Once, at 1970-01-01T00:00:00.000Z");
});
