// Fills the store of a program that does not run as years of use would: with copies of a run that has ended, each with
// all rows that a run has.

import { DatabaseSync } from "node:sqlite";
import { databaseFile } from "../src/store/home.ts";

interface Copied {
  readonly table: string;
  /** The column that names the runtime job whose rows are copied. */
  readonly key: string;
  /** What a copy has instead; the rest is as it was. */
  readonly changed: Readonly<Record<string, string>>;
}

/** Ids and times of the n-th copy: in order, before those of the program's own, and others for each number of copies. */
const NEW_JOB = "'seeded-' || printf('%013d%013d', ?1, n)";
const NEW_RUN = "'run_' || printf('%013d%013d', ?1, n)";
const at = (column: string) => ({ [column]: `${column} - 1000000000 + n * 100` });

const COPIED: readonly Copied[] = [
  { table: "job_sources", key: "job_id", changed: { job_id: NEW_JOB } },
  { table: "events", key: "job_id", changed: { job_id: NEW_JOB } },
  { table: "agents", key: "job_id", changed: { job_id: NEW_JOB } },
  {
    table: "jobs",
    key: "job_id",
    changed: {
      job_id: NEW_JOB,
      run_id: NEW_RUN,
      ...at("submitted_at"),
      ...at("started_at"),
      ...at("updated_at"),
    },
  },
  {
    table: "runs",
    key: "runtime_job_id",
    changed: {
      run_id: NEW_RUN,
      runtime_job_id: NEW_JOB,
      ...at("created_at"),
      ...at("started_at"),
      ...at("finished_at"),
      ...at("updated_at"),
    },
  },
];

/** Copies the run `count` times; it must be the newest one of the home, and have ended. */
export function seedEnded(home: string, count: number): void {
  const database = new DatabaseSync(databaseFile(home));
  const row = database.prepare("SELECT runtime_job_id AS id FROM runs ORDER BY run_id DESC LIMIT 1").get();
  database.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; BEGIN");
  for (const { table, key, changed } of COPIED) {
    const columns = database
      .prepare(`SELECT name FROM pragma_table_info('${table}')`)
      .all()
      .map(({ name }) => String(name));
    // A row without a checksum counts as one from before there were any.
    const values = columns.map((name) => changed[name] ?? (name.endsWith("checksum") ? "NULL" : name));
    database
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
         INSERT INTO ${table} (${columns.join(", ")})
         SELECT ${values.join(", ")} FROM numbers, (SELECT * FROM ${table} WHERE ${key} = ?2)`,
      )
      .run(count, String(row?.id));
  }
  database.exec("COMMIT; PRAGMA journal_mode = WAL; PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}
