// RetentionRecords with Kysely. Reads are compiled once; removals are small transactions.

import { type Kysely, type SqlBool, sql, type Transaction } from "kysely";
import type {
  EndedRun,
  EndPosition,
  FileGarbage,
  RemovedRuns,
  RetentionRecords,
} from "../../runs/retention-records.ts";
import { deleteRunRows } from "./gateway-purge.ts";
import { hole, limitHole, reusable } from "./reusable-query.ts";
import { deleteJobRows, deleteParts } from "./runtime-rows.ts";
import type { Database, Schema } from "./schema.ts";

/** Characters of inputs and results that go in one transaction; the first run goes whatever it has. */
const REMOVED_CHARS_MAX = 4 * 1024 * 1024;
const NAMINGS_PER_PAGE = 500;
const BEHIND_ALL: EndPosition = { endedAtMs: Number.MAX_SAFE_INTEGER, id: "" };

export class SqlRetentionRecords implements RetentionRecords {
  readonly #database: Database;
  readonly #reads: ReturnType<typeof compileReads>;

  constructor(database: Database) {
    this.#database = database;
    this.#reads = compileReads(database);
  }

  async endedPage(limit: number, after: EndPosition | null): Promise<readonly EndedRun[]> {
    const { endedAtMs, id } = after ?? BEHIND_ALL;
    const rows = await this.#reads.ended(endedAtMs, id, limit);
    return rows.map((row) => ({
      endedAtMs: row.updated_at,
      id: row.job_id,
      storedBytes: row.stored_bytes,
    }));
  }

  async unlaunchedPage(
    beforeMs: number,
    limit: number,
    after: EndPosition | null,
  ): Promise<readonly EndPosition[]> {
    const rows = await this.#reads.unlaunched(beforeMs, after?.endedAtMs ?? 0, after?.id ?? "", limit);
    return rows.map((row) => ({ endedAtMs: row.finished_at ?? 0, id: row.run_id }));
  }

  removeEnded(through: EndPosition, limit: number): Promise<RemovedRuns> {
    return this.#database.transaction(async (db) => {
      const runs = withinChars(await oldestEnded(db, through, limit));
      await deleteJobRows(db, runs);
      await deleteRunRows(
        db,
        runs.flatMap(({ runId, definitionId }) => (definitionId === null ? [] : [{ runId, definitionId }])),
      );
      return { count: runs.length, bytes: runs.reduce((sum, run) => sum + run.storedBytes, 0) };
    });
  }

  removeUnlaunched(beforeMs: number, limit: number): Promise<RemovedRuns> {
    return this.#database.transaction(async (db) => {
      const runs = await unlaunched(db)
        .select("job_id as definitionId")
        .where("finished_at", "<", beforeMs)
        .limit(limit)
        .execute();
      await deleteRunRows(
        db,
        runs.map((run) => ({ runId: run.run_id, definitionId: run.definitionId })),
      );
      return { count: runs.length, bytes: 0 };
    });
  }

  removeOwn(limit: number): Promise<readonly string[]> {
    return this.#database.transaction(async (db) => {
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
    });
  }

  async removeParts(isOver: () => boolean): Promise<boolean> {
    // Asked outside of a transaction first: there is nothing most of the time.
    if ((await this.#reads.removedJob()).length === 0) return false;
    return this.#database.transaction((db) => deleteParts(db, isOver));
  }

  async fileGarbage(limit: number, after: FileGarbage | null): Promise<readonly FileGarbage[]> {
    const rows = await this.#reads.fileGarbage(after?.kind ?? "", after?.name ?? "", limit);
    return rows as readonly FileGarbage[];
  }

  async forgetGarbage(garbage: readonly FileGarbage[]): Promise<void> {
    if (garbage.length === 0) return;
    await this.#database.transaction(async (db) => {
      for (const kind of ["blob", "run"] as const) {
        const names = garbage.filter((one) => one.kind === kind).map(({ name }) => name);
        if (names.length === 0) continue;
        await db.deleteFrom("garbage").where("kind", "=", kind).where("name", "in", names).execute();
      }
    });
  }

  async isBlobNamed(sha256: string, without: EndPosition | null): Promise<boolean> {
    if (without === null) return (await this.#reads.blobNaming(sha256)).length > 0;
    let after = { runId: BEHIND_ALL_TEXTS, artifactId: "" };
    for (;;) {
      const namings = await this.#reads.blobNamings(
        sha256,
        after.runId,
        after.artifactId,
        without.endedAtMs,
        without.id,
      );
      if (namings.some(({ stays }) => stays === 1)) return true;
      const last = namings.at(-1);
      if (last === undefined) return false;
      after = { runId: last.run_id, artifactId: last.artifact_id };
    }
  }

  async isSnapshotNamed(fingerprint: string, without: EndPosition | null): Promise<boolean> {
    const { endedAtMs, id } = without ?? { endedAtMs: -1, id: "" };
    return (await this.#reads.snapshotNaming(fingerprint, endedAtMs, id)).length > 0;
  }

  async isRunThere(runId: string): Promise<boolean> {
    return (await this.#reads.runNaming(runId)).length > 0;
  }
}

/** Sorts behind every id. */
const BEHIND_ALL_TEXTS = "\u{10ffff}";

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

/** Ended runs that the runtime never had, the oldest end first. */
function unlaunched(db: Kysely<Schema>) {
  return db
    .selectFrom("runs")
    .select(["run_id", "finished_at"])
    .where("terminal", "=", sql.lit(1))
    .where("launched", "=", sql.lit(0))
    .orderBy("finished_at")
    .orderBy("run_id");
}

/** Arguments in the order of their holes. */
function compileReads(database: Database) {
  const db = database.kysely;
  const one = sql.lit(1).as("one");
  const named = hole<string>(0);
  const ended = db
    .selectFrom("jobs")
    .select(["updated_at", "job_id", "stored_bytes"])
    .where("terminal", "=", sql.lit(1))
    .where(sql<SqlBool>`(updated_at, job_id) < (${hole(0)}, ${hole(1)})`)
    .orderBy("updated_at", "desc")
    .orderBy("job_id", "desc")
    .limit(limitHole(2));
  const unlaunchedPage = unlaunched(db)
    .where("finished_at", "<", hole<number>(0))
    .where(sql<SqlBool>`(finished_at, run_id) > (${hole(1)}, ${hole(2)})`)
    .limit(limitHole(3));
  const fileGarbage = db
    .selectFrom("garbage")
    .select(["kind", "name"])
    .where("kind", "<>", sql<"job">`'job'`)
    .where(sql<SqlBool>`(kind, name) > (${hole(0)}, ${hole(1)})`)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("artifacts as a")
            .select("a.artifact_id")
            .whereRef("a.sha256", "=", "garbage.name")
            .limit(sql.lit(1)),
        ),
      ),
    )
    .orderBy("kind")
    .orderBy("name")
    .limit(limitHole(2));
  const blobNamings = db
    .selectFrom("artifacts as a")
    .leftJoin("jobs as j", "j.job_id", "a.job_id")
    .select(["a.run_id", "a.artifact_id"])
    .select(
      sql<number>`j.job_id IS NOT NULL AND NOT (j.terminal = 1 AND (j.updated_at, j.job_id) <= (${hole(3)}, ${hole(4)}))`.as(
        "stays",
      ),
    )
    .where("a.sha256", "=", named)
    .where(sql<SqlBool>`(a.run_id, a.artifact_id) < (${hole(1)}, ${hole(2)})`)
    .orderBy("a.run_id", "desc")
    .orderBy("a.artifact_id", "desc")
    .limit(sql.lit(NAMINGS_PER_PAGE));
  const jobs = db.selectFrom("jobs").select(one);
  const ofBundle = jobs.where("bundle_fingerprint", "=", named);
  const snapshotNaming = db
    .selectFrom("bundles")
    .select(one)
    .where("fingerprint", "=", named)
    .unionAll(db.selectFrom("job_definitions").select(one).where("bundle_fingerprint", "=", named))
    .unionAll(db.selectFrom("blueprints").select(one).where("fingerprint", "=", named))
    .unionAll(ofBundle.where("terminal", "=", sql.lit(0)))
    .unionAll(
      ofBundle
        .where("terminal", "=", sql.lit(1))
        .where(sql<SqlBool>`(updated_at, job_id) > (${hole(1)}, ${hole(2)})`),
    )
    .limit(sql.lit(1));
  return {
    ended: reusable(database, ended),
    unlaunched: reusable(database, unlaunchedPage),
    removedJob: reusable(
      database,
      db.selectFrom("garbage").select("name").where("kind", "=", sql.lit("job")).limit(sql.lit(1)),
    ),
    fileGarbage: reusable(database, fileGarbage),
    blobNaming: reusable(
      database,
      db.selectFrom("artifacts").select(one).where("sha256", "=", named).limit(sql.lit(1)),
    ),
    blobNamings: reusable(database, blobNamings),
    snapshotNaming: reusable(database, snapshotNaming),
    runNaming: reusable(
      database,
      jobs
        .where("run_id", "=", named)
        .unionAll(db.selectFrom("runs").select(one).where("run_id", "=", named))
        .limit(sql.lit(1)),
    ),
  };
}
