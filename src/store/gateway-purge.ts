// Removal of what the gateway does not need any more, in small transactions.

import { type Kysely, sql, type Transaction } from "kysely";
import { deleteRuntimeRows } from "./runtime-rows.ts";
import type { Schema } from "./schema.ts";

/**
 * Removes up to `limit` ended runs of deleted jobs with the runtime's rows, and up to `limit` deleted jobs without runs.
 *
 * @returns whether there was something to remove
 */
export async function purgeDeleted(db: Transaction<Schema>, limit: number): Promise<boolean> {
  const deleted = db
    .selectFrom("job_definitions as d")
    .select("d.job_id")
    .where("d.deleted", "=", sql.lit(1));
  const runs = await db
    .selectFrom("runs as r")
    .select(["r.run_id as runId", "r.runtime_job_id as jobId"])
    .where("r.job_id", "in", deleted)
    .where("r.terminal", "=", 1)
    .limit(limit)
    .execute();
  await deleteRuntimeRows(db, runs);
  if (runs.length > 0) {
    const ids = runs.map((run) => run.runId);
    await db.deleteFrom("runs").where("run_id", "in", ids).execute();
  }
  const { numDeletedRows } = await db
    .deleteFrom("job_definitions")
    .where(
      "job_id",
      "in",
      deleted
        .where(({ not, exists, selectFrom }) =>
          not(exists(selectFrom("runs as r").select("r.run_id").whereRef("r.job_id", "=", "d.job_id"))),
        )
        .limit(limit),
    )
    .executeTakeFirst();
  return runs.length > 0 || numDeletedRows > 0n;
}

/** Removes the oldest idempotency records made before `beforeMs`, at most `limit`; returns how many. */
export async function forgetIdempotency(
  db: Kysely<Schema>,
  beforeMs: number,
  limit: number,
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("idempotency")
    .where(
      sql<boolean>`(scope, key) in (select scope, key from idempotency
        where created_at < ${beforeMs} order by created_at limit ${limit})`,
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
