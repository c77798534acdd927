// Removal of the runtime's rows: everything that ended jobs have left, with a note of each file that is garbage then.

import type { Transaction } from "kysely";
import type { Garbage } from "../runs/job-records.ts";
import type { Schema } from "./schema.ts";

const TABLES_OF_A_JOB = [
  "artifacts",
  "dead_letters",
  "tasks",
  "items",
  "messages",
  "agents",
  "events",
  "job_sources",
  "jobs",
] as const;

/** To be called in a transaction, with a few hundred jobs at most. */
export async function deleteRuntimeRows(
  db: Transaction<Schema>,
  jobs: readonly { readonly jobId: string; readonly runId: string }[],
): Promise<void> {
  const ids = jobs.map((job) => job.jobId);
  if (ids.length === 0) return;
  const contents = await db
    .selectFrom("artifacts")
    .select("sha256")
    .distinct()
    .where("job_id", "in", ids)
    .execute();
  const garbage: Garbage[] = [
    ...jobs.map(({ runId }) => ({ kind: "run" as const, name: runId })),
    ...contents.map(({ sha256 }) => ({ kind: "blob" as const, name: sha256 })),
  ];
  for (const one of garbage) {
    await db
      .insertInto("garbage")
      .values(one)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  for (const table of TABLES_OF_A_JOB) await db.deleteFrom(table).where("job_id", "in", ids).execute();
}
