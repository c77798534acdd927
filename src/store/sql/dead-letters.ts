// The table dead_letters: messages that could not be processed. Every filter has an index that ends in the sort key.

import { sql } from "kysely";
import type { DeadLetter, DeadLetterRecords } from "../../runs/dead-letters.ts";
import { columnsOf } from "./columns.ts";
import type { Database } from "./database.ts";
import {
  atMost,
  BEHIND_ALL_IDS,
  type Db,
  definitionOfRun,
  jobIsThere,
  jobOfRun,
  listQuery,
  pageQuery,
  query,
  rareStatus,
} from "./query.ts";
import type { Schema } from "./schema.generated.ts";

/** Characters of the letters that one pass parses and sends again: it blocks the event loop. */
const WORK_CHARS_MAX = 256 * 1024;

export const letters = columnsOf<Schema["dead_letters"], DeadLetter>({
  deadLetterId: "dead_letter_id",
  agentId: "agent_id",
  reason: "reason",
  attempts: "attempts",
  status: "status",
  createdAtMs: "created_at",
  retriedAtMs: "retried_at",
  messageJson: "message_json",
  changeJson: "change_json",
});

const ofJob = (db: Db, jobId: string) =>
  db
    .selectFrom("dead_letters")
    .where("job_id", "=", jobId)
    .where(({ exists }) => exists(jobIsThere(db, jobId)));

const one = query(
  (db, jobId: string, deadLetterId: string) =>
    ofJob(db, jobId).selectAll().where("dead_letter_id", "=", deadLetterId),
  letters.toRecord,
);

/** Newest first. */
const list = listQuery(
  (db, jobId: string, before: string, limit: number) =>
    ofJob(db, jobId)
      .selectAll()
      .where("dead_letter_id", "<", before)
      .orderBy("dead_letter_id", "desc")
      .limit(atMost(limit)),
  { status: (list, status) => list.where(rareStatus(status)) },
  letters.toRecord,
);

const newestOpen = query(
  (db, jobId: string) =>
    ofJob(db, jobId)
      .select("dead_letter_id")
      .where(rareStatus("open"))
      .orderBy("dead_letter_id", "desc")
      .limit(sql.lit(1)),
  (row) => row.dead_letter_id,
);

const openBetween = pageQuery(
  (db, jobId: string, after: string, through: string, limit: number) =>
    ofJob(db, jobId)
      .selectAll()
      .where(rareStatus("open"))
      .where("dead_letter_id", ">", after)
      .where("dead_letter_id", "<=", through)
      .orderBy("dead_letter_id")
      .limit(atMost(limit)),
  letters.toRecord,
  WORK_CHARS_MAX,
);

/** Newest first, over all runs. */
const listOfRuns = listQuery(
  (db, status: string, before: string, limit: number) =>
    db
      .selectFrom("dead_letters as l")
      .innerJoin("jobs as j", "j.job_id", "l.job_id")
      .innerJoin("runs as r", "r.runtime_job_id", "l.job_id")
      .selectAll("l")
      .select("r.run_id")
      .where(({ exists }) => exists(definitionOfRun(db)))
      .where("l.status", "=", status)
      .where("l.dead_letter_id", "<", before)
      .orderBy("l.dead_letter_id", "desc")
      .limit(atMost(limit)),
  {
    reason: (list, reason) => list.where("l.reason", "=", reason),
    runId: (list, runId) => list.where("l.job_id", "=", jobOfRun(runId)),
    jobId: (list, jobId) => list.where("r.job_id", "=", jobId),
  },
  (row) => ({ runId: row.run_id, letter: letters.toRecord(row) }),
);

export function sqlDeadLetterRecords(database: Database): DeadLetterRecords {
  return {
    deadLetters: (jobId, { status, limit, before }) =>
      list(database, { status }, jobId, before ?? BEHIND_ALL_IDS, limit),
    deadLetter: (jobId, deadLetterId) => one.first(database, jobId, deadLetterId),
    lettersOfRuns: ({ status, reason, runId, jobId, limit, before }) =>
      listOfRuns(database, { reason, runId, jobId }, status, before ?? BEHIND_ALL_IDS, limit),
    newestOpenLetter: (jobId) => newestOpen.first(database, jobId),
    openLetters: async (jobId, { after, through, limit }) =>
      (await openBetween(database, jobId, after, through, limit)).rows,
  };
}
