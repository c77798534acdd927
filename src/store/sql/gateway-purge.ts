// Removal of what the gateway does not need any more, in small transactions.

import { type Kysely, sql, type Transaction } from "kysely";
import { deleteJobRows } from "./runtime-rows.ts";
import type { Schema } from "./schema.ts";

/**
 * Removes up to `limit` ended runs of deleted jobs with the runtime's jobs, and up to `limit` deleted jobs without runs.
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
  await deleteJobRows(db, runs);
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

/**
 * Removes ended runs that may be the latest ones of their jobs; those jobs then have the latest of what is left. A job
 * without any is no open one: what it ran has ended.
 */
export async function deleteRunRows(
  db: Transaction<Schema>,
  runs: readonly { readonly runId: string; readonly definitionId: string }[],
): Promise<void> {
  if (runs.length === 0) return;
  const ids = runs.map(({ runId }) => runId);
  await db.deleteFrom("runs").where("run_id", "in", ids).execute();
  await db
    .updateTable("job_definitions as d")
    .set((eb) => {
      const latest = eb
        .selectFrom("runs as r")
        .whereRef("r.job_id", "=", "d.job_id")
        .orderBy("r.run_id", "desc")
        .limit(sql.lit(1));
      return {
        latest_run_id: latest.select("r.run_id"),
        latest_terminal: eb.fn.coalesce(latest.select("r.terminal"), sql.lit(1)),
      };
    })
    .where("d.job_id", "in", [...new Set(runs.map(({ definitionId }) => definitionId))])
    .where("d.latest_run_id", "in", ids)
    .execute();
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
