// Which rows still reference what is on disk: the content of a blob, the snapshot of a bundle, the folders of a run.

import { type SqlBool, sql } from "kysely";
import type { EndPosition } from "../../runs/retention-records.ts";
import { CONTENT_TABLES } from "../content-tables.ts";
import type { Database } from "./database.ts";
import { BEHIND_ALL_IDS, query } from "./query.ts";

const ARTIFACTS_PER_PAGE = 500;
/** Before every end. */
const BEFORE_ALL: EndPosition = { endedAtMs: -1, id: "" };
const one = sql.lit(1).as("one");

const artifactOf = query(
  (db, sha256: string) =>
    db.selectFrom("artifacts").select(one).where("sha256", "=", sha256).limit(sql.lit(1)),
  () => true,
);

/** Artifacts of a content, and whether they stay when the jobs that ended up to a position are removed. */
const artifactsOf = query(
  (db, sha256: string, runId: string, artifactId: string, endedAtMs: number, jobId: string) =>
    db
      .selectFrom("artifacts as a")
      .leftJoin("jobs as j", "j.job_id", "a.job_id")
      .select(["a.run_id", "a.artifact_id"])
      .select(
        sql<number>`CASE WHEN j.job_id IS NULL OR (j.terminal = 1 AND (j.updated_at, j.job_id) <= (${endedAtMs}, ${jobId}))
          THEN 0 ELSE 1 END`.as("stays"),
      )
      .where("a.sha256", "=", sha256)
      .where(sql<SqlBool>`(a.run_id, a.artifact_id) < (${runId}, ${artifactId})`)
      .orderBy("a.run_id", "desc")
      .orderBy("a.artifact_id", "desc")
      .limit(sql.lit(ARTIFACTS_PER_PAGE)),
  (row) => ({ runId: row.run_id, artifactId: row.artifact_id, stays: row.stays === 1 }),
);

/** Open jobs and ended ones have an index each, and all of them together none. */
const usersOfSnapshot = query(
  (db, fingerprint: string, endedAtMs: number, jobId: string, exceptBlueprintId: string) => {
    const jobs = db.selectFrom("jobs").select(one).where("bundle_fingerprint", "=", fingerprint);
    return db
      .selectFrom("bundles")
      .select(one)
      .where("fingerprint", "=", fingerprint)
      .unionAll(db.selectFrom("job_definitions").select(one).where("bundle_fingerprint", "=", fingerprint))
      .unionAll(
        db
          .selectFrom("blueprints")
          .select(one)
          .where("fingerprint", "=", fingerprint)
          .where("blueprint_id", "<>", exceptBlueprintId),
      )
      .unionAll(jobs.where("terminal", "=", sql.lit(0)))
      .unionAll(
        jobs
          .where("terminal", "=", sql.lit(1))
          .where(sql<SqlBool>`(updated_at, job_id) > (${endedAtMs}, ${jobId})`),
      )
      .limit(sql.lit(1));
  },
  () => true,
);

const runsNamed = query(
  (db, runId: string) =>
    db
      .selectFrom("jobs")
      .select(one)
      .where("run_id", "=", runId)
      .unionAll(db.selectFrom("runs").select(one).where("run_id", "=", runId))
      .limit(sql.lit(1)),
  () => true,
);

/** Whether an artifact has this content. @param without passes over jobs that ended then or before */
export async function isBlobNamed(
  database: Database,
  sha256: string,
  without: EndPosition | null,
): Promise<boolean> {
  if (without === null) return (await artifactOf.first(database, sha256)) ?? false;
  let after = { runId: BEHIND_ALL_IDS, artifactId: "" };
  for (;;) {
    const { runId, artifactId } = after;
    const page = await artifactsOf.all(database, sha256, runId, artifactId, without.endedAtMs, without.id);
    if (page.some(({ stays }) => stays)) return true;
    const last = page.at(-1);
    if (last === undefined) return false;
    after = last;
  }
}

/**
 * Whether a bundle, a durable job, a runtime job or a blueprint has this snapshot.
 *
 * @param without passes over jobs that ended then or before
 * @param exceptBlueprintId passes over this blueprint
 */
export async function isSnapshotNamed(
  database: Database,
  fingerprint: string,
  without: EndPosition | null = null,
  exceptBlueprintId = "",
): Promise<boolean> {
  const { endedAtMs, id } = without ?? BEFORE_ALL;
  return (await usersOfSnapshot.first(database, fingerprint, endedAtMs, id, exceptBlueprintId)) ?? false;
}

/** Whether there is a run of this id, in the runtime or in the gateway. */
export async function isRunThere(database: Database, runId: string): Promise<boolean> {
  return (await runsNamed.first(database, runId)) ?? false;
}

/** Of these ids those of runs that are there; some hundreds at a time. */
export async function runsThere(database: Database, runIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (runIds.length === 0) return new Set();
  const { sql: text, parameters } = database.kysely
    .selectFrom("jobs")
    .select("run_id")
    .where("run_id", "in", runIds)
    .unionAll((db) => db.selectFrom("runs").select("run_id").where("run_id", "in", runIds))
    .compile();
  const rows = await database.read<{ run_id: string }>(text, parameters);
  return new Set(rows.map(({ run_id: runId }) => runId));
}

/** Whether the database has nothing yet that files could belong to. */
export async function isUnused(database: Database): Promise<boolean> {
  for (const table of Object.keys(CONTENT_TABLES)) {
    const rows = await database.read(`SELECT 1 AS one FROM ${table} LIMIT 1`, []);
    if (rows.length > 0) return false;
  }
  return true;
}
