// BlueprintWrites with Kysely: the part of a gateway transaction that writes blueprints.

import { sql, type Transaction } from "kysely";
import type {
  BlueprintAsset,
  BlueprintWrites,
  JobsOutcome,
  PreparedBlueprint,
} from "../../blueprints/records.ts";
import { assetRow, type BlueprintStatements, preparedRow, toAsset, toPrepared } from "./blueprint-rows.ts";
import type { Schema } from "./schema.ts";

export class SqlBlueprintWrites implements BlueprintWrites {
  readonly #db: Transaction<Schema>;
  readonly #statements: BlueprintStatements;

  constructor(db: Transaction<Schema>, statements: BlueprintStatements) {
    this.#db = db;
    this.#statements = statements;
  }

  async prepared(blueprintId: string): Promise<PreparedBlueprint | null> {
    const [row] = (await this.#statements.preparedBlueprint(this.#db, blueprintId)).rows;
    return row === undefined ? null : toPrepared(row);
  }

  async assets(blueprintId: string): Promise<readonly BlueprintAsset[]> {
    return (await this.#statements.assetsOfBlueprint(this.#db, blueprintId)).rows.map(toAsset);
  }

  async modelOwners(modelId: string): Promise<readonly string[]> {
    return (await this.#statements.ownersOfModel(this.#db, modelId)).rows.map((row) => row.blueprint_id);
  }

  async save(blueprint: PreparedBlueprint): Promise<void> {
    const row = preparedRow(blueprint);
    await this.#db
      .insertInto("blueprints")
      .values(row)
      .onConflict((conflict) => conflict.column("blueprint_id").doUpdateSet(row))
      .execute();
  }

  async delete(blueprintId: string): Promise<void> {
    await this.#db.deleteFrom("blueprints").where("blueprint_id", "=", blueprintId).execute();
  }

  async saveAsset(asset: BlueprintAsset): Promise<void> {
    const row = assetRow(asset);
    await this.#db
      .insertInto("blueprint_assets")
      .values(row)
      .onConflict((conflict) => conflict.columns(["blueprint_id", "kind", "asset_id"]).doUpdateSet(row))
      .execute();
  }

  async deleteAsset({
    blueprintId,
    kind,
    assetId,
  }: Pick<BlueprintAsset, "blueprintId" | "kind" | "assetId">): Promise<void> {
    await this.#db
      .deleteFrom("blueprint_assets")
      .where("blueprint_id", "=", blueprintId)
      .where("kind", "=", kind)
      .where("asset_id", "=", assetId)
      .execute();
  }

  async settleJobs(blueprintId: string, outcome: JobsOutcome, nowMs: number): Promise<readonly string[]> {
    const jobs = this.#db
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
  }

  async openRunsOf(blueprintId: string): Promise<number> {
    const [row] = (await this.#statements.useOfBlueprint(this.#db, blueprintId)).rows;
    return Number(row?.open_runs ?? 0);
  }
}
