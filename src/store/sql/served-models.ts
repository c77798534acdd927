// The tables served_models and llm_usage.

import type { Transaction } from "kysely";
import type {
  LlmUsage,
  LlmUsageWrites,
  ServedModel,
  ServedModelRecords,
  ServedModelWrites,
} from "../../models/serving/records.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { command, insertion, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const columns = columnsOf<Schema["served_models"], ServedModel>({
  modelId: "model_id",
  settings: json("settings_json"),
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

const byId = query(
  (db, modelId: string) => db.selectFrom("served_models").selectAll().where("model_id", "=", modelId),
  columns.toRecord,
);

const all = query((db) => db.selectFrom("served_models").selectAll().orderBy("model_id"), columns.toRecord);

export function servedModelReads(database: Database): ServedModelRecords {
  return {
    served: (modelId) => byId.first(database, modelId),
    allServed: () => all.all(database),
  };
}

const save = insertion("served_models", ["model_id"], ["created_at"]);
const remove = command((db, modelId: string) =>
  db.deleteFrom("served_models").where("model_id", "=", modelId),
);

export function servedModelWrites(db: Transaction<Schema>): ServedModelWrites {
  return {
    save: (model) => save(db, columns.toRow(model)),
    remove: async (modelId) => (await remove(db, modelId)) > 0,
  };
}

const usage = query(
  (db, runId: string, scope: string) =>
    db
      .selectFrom("llm_usage")
      .select(["requests", "tokens"])
      .where("run_id", "=", runId)
      .where("scope", "=", scope),
  (row): LlmUsage => row,
);
const saveUsage = insertion("llm_usage", ["run_id", "scope"]);

export function llmUsageWrites(db: Transaction<Schema>): LlmUsageWrites {
  const used = async (runId: string, scope: string): Promise<LlmUsage> =>
    (await usage.first(db, runId, scope)) ?? { requests: 0, tokens: 0 };
  return {
    used,
    async add(runId, scope, more) {
      const { requests, tokens } = await used(runId, scope);
      const row = { run_id: runId, scope, requests: requests + more.requests, tokens: tokens + more.tokens };
      await saveUsage(db, row);
    },
  };
}
