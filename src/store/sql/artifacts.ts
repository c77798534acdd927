// The table artifacts: the files that runs have left. The journal writes it.

import { sql } from "kysely";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import { columnsOf, flag } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, type Db, kindOf, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

export const artifacts = columnsOf<Schema["artifacts"], ArtifactRecord>({
  artifactId: "artifact_id",
  agentId: "agent_id",
  name: "name",
  kind: "kind",
  title: "title",
  primary: flag("is_primary"),
  size: "size",
  sha256: "sha256",
  contentType: "content_type",
  createdAtMs: "created_at",
});

/** Those of a run whose job has not been removed. */
const ofRun = (db: Db, runId: string) =>
  db
    .selectFrom("artifacts")
    .selectAll()
    .where("run_id", "=", runId)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom("jobs as j").select("j.job_id").whereRef("j.job_id", "=", "artifacts.job_id")),
    );

const one = query(
  (db, runId: string, artifactId: string) => ofRun(db, runId).where("artifact_id", "=", artifactId),
  artifacts.toRecord,
);

const page = query(
  (db, runId: string, after: string, limit: number) =>
    ofRun(db, runId).where("artifact_id", ">", after).orderBy("artifact_id").limit(atMost(limit)),
  artifacts.toRecord,
);

const outputs = query(
  (db, runId: string, primary: number, artifactId: string, limit: number) =>
    ofRun(db, runId)
      .where("kind", "=", sql.lit("output"))
      .where((eb) =>
        eb.or([
          eb("is_primary", "<", primary),
          eb.and([eb("is_primary", "=", primary), eb("artifact_id", ">", artifactId)]),
        ]),
      )
      .orderBy("is_primary", "desc")
      .orderBy("artifact_id")
      .limit(atMost(limit)),
  artifacts.toRecord,
);

/** The index is named for SQLite: without that it walks through all files of the run. */
const FINAL = {
  sqlite: sql`artifacts INDEXED BY artifacts_final
    WHERE (name GLOB 'final_artifact.*' OR name GLOB '*/final_artifact.*')`,
  postgres: sql`artifacts WHERE name ~ '(^|/)final_artifact\\.'`,
};

const newestFinal = query(
  (db, runId: string) => ({
    compile: () =>
      sql<Schema["artifacts"]>`SELECT * FROM ${FINAL[kindOf(db)]} AND run_id = ${runId}
        ORDER BY artifact_id DESC LIMIT 1`.compile(db),
  }),
  artifacts.toRecord,
);

export function artifactReads(database: Database) {
  const outputPage: JobRecords["outputPage"] = (runId, limit, after) =>
    outputs.all(database, runId, (after?.primary ?? true) ? 1 : 0, after?.artifactId ?? "", limit);
  return {
    artifact: (runId, artifactId) => one.first(database, runId, artifactId),
    artifactPage: (runId, limit, after) => page.all(database, runId, after ?? "", limit),
    outputPage,
    async finalArtifact(runId) {
      const final = await newestFinal.first(database, runId);
      if (final !== null) return final;
      const [first, second] = await outputPage(runId, 2, null);
      return first !== undefined && (first.primary || second === undefined) ? first : null;
    },
  } satisfies Partial<JobRecords>;
}
