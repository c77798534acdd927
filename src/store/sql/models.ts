// The tables models and model_installations.

import { sql, type Transaction } from "kysely";
import type {
  ModelInstallation,
  ModelRecords,
  ModelRegistration,
  ModelView,
  ModelWrites,
} from "../../models/records.ts";
import { columnsOf, flag, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, command, insertion, listed, query, type Session } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const registrations = columnsOf<Schema["models"], ModelRegistration>({
  modelId: "model_id",
  name: "name",
  family: "family",
  source: json("source_json"),
  sha256: "sha256",
  license: "license",
  parameters: "parameters",
  quantisation: "quantisation",
  context: "context",
  requirements: json("requirements_json"),
  content: json("content_json"),
  revision: "revision",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

const installations = columnsOf<Schema["model_installations"], ModelInstallation>({
  installationId: "installation_id",
  modelId: "model_id",
  nodeId: "node_id",
  state: "state",
  operationId: "operation_id",
  sha256: "sha256",
  bytes: "bytes",
  pinned: flag("pinned"),
  error: json("error_json"),
  revision: "revision",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

const byId = query(
  (db, modelId: string) => db.selectFrom("models").selectAll().where("model_id", "=", modelId),
  registrations.toRecord,
);

/** Of bounded texts: 200 of them are some megabytes at most. */
const list = query(
  (db, after: string, limit: number) =>
    db
      .selectFrom("models")
      .selectAll()
      .where("model_id", ">", after)
      .orderBy("model_id")
      .limit(atMost(limit)),
  registrations.toRecord,
);

const installation = query(
  (db, installationId: string) =>
    db.selectFrom("model_installations").selectAll().where("installation_id", "=", installationId),
  installations.toRecord,
);

const installationOn = query(
  (db, modelId: string, nodeId: string) =>
    db
      .selectFrom("model_installations")
      .selectAll()
      .where("model_id", "=", modelId)
      .where("node_id", "=", nodeId),
  installations.toRecord,
);

const allInstallations = query(
  (db) => db.selectFrom("model_installations").selectAll(),
  installations.toRecord,
);

/** @param idsJson a list of models */
const installationsOf = query(
  (db, idsJson: string) =>
    db
      .selectFrom("model_installations")
      .selectAll()
      .where("model_id", "in", listed<string>(db, idsJson, "text"))
      .orderBy("installation_id"),
  installations.toRecord,
);

/** @param idsJson a list of models */
const blueprintsOf = query(
  (db, idsJson: string) =>
    db
      .selectFrom("blueprint_assets")
      .select(["asset_id", "blueprint_id"])
      .where("kind", "=", sql.lit("model"))
      .where("asset_id", "in", listed<string>(db, idsJson, "text"))
      .where("ready", "=", sql.lit(1))
      .orderBy("blueprint_id"),
  (row) => ({ modelId: row.asset_id, blueprintId: row.blueprint_id }),
);

async function viewsOf(on: Session, rows: readonly ModelRegistration[]): Promise<readonly ModelView[]> {
  if (rows.length === 0) return [];
  const ids = JSON.stringify(rows.map(({ modelId }) => modelId));
  const [places, owners] = [await installationsOf.all(on, ids), await blueprintsOf.all(on, ids)];
  const placesOf = Map.groupBy(places, ({ modelId }) => modelId);
  const ownersOf = Map.groupBy(owners, ({ modelId }) => modelId);
  return rows.map((row) => ({
    ...row,
    installations: placesOf.get(row.modelId) ?? [],
    blueprints: (ownersOf.get(row.modelId) ?? []).map(({ blueprintId }) => blueprintId),
  }));
}

function readsOn(on: Session) {
  return {
    async model(modelId: string) {
      const row = await byId.first(on, modelId);
      return row === null ? null : ((await viewsOf(on, [row]))[0] ?? null);
    },
    installationOn: (modelId: string, nodeId: string) => installationOn.first(on, modelId, nodeId),
  };
}

export function sqlModelRecords(database: Database): ModelRecords {
  return {
    ...readsOn(database),
    async models({ limit, after }) {
      return viewsOf(database, await list.all(database, after ?? "", limit));
    },
    installation: (installationId) => installation.first(database, installationId),
    allInstallations: () => allInstallations.all(database),
  };
}

const save = insertion("models", ["model_id"]);
const saveInstallation = insertion("model_installations", ["installation_id"]);
const remove = command((db, modelId: string) => db.deleteFrom("models").where("model_id", "=", modelId));
const removeInstallation = command((db, installationId: string) =>
  db.deleteFrom("model_installations").where("installation_id", "=", installationId),
);

export function modelWrites(db: Transaction<Schema>): ModelWrites {
  return {
    ...readsOn(db),
    save: (model) => save(db, registrations.toRow(model)),
    async remove(modelId) {
      await remove(db, modelId);
    },
    saveInstallation: (one) => saveInstallation(db, installations.toRow(one)),
    async removeInstallation(installationId) {
      await removeInstallation(db, installationId);
    },
  };
}
