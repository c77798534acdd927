// The reads of a history: forwards, backwards, and by time, over segments of any size.

import assert from "node:assert/strict";
import { type ContractTest, contractOnEach, type OpenDatabase } from "../../../test/support/databases.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { changes, next, progress } from "../../../test/support/journal-records.ts";
import { renderEvent } from "../../engine/event.ts";
import { sqlJobRecords } from "./jobs.ts";

const START_MS = Date.parse("2026-11-21T09:30:00.000Z");

/** A history: the times of its events, in ms since the start, cut into segments. It is its job's, and that of two others. */
async function historyOf(
  { database, journal }: OpenDatabase,
  segments: readonly (readonly number[])[],
  pad = "",
) {
  const name = `a-${++histories}`;
  const lines: string[] = [];
  const jobIds = [`${name}-0`, `${name}-1`, `${name}-2`];
  const empty = { eventLines: [], progress: progress({ eventSeq: 0, resultJson: '"kept"' }) };
  await journal.commit(jobIds.map((jobId) => changes({ jobId, ...empty })));
  for (const [i, times] of segments.entries()) {
    const firstEventSeq = lines.length + 1;
    for (const ms of times) {
      const head = { nowMs: START_MS + ms, type: "log", agentId: "work" };
      const line = renderEvent(head, { message: `${lines.length + 1} pad` });
      lines.push(line.replace("pad", pad));
    }
    const eventLines = lines.slice(firstEventSeq - 1);
    const part = { firstEventSeq, eventLines, progress: progress({ eventSeq: lines.length }) };
    await journal.commit(jobIds.map((jobId) => next(i + 1, { jobId, ...part })));
  }
  return { records: sqlJobRecords(database), jobId: jobIds[1]!, lines };
}

let histories = 0;

const segmentsOfTimes = fc
  .array(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 6 }), { maxLength: 30 })
  .map((segments) => {
    let ms = 0;
    return segments.map((steps) => steps.map((step) => (ms += step)));
  });

contractOnEach("the records of histories", (open) => open, contract);

function contract(test: ContractTest<OpenDatabase>): void {
  test("read from its end backwards, a history is the same as from its beginning", async (open) => {
    await fc.assert(
      fc.asyncProperty(segmentsOfTimes, async (segments) => {
        const { records, jobId, lines } = await historyOf(open, segments);
        const back: string[] = [];
        for (let beforeSeq = Number.MAX_SAFE_INTEGER; ; ) {
          const page = await records.eventsBefore(jobId, beforeSeq);
          if (page.lines.length === 0) break;
          assert.equal(page.lines[0], lines[page.firstSeq - 1]);
          back.unshift(...page.lines);
          beforeSeq = page.firstSeq;
        }
        assert.deepEqual(back, lines);
        // From the middle of a segment as well.
        for (let seq = 1; seq <= lines.length; seq++) {
          assert.equal((await records.eventsBefore(jobId, seq)).lines.at(-1), lines[seq - 2]);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("a time is found between the events before and after it, to within one segment", async (open) => {
    await fc.assert(
      fc.asyncProperty(segmentsOfTimes, async (segments) => {
        const { records, jobId, lines } = await historyOf(open, segments);
        const times = segments.flat();
        const firsts = new Set<number>();
        let seq = 1;
        for (const segment of segments) {
          firsts.add(seq);
          seq += segment.length;
        }
        for (let ms = -1; ms <= (times.at(-1) ?? 0) + 1; ms++) {
          const { fromSeq, toSeq } = await records.placeOfTime(jobId, START_MS + ms);
          assert.ok(times.slice(0, fromSeq - 1).every((time) => time < ms));
          assert.ok(times.slice((toSeq ?? lines.length + 1) - 1).every((time) => time >= ms));
          const between = [...firsts].filter((first) => fromSeq <= first && first < (toSeq ?? seq));
          assert.ok(between.length <= 1, `${fromSeq} to ${toSeq}: ${between.length} segments`);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("a page of large segments is short, and still makes progress", async (open) => {
    const segments = Array.from({ length: 8 }, (_, i) => [2 * i, 2 * i + 1]);
    const { records, jobId, lines } = await historyOf(open, segments, "x".repeat(25_000));
    const forwards = await records.events(jobId, 0);
    assert.ok(forwards.lines.length >= 2 && forwards.lines.length <= 6, `${forwards.lines.length} lines`);
    const back = await records.eventsBefore(jobId, Number.MAX_SAFE_INTEGER);
    assert.ok(back.lines.length >= 2 && back.lines.length <= 6, `${back.lines.length} lines`);
    assert.equal(back.lines.at(-1), lines.at(-1));
    const huge = await historyOf(open, [[0], [1], [2]], "x".repeat(2_000_000));
    assert.equal((await huge.records.events(huge.jobId, 1)).lines.length, 1);
  });

  test("a job's result is the text that was kept, and a job that is not there has none", async (open) => {
    const { records, jobId } = await historyOf(open, []);
    assert.equal(await records.result(jobId), '"kept"');
    assert.equal(await records.result("nobody"), null);
  });

  test("events behind the job's last one, in a database that was changed from outside, are not read", async (open) => {
    const { records, jobId, lines } = await historyOf(open, [[0, 1], [2], [3]]);
    await open.database.transaction((db) =>
      db.updateTable("jobs").set({ event_seq: 3 }).where("job_id", "=", jobId).execute(),
    );
    assert.deepEqual((await records.events(jobId, 0)).lines, lines.slice(0, 3));
    assert.deepEqual((await records.events(jobId, 3)).lines, []);
    assert.deepEqual((await records.eventsBefore(jobId, Number.MAX_SAFE_INTEGER)).lines, lines.slice(0, 3));
  });
}
