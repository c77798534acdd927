// The table bundles: one row for each registered bundle.

import { sql, type Transaction } from "kysely";
import type { BundleOrigin, BundleRecord, BundleRecords } from "../../bundles/records.ts";
import type { GatewayRecords, GatewayWrites } from "../../launch/records.ts";
import { columnsOf } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, command, type Db, insertion, query } from "./query.ts";
import { isSnapshotNamed } from "./references.ts";
import type { Schema } from "./schema.generated.ts";

const columns = columnsOf<Schema["bundles"], Omit<BundleRecord, "source">>({
  bundleId: "bundle_id",
  fingerprint: "fingerprint",
  graphId: "graph_id",
  name: "name",
  sizeBytes: "size_bytes",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

const toRow = (record: BundleRecord): Schema["bundles"] => ({
  ...columns.toRow(record),
  source_kind: record.source.kind,
  source_path: record.source.kind === "folder" ? record.source.path : null,
});

const toBundle = (row: Schema["bundles"]): BundleRecord => ({
  ...columns.toRecord(row),
  source: originOf(row),
});

function originOf(row: Schema["bundles"]): BundleOrigin {
  if (row.source_kind === "zip") return { kind: "zip" };
  if (row.source_kind === "folder" && row.source_path !== null)
    return { kind: "folder", path: row.source_path };
  throw new Error(`Bundle ${row.bundle_id} has the unknown source "${row.source_kind}".`);
}

const bundles = (db: Db) => db.selectFrom("bundles").selectAll();

const byId = query((db, bundleId: string) => bundles(db).where("bundle_id", "=", bundleId), toBundle);

const inOrderOfIds = query(
  (db, after: string, limit: number) =>
    bundles(db).where("bundle_id", ">", after).orderBy("bundle_id").limit(atMost(limit)),
  toBundle,
);

const newestFirst = query(
  (db, createdAtMs: number, bundleId: string, limit: number) =>
    bundles(db)
      .where(sql<boolean>`(created_at, bundle_id) < (${createdAtMs}, ${bundleId})`)
      .orderBy("created_at", "desc")
      .orderBy("bundle_id", "desc")
      .limit(atMost(limit)),
  toBundle,
);

/** A job that is not deleted. */
const userOf = query(
  (db, bundleId: string) =>
    db
      .selectFrom("job_definitions")
      .select("job_id")
      .where("deleted", "=", sql.lit(0))
      .where("bundle_id", "=", bundleId)
      .limit(sql.lit(1)),
  (row) => row.job_id,
);

const remove = command((db, bundleId: string) => db.deleteFrom("bundles").where("bundle_id", "=", bundleId));

const save = insertion("bundles", ["bundle_id"], ["created_at"]);

export function sqlBundleRecords(database: Database): BundleRecords {
  return {
    save: (record) => database.transaction((db) => save(db, toRow(record))),
    get: (bundleId) => byId.first(database, bundleId),
    deleteUnused: (bundleId) =>
      database.transaction(async (db) => {
        if ((await userOf.first(db, bundleId)) !== null) return "in_use";
        return (await remove(db, bundleId)) > 0 ? "deleted" : "missing";
      }),
    list: ({ limit, after }) => inOrderOfIds.all(database, after ?? "", limit),
    isSnapshotNamed: (fingerprint) => isSnapshotNamed(database, fingerprint),
  };
}

export function bundleReads(database: Database) {
  return {
    bundles({ limit, after }) {
      const { createdAtMs, bundleId } = after ?? { createdAtMs: Number.MAX_SAFE_INTEGER, bundleId: "" };
      return newestFirst.all(database, createdAtMs, bundleId, limit);
    },
  } satisfies Partial<GatewayRecords>;
}

export function bundleWrites(db: Transaction<Schema>) {
  return {
    bundle: (bundleId) => byId.first(db, bundleId),
    saveBundle: (record) => save(db, toRow(record)),
  } satisfies Partial<GatewayWrites>;
}
