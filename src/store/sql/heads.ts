// How far the histories are that another program may be adding to: of jobs, of runs that ended before their launch, and of
// operations. One statement, whatever their number.

import { sql } from "kysely";
import type { JobHead, JobHeads } from "../../cluster/places.ts";
import type { Database } from "./database.ts";
import { query } from "./query.ts";

const ownerOfOpen = query(
  (db, jobId: string) =>
    db.selectFrom("jobs").select("owner").where("job_id", "=", jobId).where("terminal", "=", sql.lit(0)),
  ({ owner }) => owner,
);

const runOfJob = query(
  (db, jobId: string) => db.selectFrom("runs").select("run_id").where("runtime_job_id", "=", jobId),
  (row) => row.run_id,
);

export function sqlJobHeads(database: Database): JobHeads {
  return {
    ownerOf: (jobId) => ownerOfOpen.first(database, jobId),

    runOf: (jobId) => runOfJob.first(database, jobId),

    async heads(ids) {
      if (ids.length === 0) return new Map();
      const none = sql<string | null>`NULL`.as("owner");
      const { sql: text, parameters } = database.kysely
        .selectFrom("jobs")
        .select(["job_id as id", "owner", "event_seq as seq", "terminal"])
        .where("job_id", "in", ids)
        .unionAll((db) =>
          db
            .selectFrom("runs")
            .select(["runtime_job_id as id", none, sql.lit(1).as("seq"), "terminal"])
            .where("runtime_job_id", "in", ids)
            .where("launched", "=", sql.lit(0))
            .where("terminal", "=", sql.lit(1)),
        )
        .unionAll((db) =>
          db
            .selectFrom("operations")
            .select(["operation_id as id", none, "event_seq as seq", "terminal"])
            .where("operation_id", "in", ids),
        )
        .compile();
      const rows = await database.read<{ id: string; owner: string | null; seq: number; terminal: number }>(
        text,
        parameters,
      );
      return new Map(
        rows
          .filter(({ seq }) => seq > 0)
          .map(({ id, owner, seq, terminal }): [string, JobHead] => [
            id,
            { owner, seq, isEnd: terminal === 1 },
          ]),
      );
    },
  };
}
