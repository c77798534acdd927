// The table events: the histories of the runtime's jobs, in segments of consecutive lines. Those of brief jobs are in the
// jobs' own rows, as one segment (brief-jobs.ts). The journal writes them.
//
// Pages of a history have only events that are on disk: who continues after the last one misses none after a power cut.

import { sql } from "kysely";
import type { EventPage, JobRecords } from "../../runs/job-records.ts";
import type { Database } from "./database.ts";
import { firstTimeMs, TIME_CHARS, unpackLines } from "./packed-lines.ts";
import { atMost, type Db, pageQuery, query } from "./query.ts";

/** Segments of a page: a worker that prints rarely makes one per line. */
const SEGMENTS_PER_PAGE = 128;
const SEGMENTS_PER_LOOK_BACK = 4;
/** Characters of a page of segments, unless a single one has more: reading them blocks the event loop. */
const PAGE_CHARS_MAX = 128 * 1024;

interface Segment {
  readonly firstSeq: number;
  readonly lines: readonly string[];
}

const toSegment = (row: { readonly first_seq: number; readonly lines: string }): Segment => ({
  firstSeq: row.first_seq,
  lines: unpackLines(row.lines),
});

/** Null when the job was removed: its events are then deleted in batches, which no reader may see. */
const eventSeqOf = (db: Db, jobId: string) =>
  db.selectFrom("jobs as j").select("j.event_seq").where("j.job_id", "=", jobId);

/** A segment after the job's last event exists only if the database was modified by another program. */
const history = (db: Db, jobId: string) =>
  db.selectFrom("events").where("job_id", "=", jobId).where("first_seq", "<=", eventSeqOf(db, jobId));

const segmentsBefore = pageQuery(
  (db, jobId: string, beforeSeq: number, limit: number) =>
    history(db, jobId)
      .select(["first_seq", "lines"])
      .where("first_seq", "<", beforeSeq)
      .orderBy("first_seq", "desc")
      .limit(atMost(limit)),
  toSegment,
  PAGE_CHARS_MAX,
);

/** From the segment that holds the event `seq`. */
const segmentsFrom = pageQuery(
  (db, jobId: string, seq: number) => {
    const holder = db
      .selectFrom("events")
      .select((eb) => eb.fn.coalesce(eb.fn.max("first_seq"), eb.lit(0)).as("from_seq"))
      .where("job_id", "=", jobId)
      .where("first_seq", "<=", seq);
    return history(db, jobId)
      .select(["first_seq", "lines"])
      .where("first_seq", ">=", holder)
      .orderBy("first_seq")
      .limit(sql.lit(SEGMENTS_PER_PAGE));
  },
  toSegment,
  PAGE_CHARS_MAX,
);

/** The last segment that begins at `seq` or before it, and when. */
const segmentAt = query(
  (db, jobId: string, seq: number) =>
    history(db, jobId)
      .select("first_seq")
      .select(sql<string>`substr(lines, 1, ${sql.lit(TIME_CHARS)})`.as("start"))
      .where("first_seq", "<=", seq)
      .orderBy("first_seq", "desc")
      .limit(sql.lit(1)),
  (row) => ({ firstSeq: row.first_seq, timeMs: firstTimeMs(row.start) }),
);

/** All events of a brief job; null for another. */
const briefHistory = query(
  (db, jobId: string) =>
    db
      .selectFrom("jobs")
      .select("brief_lines")
      .where("job_id", "=", jobId)
      .where("brief_lines", "is not", null),
  ({ brief_lines: lines }) => ({ firstSeq: 1, lines: unpackLines(lines!), timeMs: firstTimeMs(lines!) }),
);

async function eventsBefore(
  database: Database,
  jobId: string,
  beforeSeq: number,
  segmentsMax: number,
): Promise<EventPage> {
  const brief = await briefHistory.first(database, jobId);
  const rows =
    brief === null
      ? (await segmentsBefore(database, jobId, beforeSeq, segmentsMax)).rows
      : [brief].filter(({ firstSeq }) => firstSeq < beforeSeq);
  const firstSeq = rows.at(-1)?.firstSeq ?? beforeSeq;
  const lines = rows.toReversed().flatMap((segment) => segment.lines);
  return { firstSeq, lines: lines.slice(0, beforeSeq - firstSeq) };
}

/** Newest first. */
export async function newestEvents(database: Database, jobId: string, count: number): Promise<string[]> {
  const newest: string[] = [];
  let before = Number.MAX_SAFE_INTEGER;
  while (newest.length < count) {
    const { firstSeq, lines } = await eventsBefore(database, jobId, before, SEGMENTS_PER_LOOK_BACK);
    if (lines.length === 0) break;
    newest.push(...lines.slice(newest.length - count).reverse());
    before = firstSeq;
  }
  return newest;
}

export function eventReads(database: Database) {
  return {
    async events(jobId, afterSeq) {
      const wanted = afterSeq + 1;
      const brief = await briefHistory.first(database, jobId);
      const rows = brief === null ? (await segmentsFrom(database, jobId, wanted)).rows : [brief];
      const firstSeq = rows[0]?.firstSeq ?? wanted;
      const lines = rows.flatMap((segment) => segment.lines);
      await database.durableJob(jobId);
      return { firstSeq: wanted, lines: lines.slice(wanted - firstSeq) };
    },

    async eventsBefore(jobId, beforeSeq) {
      const page = await eventsBefore(database, jobId, beforeSeq, SEGMENTS_PER_PAGE);
      await database.durableJob(jobId);
      return page;
    },

    /** A binary search by the first event of the middle segment. */
    async placeOfTime(jobId, timeMs) {
      const brief = await briefHistory.first(database, jobId);
      let fromSeq = 1;
      let toSeq: number | null = null;
      // Segments that begin at `low` or before it are known to begin earlier than the time.
      let low = 0;
      let middle = Number.MAX_SAFE_INTEGER;
      for (;;) {
        const segment = brief ?? (await segmentAt.first(database, jobId, middle));
        if (segment === null) return { fromSeq, toSeq };
        if (segment.timeMs >= timeMs) {
          toSeq = segment.firstSeq;
        } else {
          fromSeq = segment.firstSeq;
          low = middle;
        }
        if (toSeq === null || toSeq - low <= 1) return { fromSeq, toSeq };
        middle = low + Math.floor((toSeq - low) / 2);
      }
    },
  } satisfies Partial<JobRecords>;
}
