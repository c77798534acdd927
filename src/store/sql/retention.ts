// Removal of ended runs and of deleted jobs' remains, in small transactions.

import { type Kysely, type SqlBool, sql, type Transaction } from "kysely";
import type { EndPosition, RemovedRuns, RetentionRecords } from "../../runs/retention-records.ts";
import type { Database } from "./database.ts";
import { deleteJobRows, garbageRecords } from "./garbage.ts";
import { atMost, query } from "./query.ts";
import { isBlobNamed, isRunThere, isSnapshotNamed, isUnused } from "./references.ts";
import type { Schema } from "./schema.generated.ts";

/** Characters of inputs and results deleted in one transaction; at least one run is deleted. */
const REMOVED_CHARS_MAX = 4 * 1024 * 1024;
const BEHIND_ALL_ENDS: EndPosition = { endedAtMs: Number.MAX_SAFE_INTEGER, id: "" };

/** Ended runs that were never launched, the oldest end first. */
const unlaunched = (db: Kysely<Schema>) =>
  db
    .selectFrom("runs")
    .select(["run_id", "finished_at"])
    .where("terminal", "=", sql.lit(1))
    .where("launched", "=", sql.lit(0))
    .orderBy("finished_at")
    .orderBy("run_id");

const unlaunchedPage = query(
  (db, beforeMs: number, endedAtMs: number, runId: string, limit: number) =>
    unlaunched(db)
      .where("finished_at", "<", beforeMs)
      .where(sql<SqlBool>`(finished_at, run_id) > (${endedAtMs}, ${runId})`)
      .limit(atMost(limit)),
  (row): EndPosition => ({ endedAtMs: row.finished_at ?? 0, id: row.run_id }),
);

/** Newest first. */
const endedPage = query(
  (db, endedAtMs: number, jobId: string, limit: number) =>
    db
      .selectFrom("jobs")
      .select(["updated_at", "job_id", "stored_bytes"])
      .where("terminal", "=", sql.lit(1))
      .where(sql<SqlBool>`(updated_at, job_id) < (${endedAtMs}, ${jobId})`)
      .orderBy("updated_at", "desc")
      .orderBy("job_id", "desc")
      .limit(atMost(limit)),
  (row) => ({ endedAtMs: row.updated_at, id: row.job_id, storedBytes: row.stored_bytes }),
);

interface EndedRow {
  readonly jobId: string;
  readonly runId: string;
  readonly definitionId: string | null;
  readonly storedBytes: number;
  readonly chars: number;
}

function oldestEnded(
  db: Transaction<Schema>,
  through: EndPosition,
  limit: number,
): Promise<readonly EndedRow[]> {
  return db
    .selectFrom("jobs as j")
    .leftJoin("runs as r", "r.runtime_job_id", "j.job_id")
    .select(["j.job_id as jobId", "j.run_id as runId", "r.job_id as definitionId"])
    .select("j.stored_bytes as storedBytes")
    .select(
      sql<number>`coalesce(octet_length(j.result_json), 0) + coalesce(octet_length(r.inputs_json), 0)`.as(
        "chars",
      ),
    )
    .where("j.terminal", "=", sql.lit(1))
    .where(sql<SqlBool>`(j.updated_at, j.job_id) <= (${through.endedAtMs}, ${through.id})`)
    .orderBy("j.updated_at")
    .orderBy("j.job_id")
    .limit(limit)
    .execute();
}

function withinChars(runs: readonly EndedRow[]): readonly EndedRow[] {
  let chars = 0;
  const end = runs.findIndex((run, i) => {
    chars += run.chars;
    return i > 0 && chars > REMOVED_CHARS_MAX;
  });
  return end < 0 ? runs : runs.slice(0, end);
}

/**
 * Removes ended runs, which may be the latest ones of their jobs: those jobs then point to the latest remaining run. A
 * job without any counts as ended.
 */
async function deleteRunRows(
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

/** @param runsRemoved called behind the commit in which runs were removed */
export function sqlRetentionRecords(
  database: Database,
  runsRemoved: (runIds: null) => void = () => {},
): RetentionRecords {
  const removing = async (work: (db: Transaction<Schema>) => Promise<RemovedRuns>) => {
    const removed = await database.transaction(work);
    if (removed.count > 0) runsRemoved(null);
    return removed;
  };
  return {
    ...garbageRecords(database),

    endedPage(limit, after) {
      const { endedAtMs, id } = after ?? BEHIND_ALL_ENDS;
      return endedPage.all(database, endedAtMs, id, limit);
    },

    unlaunchedPage: (beforeMs, limit, after) =>
      unlaunchedPage.all(database, beforeMs, after?.endedAtMs ?? 0, after?.id ?? "", limit),

    removeEnded: (through, limit) =>
      removing(async (db) => {
        const runs = withinChars(await oldestEnded(db, through, limit));
        await deleteJobRows(db, runs);
        await deleteRunRows(
          db,
          runs.flatMap(({ runId, definitionId }) => (definitionId === null ? [] : [{ runId, definitionId }])),
        );
        return { count: runs.length, bytes: runs.reduce((sum, run) => sum + run.storedBytes, 0) };
      }),

    removeUnlaunched: (beforeMs, limit) =>
      removing(async (db) => {
        const runs = await unlaunched(db)
          .select("job_id")
          .where("finished_at", "<", beforeMs)
          .limit(limit)
          .execute();
        await deleteRunRows(
          db,
          runs.map((run) => ({ runId: run.run_id, definitionId: run.job_id })),
        );
        return { count: runs.length, bytes: 0 };
      }),

    removeOwn: (limit) =>
      database.transaction(async (db) => {
        const jobs = await db
          .selectFrom("jobs")
          .select(["job_id as jobId", "run_id as runId"])
          .where("terminal", "=", sql.lit(1))
          .where("definition_id", "is", null)
          .orderBy("submitted_at")
          .limit(limit)
          .execute();
        await deleteJobRows(db, jobs);
        return jobs.map((job) => job.jobId);
      }),

    isBlobNamed: (sha256, without) => isBlobNamed(database, sha256, without),
    isSnapshotNamed: (fingerprint, without) => isSnapshotNamed(database, fingerprint, without),
    isRunThere: (runId) => isRunThere(database, runId),
    isUnused: () => isUnused(database),
  };
}

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
