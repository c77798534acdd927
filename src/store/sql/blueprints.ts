// The tables blueprints and blueprint_assets: what is prepared of blueprints.

import { type Selectable, sql, type Transaction } from "kysely";
import type {
  BlueprintAsset,
  BlueprintRecords,
  BlueprintWrites,
  PreparedBlueprint,
  PreparedState,
} from "../../blueprints/records.ts";
import type { OperationError } from "../../operations/records.ts";
import type { Database } from "./database.ts";
import { type Db, insertion, query, type Session } from "./query.ts";
import { isSnapshotNamed } from "./references.ts";
import type { Schema } from "./schema.ts";

type BlueprintRow = Selectable<Schema["blueprints"]>;
type AssetRow = Selectable<Schema["blueprint_assets"]>;

function toPrepared(row: BlueprintRow): PreparedBlueprint {
  return {
    blueprintId: row.blueprint_id,
    state: row.state as PreparedState,
    fingerprint: row.fingerprint,
    sizeBytes: row.size_bytes,
    operationId: row.operation_id,
    addedAtMs: row.added_at,
    updatedAtMs: row.updated_at,
    error: row.error_json === null ? null : (JSON.parse(row.error_json) as OperationError),
  };
}

function preparedRow(blueprint: PreparedBlueprint): BlueprintRow {
  return {
    blueprint_id: blueprint.blueprintId,
    state: blueprint.state,
    fingerprint: blueprint.fingerprint,
    size_bytes: blueprint.sizeBytes,
    operation_id: blueprint.operationId,
    added_at: blueprint.addedAtMs,
    updated_at: blueprint.updatedAtMs,
    error_json: blueprint.error === null ? null : JSON.stringify(blueprint.error),
  };
}

function toAsset(row: AssetRow): BlueprintAsset {
  return {
    blueprintId: row.blueprint_id,
    kind: row.kind as BlueprintAsset["kind"],
    assetId: row.asset_id,
    recipe: row.recipe,
    ready: row.ready === 1,
    bytes: row.bytes,
    createdAtMs: row.created_at,
  };
}

function assetRow(asset: BlueprintAsset): AssetRow {
  return {
    blueprint_id: asset.blueprintId,
    kind: asset.kind,
    asset_id: asset.assetId,
    recipe: asset.recipe,
    ready: asset.ready ? 1 : 0,
    bytes: asset.bytes,
    created_at: asset.createdAtMs,
  };
}

const byId = query(
  (db, blueprintId: string) =>
    db.selectFrom("blueprints").selectAll().where("blueprint_id", "=", blueprintId),
  toPrepared,
);

const all = query((db) => db.selectFrom("blueprints").selectAll().orderBy("blueprint_id"), toPrepared);

const assets = query(
  (db, blueprintId: string) =>
    db
      .selectFrom("blueprint_assets")
      .selectAll()
      .where("blueprint_id", "=", blueprintId)
      .orderBy("kind", "desc")
      .orderBy("asset_id"),
  toAsset,
);

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

function readsOn(on: Session): Pick<BlueprintRecords, "prepared" | "assets" | "modelOwners" | "openRunsOf"> {
  return {
    prepared: (blueprintId) => byId.first(on, blueprintId),
    assets: (blueprintId) => assets.all(on, blueprintId),
    modelOwners: (modelId) => modelOwners.all(on, modelId),
    openRunsOf: async (blueprintId) => (await use.first(on, blueprintId))?.openRuns ?? 0,
  };
}

export function sqlBlueprintRecords(database: Database): BlueprintRecords {
  return {
    ...readsOn(database),
    allPrepared: () => all.all(database),
    hasModelFile: async (modelId, recipe, exceptBlueprintId) =>
      (await modelFile.first(database, modelId, recipe, exceptBlueprintId)) ?? false,
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
    save: (blueprint) => save(db, preparedRow(blueprint)),
    saveAsset: (asset) => saveAsset(db, assetRow(asset)),

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
