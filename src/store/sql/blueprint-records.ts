// BlueprintRecords with Kysely: what is committed.

import { sql } from "kysely";
import type { BlueprintAsset, BlueprintRecords, PreparedBlueprint } from "../../blueprints/records.ts";
import {
  assetsOfBlueprint,
  ownersOfModel,
  preparedById,
  readyModels,
  toAsset,
  toPrepared,
  useOfBlueprint,
} from "./blueprint-rows.ts";
import { hole, reusable } from "./reusable-query.ts";
import type { Database } from "./schema.ts";

export class SqlBlueprintRecords implements BlueprintRecords {
  readonly #reads: ReturnType<typeof compileReads>;

  constructor(database: Database) {
    this.#reads = compileReads(database);
  }

  async prepared(blueprintId: string): Promise<PreparedBlueprint | null> {
    const [row] = await this.#reads.one(blueprintId);
    return row === undefined ? null : toPrepared(row);
  }

  async allPrepared(): Promise<readonly PreparedBlueprint[]> {
    return (await this.#reads.all()).map(toPrepared);
  }

  async assets(blueprintId: string): Promise<readonly BlueprintAsset[]> {
    return (await this.#reads.assets(blueprintId)).map(toAsset);
  }

  async modelOwners(modelId: string): Promise<readonly string[]> {
    return (await this.#reads.modelOwners(modelId)).map((row) => row.blueprint_id);
  }

  async hasModelFile(modelId: string, recipe: string, exceptBlueprintId: string): Promise<boolean> {
    return (await this.#reads.modelFile(modelId, recipe, exceptBlueprintId)).length > 0;
  }

  async isPackageUsed(fingerprint: string, exceptBlueprintId: string): Promise<boolean> {
    return (await this.#reads.packageUse(fingerprint, exceptBlueprintId)).length > 0;
  }

  async jobsOf(blueprintId: string): Promise<number> {
    const [row] = await this.#reads.use(blueprintId);
    return Number(row?.jobs ?? 0);
  }

  async openRunsOf(blueprintId: string): Promise<number> {
    const [row] = await this.#reads.use(blueprintId);
    return Number(row?.open_runs ?? 0);
  }
}

/** Arguments in the order of their holes. */
function compileReads(database: Database) {
  const db = database.kysely;
  const one = sql.lit(1).as("one");
  const fingerprint = hole<string>(0);
  const jobsOfPackage = db.selectFrom("jobs").select(one).where("bundle_fingerprint", "=", fingerprint);
  const packageUse = db
    .selectFrom("bundles")
    .select(one)
    .where("fingerprint", "=", fingerprint)
    .unionAll(db.selectFrom("job_definitions").select(one).where("bundle_fingerprint", "=", fingerprint))
    // Open and ended ones have an index each, and all of them together none.
    .unionAll(jobsOfPackage.where("terminal", "=", sql.lit(0)))
    .unionAll(jobsOfPackage.where("terminal", "=", sql.lit(1)))
    .unionAll(
      db
        .selectFrom("blueprints")
        .select(one)
        .where("fingerprint", "=", fingerprint)
        .where("blueprint_id", "<>", hole<string>(1)),
    )
    .limit(sql.lit(1));
  return {
    one: reusable(database, preparedById(db)),
    all: reusable(database, db.selectFrom("blueprints").selectAll().orderBy("blueprint_id")),
    assets: reusable(database, assetsOfBlueprint(db)),
    modelOwners: reusable(database, ownersOfModel(db)),
    modelFile: reusable(
      database,
      readyModels(db)
        .select(one)
        .where("recipe", "=", hole<string>(1))
        .where("blueprint_id", "<>", hole<string>(2))
        .limit(sql.lit(1)),
    ),
    packageUse: reusable(database, packageUse),
    use: reusable(database, useOfBlueprint(db)),
  };
}
