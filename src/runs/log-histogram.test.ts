// Counting a log over time: whatever the times, nothing is lost or counted twice, in parts as in one piece.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { renderEvent } from "../engine/event.ts";
import { logLevels } from "../engine/event-types.ts";
import type { LogFilter } from "./history/log-filter.ts";
import { type Counts, countLogs, type LogCounts } from "./log-histogram.ts";
import type { LogSource } from "./log-page.ts";

const START_MS = Date.parse("2026-11-21T09:30:00.123Z");
const PAGE = 7;
const all: LogFilter = {
  level: null,
  agentId: null,
  stream: null,
  text: null,
  sinceMs: null,
  untilMs: null,
};

interface Line {
  readonly atMs: number;
  readonly level: string | null;
}

/** A history of these events; without a level it is no log. */
function sourceOf(lines: readonly Line[], pageSize = PAGE): LogSource {
  const events = lines.map(({ atMs, level }) => {
    const head = { type: level === null ? "progress" : "log", nowMs: START_MS + atMs, agentId: null };
    return renderEvent(head, { level, message: "x" });
  });
  return {
    run: { runId: "run_1", traceId: "4bf92f3577b34da6a3ce929d0e0e4736", parentSpanId: null },
    after: async (seq) => ({ firstSeq: seq + 1, lines: events.slice(seq, seq + pageSize) }),
    before: async (seq) => {
      const end = Math.min(seq - 1, events.length);
      const from = Math.max(0, end - pageSize);
      return { firstSeq: from + 1, lines: events.slice(from, end) };
    },
    placeOfTime: async () => ({ fromSeq: 1, toSeq: null }),
  };
}

/** All pages of a count, each bucket as what it has at its start. */
async function counted(source: LogSource, buckets: number, sinceSeq?: number) {
  const pages: LogCounts[] = [];
  let position: LogCounts["next"] = null;
  do {
    const page: LogCounts = await countLogs(source, { filter: all, buckets, sinceSeq, position });
    pages.push(page);
    position = page.next;
  } while (position !== null);
  return pages;
}

/** The counts of pages, in the widest buckets that one of them has. */
function sumOf(pages: readonly LogCounts[]): ReadonlyMap<number, Counts> {
  const bucketMs = Math.max(...pages.map(({ span }) => span?.bucketMs ?? 1));
  const sums = new Map<number, Counts>();
  for (const [startMs, counts] of pages.flatMap(({ buckets }) => [...buckets])) {
    const at = startMs - (startMs % bucketMs);
    const before = sums.get(at);
    sums.set(at, before === undefined ? counts : added(before, counts));
  }
  return sums;
}

const added = (a: Counts, b: Counts) =>
  Object.fromEntries(logLevels.map((level) => [level, a[level] + b[level]])) as Counts;

const totalOf = (sums: ReadonlyMap<number, Counts>) =>
  [...sums.values()].flatMap((counts) => Object.values(counts)).reduce((a, b) => a + b, 0);

const line = fc.record({
  atMs: fc.oneof(fc.nat(30), fc.nat(5_000), fc.nat(90 * 24 * 3_600_000)),
  level: fc.option(fc.constantFrom(...logLevels)),
});

test("counts every record once, in few enough buckets; what is counted on later fits into the same ones", async () => {
  const cases = fc.asyncProperty(
    fc.array(line, { maxLength: 40 }),
    fc.integer({ min: 10, max: 200 }),
    fc.nat(40),
    async (lines, most, first) => {
      const whole = await counted(sourceOf(lines), most);
      const sums = sumOf(whole);
      assert.ok(sums.size <= most);
      assert.equal(totalOf(sums), lines.filter(({ level }) => level !== null).length);
      const [page] = whole;
      const bucketMs = page?.span?.bucketMs ?? 1;
      for (const startMs of sums.keys()) assert.equal(startMs % bucketMs, 0);
      // Some of it while it goes on, the rest behind it: times are in order, as a clock that nobody turns gives them.
      const ordered = lines.toSorted((a, b) => a.atMs - b.atMs);
      const early = await counted(sourceOf(ordered.slice(0, first)), most);
      const late = await counted(sourceOf(ordered), most, (early.at(-1)?.seenSeq ?? 0) + 1);
      assert.deepEqual(sumOf([...early, ...late]), sumOf(await counted(sourceOf(ordered), most)));
    },
  );
  await fc.assert(cases, { numRuns: 300 });
});

test("looks at a bounded part of a long log at a time", async () => {
  const lines = Array.from({ length: 45_000 }, (_, atMs) => ({ atMs, level: "info" }));
  const pages = await counted(sourceOf(lines, 1_000), 60);
  assert.equal(pages.length, 3);
  assert.deepEqual(
    pages.map(({ seenSeq }) => seenSeq),
    [20_000, 40_000, 45_000],
  );
  assert.equal(totalOf(sumOf(pages)), 45_000);
});
