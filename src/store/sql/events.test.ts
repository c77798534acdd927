// The reads of a history: from either end, and by time, over segments of any size.

import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { renderEvent } from "../../engine/event.ts";
import { openSqlite } from "../sqlite/database.ts";
import { sqlJobRecords } from "./jobs.ts";

const START_MS = Date.parse("2026-11-21T09:30:00.000Z");

const JOBS = ["a-0", "a-1", "a-2"];

/** The row of a job that is not brief, of which only the id matters here. */
function insertJob(connection: DatabaseSync, jobId: string): void {
  const columns = connection.prepare("PRAGMA table_info(jobs)").all();
  const values = columns.map(({ name, type }) =>
    type === "INTEGER" ? 0 : name === "job_id" ? jobId : textOf(String(name), jobId),
  );
  connection.prepare(`INSERT INTO jobs VALUES (${values.map(() => "?").join(", ")})`).run(...values);
}

const textOf = (name: string, jobId: string) => (name.startsWith("brief_") ? null : `${jobId} ${name}`);

/** A store with one history: the times of its events, in ms since the start, cut into segments. */
function historyOf(segments: readonly (readonly number[])[], pad = "") {
  const database = openSqlite(":memory:");
  for (const jobId of JOBS) insertJob(database.connection, jobId);
  const insert = database.connection.prepare(
    "INSERT INTO events (job_id, first_seq, event_count, lines) VALUES (?, ?, ?, ?)",
  );
  const lines: string[] = [];
  for (const times of segments) {
    const first = lines.length + 1;
    for (const ms of times) {
      const head = { nowMs: START_MS + ms, type: "log", agentId: "work" };
      const line = renderEvent(head, { message: `${lines.length + 1} pad` });
      lines.push(line.replace("pad", pad));
    }
    for (const jobId of JOBS) {
      insert.run(jobId, first, times.length, lines.slice(first - 1).join("\n"));
    }
  }
  database.connection.prepare("UPDATE jobs SET event_seq = ?").run(lines.length);
  return {
    records: sqlJobRecords(database),
    lines,
    connection: database.connection,
    close: () => database.close(),
  };
}

const segmentsOfTimes = fc
  .array(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 6 }), { maxLength: 30 })
  .map((segments) => {
    let ms = 0;
    return segments.map((steps) => steps.map((step) => (ms += step)));
  });

test("read from its end backwards, a history is the same as from its beginning", async () => {
  await fc.assert(
    fc.asyncProperty(segmentsOfTimes, async (segments) => {
      const { records, lines, close } = historyOf(segments);
      const back: string[] = [];
      for (let beforeSeq = Number.MAX_SAFE_INTEGER; ; ) {
        const page = await records.eventsBefore("a-1", beforeSeq);
        if (page.lines.length === 0) break;
        assert.equal(page.lines[0], lines[page.firstSeq - 1]);
        back.unshift(...page.lines);
        beforeSeq = page.firstSeq;
      }
      assert.deepEqual(back, lines);
      // From the middle of a segment as well.
      for (let seq = 1; seq <= lines.length; seq++) {
        assert.equal((await records.eventsBefore("a-1", seq)).lines.at(-1), lines[seq - 2]);
      }
      await close();
    }),
    { numRuns: 30 },
  );
});

test("a time is found between the events before and after it, to within one segment", async () => {
  await fc.assert(
    fc.asyncProperty(segmentsOfTimes, async (segments) => {
      const { records, lines, close } = historyOf(segments);
      const times = segments.flat();
      const firsts = new Set<number>();
      let seq = 1;
      for (const segment of segments) {
        firsts.add(seq);
        seq += segment.length;
      }
      for (let ms = -1; ms <= (times.at(-1) ?? 0) + 1; ms++) {
        const { fromSeq, toSeq } = await records.placeOfTime("a-1", START_MS + ms);
        assert.ok(times.slice(0, fromSeq - 1).every((time) => time < ms));
        assert.ok(times.slice((toSeq ?? lines.length + 1) - 1).every((time) => time >= ms));
        const between = [...firsts].filter((first) => fromSeq <= first && first < (toSeq ?? seq));
        assert.ok(between.length <= 1, `${fromSeq} to ${toSeq}: ${between.length} segments`);
      }
      await close();
    }),
    { numRuns: 30 },
  );
});

test("a page of large segments is short, and still makes progress", async () => {
  const segments = Array.from({ length: 8 }, (_, i) => [2 * i, 2 * i + 1]);
  const { records, lines, close } = historyOf(segments, "x".repeat(100_000));
  const forwards = await records.events("a-1", 0);
  assert.ok(forwards.lines.length >= 2 && forwards.lines.length <= 6, `${forwards.lines.length} lines`);
  const back = await records.eventsBefore("a-1", Number.MAX_SAFE_INTEGER);
  assert.ok(back.lines.length >= 2 && back.lines.length <= 6, `${back.lines.length} lines`);
  assert.equal(back.lines.at(-1), lines.at(-1));
  const huge = historyOf([[0], [1], [2]], "x".repeat(2_000_000));
  assert.equal((await huge.records.events("a-1", 1)).lines.length, 1);
  await close();
  await huge.close();
});

test("a job's result is the text that was kept, and a job that is not there has none", async () => {
  const { records, close } = historyOf([]);
  assert.equal(await records.result("a-1"), "a-1 result_json");
  assert.equal(await records.result("nobody"), null);
  await close();
});

test("events behind the job's last one, in a database that was changed from outside, are not read", async () => {
  const { records, lines, connection, close } = historyOf([[0, 1], [2], [3]]);
  connection.exec("UPDATE jobs SET event_seq = 3");
  assert.deepEqual((await records.events("a-1", 0)).lines, lines.slice(0, 3));
  assert.deepEqual((await records.events("a-1", 3)).lines, []);
  assert.deepEqual((await records.eventsBefore("a-1", Number.MAX_SAFE_INTEGER)).lines, lines.slice(0, 3));
  await close();
});
