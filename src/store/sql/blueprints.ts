// The tables blueprints and blueprint_assets: what is prepared of blueprints.

import { sql, type Transaction } from "kysely";
import type {
  BlueprintAsset,
  BlueprintRecords,
  BlueprintWrites,
  PreparedBlueprint,
} from "../../blueprints/records.ts";
import { columnsOf, flag, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { type Db, insertion, query, type Session } from "./query.ts";
import { isSnapshotNamed } from "./references.ts";
import type { Schema } from "./schema.generated.ts";

const blueprints = columnsOf<Schema["blueprints"], PreparedBlueprint>({
  blueprintId: "blueprint_id",
  state: "state",
  fingerprint: "fingerprint",
  sizeBytes: "size_bytes",
  operationId: "operation_id",
  addedAtMs: "added_at",
  updatedAtMs: "updated_at",
  error: json("error_json"),
});

const blueprintAssets = columnsOf<Schema["blueprint_assets"], BlueprintAsset>({
  blueprintId: "blueprint_id",
  kind: "kind",
  assetId: "asset_id",
  recipe: "recipe",
  ready: flag("ready"),
  bytes: "bytes",
  createdAtMs: "created_at",
});

const byId = query(
  (db, blueprintId: string) =>
    db.selectFrom("blueprints").selectAll().where("blueprint_id", "=", blueprintId),
  blueprints.toRecord,
);

const all = query(
  (db) => db.selectFrom("blueprints").selectAll().orderBy("blueprint_id"),
  blueprints.toRecord,
);

const assets = query(
  (db, blueprintId: string) =>
    db
      .selectFrom("blueprint_assets")
      .selectAll()
      .where("blueprint_id", "=", blueprintId)
      .orderBy("kind", "desc")
      .orderBy("asset_id"),
  blueprintAssets.toRecord,
);

const allAssets = query((db) => db.selectFrom("blueprint_assets").selectAll(), blueprintAssets.toRecord);

/** Models that are complete. */
const readyModels = (db: Db, modelId: string) =>
  db
    .selectFrom("blueprint_assets")
    .where("kind", "=", sql.lit("model"))
    .where("asset_id", "=", modelId)
    .where("ready", "=", sql.lit(1));

const modelOwners = query(
  (db, modelId: string) => readyModels(db, modelId).select("blueprint_id").orderBy("blueprint_id"),
  (row) => row.blueprint_id,
);

const modelFile = query(
  (db, modelId: string, recipe: string, exceptBlueprintId: string) =>
    readyModels(db, modelId)
      .select("asset_id")
      .where("recipe", "=", recipe)
      .where("blueprint_id", "<>", exceptBlueprintId)
      .limit(sql.lit(1)),
  () => true,
);

/** The content that is installed by itself. */
const installed = query(
  (db, modelId: string) =>
    db
      .selectFrom("model_installations")
      .select("sha256")
      .where("model_id", "=", modelId)
      .where("sha256", "is not", null)
      .orderBy("node_id"),
  (row) => row.sha256,
);

/** Jobs that are not deleted, and their runs that have not ended. */
const use = query(
  (db, blueprintId: string) =>
    db
      .selectFrom("job_definitions")
      .select(({ fn }) => [
        fn.countAll<number | string>().as("jobs"),
        fn.coalesce(fn.sum<number | string>("active_runs"), sql.lit(0)).as("open_runs"),
      ])
      .where("deleted", "=", sql.lit(0))
      .where("blueprint_id", "=", blueprintId),
  (row) => ({ jobs: Number(row.jobs), openRuns: Number(row.open_runs) }),
);

function readsOn(on: Session) {
  return {
    prepared: (blueprintId) => byId.first(on, blueprintId),
    assets: (blueprintId) => assets.all(on, blueprintId),
    modelOwners: (modelId) => modelOwners.all(on, modelId),
    installedModel: (modelId) => installed.first(on, modelId),
    openRunsOf: async (blueprintId) => (await use.first(on, blueprintId))?.openRuns ?? 0,
  } satisfies Partial<BlueprintRecords>;
}

export function sqlBlueprintRecords(database: Database): BlueprintRecords {
  return {
    ...readsOn(database),
    allPrepared: () => all.all(database),
    allAssets: () => allAssets.all(database),
    hasModelFile: async (modelId, recipe, exceptBlueprintId) =>
      (await modelFile.first(database, modelId, recipe, exceptBlueprintId)) ??
      (await installed.all(database, modelId)).includes(recipe),
    isPackageUsed: (fingerprint, exceptBlueprintId) =>
      isSnapshotNamed(database, fingerprint, null, exceptBlueprintId),
    jobsOf: async (blueprintId) => (await use.first(database, blueprintId))?.jobs ?? 0,
  };
}

const save = insertion("blueprints", ["blueprint_id"]);
const saveAsset = insertion("blueprint_assets", ["blueprint_id", "kind", "asset_id"]);

export function blueprintWrites(db: Transaction<Schema>): BlueprintWrites {
  return {
    ...readsOn(db),
    save: (blueprint) => save(db, blueprints.toRow(blueprint)),
    saveAsset: (asset) => saveAsset(db, blueprintAssets.toRow(asset)),

    async delete(blueprintId) {
      await db.deleteFrom("blueprints").where("blueprint_id", "=", blueprintId).execute();
    },

    async deleteAsset({ blueprintId, kind, assetId }) {
      await db
        .deleteFrom("blueprint_assets")
        .where("blueprint_id", "=", blueprintId)
        .where("kind", "=", kind)
        .where("asset_id", "=", assetId)
        .execute();
    },

    async settleJobs(blueprintId, outcome, nowMs) {
      const jobs = db
        .updateTable("job_definitions")
        .where("deleted", "=", sql.lit(0))
        .where("blueprint_id", "=", blueprintId);
      const settled =
        outcome.kind === "ready"
          ? jobs
              .set({
                status: "ready",
                bundle_fingerprint: outcome.fingerprint,
                graph_id: outcome.graphId,
                extensions_json: JSON.stringify(outcome.extensions),
              })
              // Those that an earlier addition has failed get their chance with this one.
              .where("status", "in", ["preparing", "failed_preparation"])
          : jobs.set({ status: "failed_preparation" }).where("status", "=", "preparing");
      const rows = await settled
        .set((eb) => ({ revision: eb("revision", "+", 1), updated_at: nowMs }))
        .returning("job_id")
        .execute();
      return rows.map((row) => row.job_id);
    },
  };
}
