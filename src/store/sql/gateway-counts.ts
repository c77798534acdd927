// RecordCounter with Kysely: each count stops at its maximum, and reads an index without the rows behind it.

import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import type { JobStatus } from "../../engine/journal.ts";
import type { RecordCounter, RecordCounts } from "../../launch/records.ts";
import { limitHole, type ReusableQuery, reusable } from "./reusable-query.ts";
import type { Database, Schema } from "./schema.ts";

const statuses = ["pending", "queued", "running", "paused", "completed", "failed", "cancelled"] as const;

export class SqlRecordCounter implements RecordCounter {
  readonly #counts: ReusableQuery<Readonly<Record<string, number | string | null>>>;

  constructor(database: Database) {
    this.#counts = reusable(database, countQuery(database.kysely));
  }

  async count(maximum: number): Promise<RecordCounts> {
    const [row = {}] = await this.#counts(maximum);
    const runs = statuses.map((status) => [status, Number(row[status])] as const);
    return {
      jobs: Number(row.jobs),
      jobsOpen: Number(row.jobs_open),
      runs: Object.fromEntries(runs) as Record<JobStatus, number>,
    };
  }
}

function countQuery(db: Kysely<Schema>) {
  const one = sql.lit(1).as("one");
  // Written out, because SQLite chooses a partial index before it sees arguments.
  const jobs = db.selectFrom("job_definitions").select(one).where("deleted", "=", sql.lit(0));
  const runs = db.selectFrom("runs").select(one);
  const counts = [
    capped(db, jobs).as("jobs"),
    capped(db, jobs.where("latest_terminal", "=", sql.lit(0))).as("jobs_open"),
    ...statuses.map((status) => capped(db, runs.where("status", "=", status)).as(status)),
  ];
  return db.selectNoFrom(counts);
}

function capped<Table extends keyof Schema>(
  db: Kysely<Schema>,
  rows: SelectQueryBuilder<Schema, Table, { one: number }>,
) {
  return db
    .selectFrom(rows.limit(limitHole(0)).as("some"))
    .select(({ fn }) => fn.countAll<number | string>().as("count"));
}
