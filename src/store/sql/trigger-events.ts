// The tables trigger_events and event_matches.

import { sql, type Transaction } from "kysely";
import type { Page } from "../../lib/page.ts";
import type {
  EventMatch,
  EventRecords,
  EventWrites,
  MatchedEvent,
  TriggerEvent,
} from "../../schedules/event-records.ts";
import type { Rule } from "../../schedules/records.ts";
import { columnsOf, flag } from "./columns.ts";
import type { Database } from "./database.ts";
import {
  atMost,
  command,
  type Db,
  insertion,
  listed,
  listQuery,
  pageQuery,
  query,
  type Session,
} from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const events = columnsOf<Schema["trigger_events"], TriggerEvent>({
  seq: "seq",
  eventId: "event_id",
  type: "type",
  source: "source",
  payloadJson: "payload_json",
  receivedAtMs: "received_at",
  depth: "depth",
});

const matches = columnsOf<Schema["event_matches"], EventMatch>({
  seq: "seq",
  scheduleId: "schedule_id",
  skipped: "skipped",
  runId: "run_id",
  reason: "reason",
  isWaiting: flag("waiting"),
});

/** Of a batch. */
const WAITING_CHARS_MAX = 4 * 1024 * 1024;
/** What schedules have made of the events of a page: an event may have 1,000 of them. */
const PAGE_MATCHES_MAX = 5_000;

const byId = query(
  (db, eventId: string) => db.selectFrom("trigger_events").selectAll().where("event_id", "=", eventId),
  events.toRecord,
);

const list = listQuery(
  (db, afterSeq: number, limit: number) =>
    db
      .selectFrom("trigger_events")
      .selectAll()
      .where("seq", "<", afterSeq)
      .orderBy("seq", "desc")
      .limit(atMost(limit)),
  {
    type: (rows, type) => rows.where("type", "=", type),
    source: (rows, source) => rows.where("source", "=", source),
  },
  events.toRecord,
);

/** @param seqsJson a list. @returns those of the newest events first */
const matchesOf = query(
  (db, seqsJson: string, limit: number) =>
    db
      .selectFrom("event_matches")
      .selectAll()
      .where("seq", "in", listed<number>(db, seqsJson, "bigint"))
      .orderBy("seq", "desc")
      .orderBy("schedule_id")
      .limit(atMost(limit)),
  matches.toRecord,
);

const depthOf = query(
  (db, runId: string) =>
    db
      .selectFrom("event_matches as m")
      .innerJoin("trigger_events as e", "e.seq", "m.seq")
      .select(({ fn }) => fn.max("e.depth").as("depth"))
      .where("m.run_id", "=", runId)
      .where("m.run_id", "is not", null),
  (row): number | null => row.depth,
);

const listening = (db: Db, type: string) =>
  db
    .selectFrom("schedules")
    .where("event_type", "=", type)
    .where("status", "in", [sql.lit("active"), sql.lit("paused")]);

const listeners = query(
  (db, type: string) =>
    listening(db, type).select(["schedule_id", "rule_json", "revision"]).orderBy("schedule_id"),
  (row) => ({ scheduleId: row.schedule_id, rule: JSON.parse(row.rule_json) as Rule, revision: row.revision }),
);

const countListeners = query(
  (db, type: string) => listening(db, type).select((eb) => eb.fn.countAll<number>().as("count")),
  (row) => Number(row.count),
);

const waiting = (db: Db, scheduleId: string) =>
  db
    .selectFrom("event_matches as m")
    .where("m.schedule_id", "=", scheduleId)
    .where("m.waiting", "=", sql.lit(1))
    .orderBy("m.seq");

const waitingEvents = pageQuery(
  (db, scheduleId: string, limit: number) =>
    waiting(db, scheduleId)
      .innerJoin("trigger_events as e", "e.seq", "m.seq")
      .selectAll("e")
      .limit(atMost(limit)),
  events.toRecord,
  WAITING_CHARS_MAX,
);

const countWaiting = query(
  (db, maximum: number) =>
    db
      .selectFrom(
        db
          .selectFrom("event_matches")
          .select("seq")
          .where("waiting", "=", sql.lit(1))
          .limit(atMost(maximum))
          .as("waiting"),
      )
      .select((eb) => eb.fn.countAll<number>().as("count")),
  (row) => Number(row.count),
);

const waitingSeqs = query(
  (db, scheduleId: string, limit: number) => waiting(db, scheduleId).select("m.seq").limit(atMost(limit)),
  (row) => row.seq,
);

const lastSeq = query(
  (db) => db.selectFrom("trigger_events").select("seq").orderBy("seq", "desc").limit(1),
  (row) => row.seq,
);

/** @param found newest first; fewer are returned when they have too many matches together, but at least one */
async function withMatches(on: Session, { rows, isCut }: Page<TriggerEvent>): Promise<Page<MatchedEvent>> {
  if (rows.length === 0) return { rows: [], isCut };
  const read = await matchesOf.all(on, JSON.stringify(rows.map(({ seq }) => seq)), PAGE_MATCHES_MAX + 1);
  const lastSeq = read.length > PAGE_MATCHES_MAX ? read.at(-1)!.seq : 0;
  const whole = rows.filter(({ seq }, i) => i === 0 || seq > lastSeq);
  const bySeq = Map.groupBy(read, ({ seq }) => seq);
  return {
    rows: whole.map((event) => ({ ...event, matches: bySeq.get(event.seq) ?? [] })),
    isCut: isCut || whole.length < rows.length,
  };
}

async function matchedEvent(on: Session, eventId: string): Promise<MatchedEvent | null> {
  const event = await byId.first(on, eventId);
  return event === null ? null : (await withMatches(on, { rows: [event], isCut: false })).rows[0]!;
}

export function eventReads(database: Database): EventRecords {
  return {
    event: (eventId) => matchedEvent(database, eventId),
    async events({ type, source, limit, afterSeq }) {
      const after = afterSeq ?? Number.MAX_SAFE_INTEGER;
      return withMatches(database, await list(database, { type, source }, after, limit));
    },
    depthOf: (runId) => depthOf.first(database, runId),
    listeners: (type) => listeners.all(database, type),
    waitingEvents: async (scheduleId, limit) => (await waitingEvents(database, scheduleId, limit)).rows,
    countWaiting: async (maximum) => (await countWaiting.first(database, maximum)) ?? 0,
    forgetEvents: (beforeMs, keptMax, limit) =>
      database.transaction((db) => forgetEvents(db, beforeMs, keptMax, limit)),
  };
}

/** One that came while the clock was ahead keeps later ones until its own time, or until there are too many. */
async function forgetEvents(
  db: Transaction<Schema>,
  beforeMs: number,
  keptMax: number,
  limit: number,
): Promise<number> {
  const keptFrom = ((await lastSeq.first(db)) ?? 0) - keptMax;
  const oldest = await db
    .selectFrom("trigger_events as e")
    .select(["e.seq", "e.received_at"])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("event_matches as m")
            .select("m.seq")
            .whereRef("m.seq", "=", "e.seq")
            .where("m.waiting", "=", sql.lit(1)),
        ),
      ),
    )
    .orderBy("e.seq")
    .limit(limit)
    .execute();
  const kept = oldest.findIndex(({ seq, received_at: at }) => seq > keptFrom && at >= beforeMs);
  const gone = (kept < 0 ? oldest : oldest.slice(0, kept)).map(({ seq }) => seq);
  if (gone.length === 0) return 0;
  await db.deleteFrom("event_matches").where("seq", "in", gone).execute();
  await db.deleteFrom("trigger_events").where("seq", "in", gone).execute();
  return gone.length;
}

const insertEvent = insertion("trigger_events");
const insertMatch = insertion("event_matches");
const settleWaiting = command(
  (db, scheduleId: string, throughSeq: number, runId: string | null, reason: string | null) =>
    db
      .updateTable("event_matches")
      .set({ waiting: 0, run_id: runId, reason })
      .where("schedule_id", "=", scheduleId)
      .where("waiting", "=", sql.lit(1))
      .where("seq", "<=", throughSeq),
);

export function eventWrites(db: Transaction<Schema>): EventWrites {
  return {
    event: (eventId) => matchedEvent(db, eventId),
    listeners: (type) => listeners.all(db, type),
    countListeners: async (type) => (await countListeners.first(db, type)) ?? 0,
    async insertEvent(event) {
      const inserted = { ...event, seq: ((await lastSeq.first(db)) ?? 0) + 1 };
      await insertEvent(db, events.toRow(inserted));
      return inserted;
    },
    insertMatch: (match) => insertMatch(db, matches.toRow(match)),
    waitingSeqs: (scheduleId, limit) => waitingSeqs.all(db, scheduleId, limit),
    settleWaiting: async (scheduleId, throughSeq, { runId, reason }) =>
      void (await settleWaiting(db, scheduleId, throughSeq, runId, reason)),
  };
}
