// The table artifacts: the files that runs have left. The journal writes it.

import { type Selectable, sql } from "kysely";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import type { Database } from "./database.ts";
import { atMost, type Db, query } from "./query.ts";
import type { Schema } from "./schema.ts";

function toArtifact(row: Selectable<Schema["artifacts"]>): ArtifactRecord {
  return {
    artifactId: row.artifact_id,
    agentId: row.agent_id,
    name: row.name,
    kind: row.kind as ArtifactRecord["kind"],
    title: row.title,
    primary: row.is_primary === 1,
    size: row.size,
    sha256: row.sha256,
    contentType: row.content_type,
    createdAtMs: row.created_at,
  };
}

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
  toArtifact,
);

const page = query(
  (db, runId: string, after: string, limit: number) =>
    ofRun(db, runId).where("artifact_id", ">", after).orderBy("artifact_id").limit(atMost(limit)),
  toArtifact,
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
  toArtifact,
);

/** The index is named: without it SQLite walks through all files of the run. */
const newestFinal = query(
  (db, runId: string) => ({
    compile: () =>
      sql<Selectable<Schema["artifacts"]>>`
        SELECT * FROM artifacts INDEXED BY artifacts_final
        WHERE run_id = ${runId} AND (name GLOB 'final_artifact.*' OR name GLOB '*/final_artifact.*')
        ORDER BY artifact_id DESC LIMIT 1`.compile(db),
  }),
  toArtifact,
);

export function artifactReads(
  database: Database,
): Pick<JobRecords, "artifact" | "artifactPage" | "outputPage" | "finalArtifact"> {
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
  };
}
