// What is kept of blueprints, as rows and as the records they stand for; and the questions that are asked both inside
// and outside of a transaction.

import { type Kysely, type Selectable, sql } from "kysely";
import type { BlueprintAsset, PreparedBlueprint, PreparedState } from "../../blueprints/records.ts";
import type { OperationError } from "../../operations/records.ts";
import { hole, statement } from "./reusable-query.ts";
import type { Schema } from "./schema.ts";

type BlueprintRow = Selectable<Schema["blueprints"]>;
type AssetRow = Selectable<Schema["blueprint_assets"]>;

export function toPrepared(row: BlueprintRow): PreparedBlueprint {
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

export function preparedRow(blueprint: PreparedBlueprint): BlueprintRow {
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

export function toAsset(row: AssetRow): BlueprintAsset {
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

export function assetRow(asset: BlueprintAsset): AssetRow {
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

/** Arguments: blueprint id. */
export function preparedById(db: Kysely<Schema>) {
  return db.selectFrom("blueprints").selectAll().where("blueprint_id", "=", hole<string>(0));
}

/** Arguments: blueprint id. */
export function assetsOfBlueprint(db: Kysely<Schema>) {
  return db
    .selectFrom("blueprint_assets")
    .selectAll()
    .where("blueprint_id", "=", hole<string>(0))
    .orderBy("kind", "desc")
    .orderBy("asset_id");
}

/** Models that are whole. Arguments: model id. */
export function readyModels(db: Kysely<Schema>) {
  return db
    .selectFrom("blueprint_assets")
    .where("kind", "=", sql.lit("model"))
    .where("asset_id", "=", hole<string>(0))
    .where("ready", "=", sql.lit(1));
}

/** Arguments: model id. */
export function ownersOfModel(db: Kysely<Schema>) {
  return readyModels(db).select("blueprint_id").orderBy("blueprint_id");
}

export type BlueprintStatements = ReturnType<typeof blueprintStatements>;

/** What transactions ask of blueprints, compiled once. */
export function blueprintStatements(db: Kysely<Schema>) {
  return {
    preparedBlueprint: statement(preparedById(db)),
    assetsOfBlueprint: statement(assetsOfBlueprint(db)),
    ownersOfModel: statement(ownersOfModel(db)),
    useOfBlueprint: statement(useOfBlueprint(db)),
  };
}

/** Jobs that are not deleted, and their runs that have not ended. Arguments: blueprint id. */
export function useOfBlueprint(db: Kysely<Schema>) {
  return db
    .selectFrom("job_definitions")
    .select(({ fn }) => [
      fn.countAll<number>().as("jobs"),
      fn.coalesce(fn.sum<number>("active_runs"), sql.lit(0)).as("open_runs"),
    ])
    .where("deleted", "=", sql.lit(0))
    .where("blueprint_id", "=", hole<string>(0));
}
