// The table garbage: the remains of removed jobs. Removing a job deletes only its own row, which every reader checks
// first. The rest is recorded as garbage and deleted in batches, because deleting a long history at once would block all
// other work. Files follow once no row references them.

import { type SqlBool, sql, type Transaction } from "kysely";
import type { FileGarbage, Garbage, RetentionRecords } from "../../runs/retention-records.ts";
import type { Database } from "./database.ts";
import { atMost, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

/** To be called in a transaction, with a few hundred jobs at most. */
export async function deleteJobRows(
  db: Transaction<Schema>,
  jobs: readonly { readonly jobId: string; readonly runId: string }[],
): Promise<void> {
  if (jobs.length === 0) return;
  const notes = jobs.flatMap(({ jobId, runId }): readonly Garbage[] => [
    { kind: "job", name: jobId },
    { kind: "run", name: runId },
  ]);
  await noteGarbage(db, notes);
  const ids = jobs.map(({ jobId }) => jobId);
  await db.deleteFrom("jobs").where("job_id", "in", ids).execute();
  const runIds = jobs.map(({ runId }) => runId);
  await db.deleteFrom("llm_usage").where("run_id", "in", runIds).execute();
}

interface Part {
  readonly table: string;
  /** The columns that name a row. */
  readonly key: string;
  /** Rows of one statement: few where a row may be long. */
  readonly rowsAtOnce: number;
}

const ARTIFACTS: Part = { table: "artifacts", key: "run_id, artifact_id", rowsAtOnce: 200 };

const PARTS: readonly Part[] = [
  ARTIFACTS,
  { table: "events", key: "job_id, first_seq", rowsAtOnce: 16 },
  { table: "items", key: "job_id, agent_index, first_seq", rowsAtOnce: 16 },
  { table: "messages", key: "job_id, agent_index, seq", rowsAtOnce: 16 },
  { table: "mailboxes", key: "job_id, agent_index", rowsAtOnce: 50 },
  { table: "tasks", key: "job_id, task_seq", rowsAtOnce: 16 },
  { table: "dead_letters", key: "dead_letter_id", rowsAtOnce: 16 },
  { table: "human_requests", key: "job_id, event_seq", rowsAtOnce: 50 },
  { table: "agents", key: "job_id, agent_index", rowsAtOnce: 50 },
  { table: "job_sources", key: "job_id", rowsAtOnce: 8 },
];

/** Jobs whose parts are removed together. */
const JOBS_AT_ONCE = 25;

const removedJobs = sql`(SELECT name FROM garbage WHERE kind = 'job' ORDER BY name LIMIT ${sql.lit(JOBS_AT_ONCE)})`;

const removedJob = query(
  (db) => db.selectFrom("garbage").select("name").where("kind", "=", sql.lit("job")).limit(sql.lit(1)),
  (row) => row.name,
);

/**
 * Removes parts of a few removed jobs; to be called in a transaction.
 *
 * @param isOver asked after each statement that leaves something: whether the rest is for the next transaction
 * @returns whether there may be more, of these jobs or of others
 */
async function deleteParts(db: Transaction<Schema>, isOver: () => boolean): Promise<boolean> {
  if ((await removedJob.first(db)) === null) return false;
  for (const part of PARTS) {
    let isLast = false;
    while (!isLast) {
      isLast = await deleteSome(db, part);
      if (!isLast && isOver()) return true;
    }
  }
  // All of them were found empty in this very transaction.
  await sql`DELETE FROM garbage WHERE kind = 'job' AND name IN ${removedJobs}`.execute(db);
  return true;
}

/** @returns whether these were the last */
async function deleteSome(db: Transaction<Schema>, part: Part): Promise<boolean> {
  const { table, key, rowsAtOnce } = part;
  const deleteRows = sql`DELETE FROM ${sql.table(table)} WHERE (${sql.raw(key)}) IN
    (SELECT ${sql.raw(key)} FROM ${sql.table(table)} WHERE job_id IN ${removedJobs} LIMIT ${sql.lit(rowsAtOnce)})`;
  if (part !== ARTIFACTS) {
    const { numAffectedRows } = await deleteRows.execute(db);
    return Number(numAffectedRows ?? 0) < rowsAtOnce;
  }
  const { rows } = await sql<{ sha256: string }>`${deleteRows} RETURNING sha256`.execute(db);
  await noteGarbage(
    db,
    [...new Set(rows.map(({ sha256 }) => sha256))].map((name) => ({ kind: "blob", name })),
  );
  return rows.length < rowsAtOnce;
}

async function noteGarbage(db: Transaction<Schema>, garbage: readonly Garbage[]): Promise<void> {
  if (garbage.length === 0) return;
  await db
    .insertInto("garbage")
    .values(garbage)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Without blobs that an artifact names again. */
const fileGarbage = query(
  (db, kind: string, name: string, limit: number) =>
    db
      .selectFrom("garbage")
      .select(["kind", "name"])
      .where("kind", "<>", sql<"job">`'job'`)
      .where(sql<SqlBool>`(kind, name) > (${kind}, ${name})`)
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
      .limit(atMost(limit)),
  (row) => row as FileGarbage,
);

export function garbageRecords(database: Database) {
  return {
    async removeParts(isOver) {
      // Asked outside of a transaction first: there is nothing most of the time.
      if ((await removedJob.first(database)) === null) return false;
      return database.transaction((db) => deleteParts(db, isOver));
    },

    fileGarbage: (limit, after) => fileGarbage.all(database, after?.kind ?? "", after?.name ?? "", limit),

    async forgetGarbage(garbage) {
      if (garbage.length === 0) return;
      await database.transaction(async (db) => {
        for (const [kind, notes] of Map.groupBy(garbage, (one) => one.kind)) {
          const names = notes.map(({ name }) => name);
          await db.deleteFrom("garbage").where("kind", "=", kind).where("name", "in", names).execute();
        }
      });
    },
  } satisfies Partial<RetentionRecords>;
}
