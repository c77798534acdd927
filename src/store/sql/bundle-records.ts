// BundleRecords with Kysely: one row for each registered bundle.

import type { Kysely, Selectable } from "kysely";
import type { BundleOrigin, BundleRecord, BundleRecords } from "../../bundles/records.ts";
import { SqlRetentionRecords } from "./retention-records.ts";
import type { Database, Schema } from "./schema.ts";

export class SqlBundleRecords implements BundleRecords {
  readonly #database: Database;
  readonly #retention: SqlRetentionRecords;

  constructor(database: Database) {
    this.#database = database;
    this.#retention = new SqlRetentionRecords(database);
  }

  isSnapshotNamed(fingerprint: string): Promise<boolean> {
    return this.#retention.isSnapshotNamed(fingerprint, null);
  }

  async save(record: BundleRecord): Promise<void> {
    await this.#database.transaction((db) => saveBundle(db, record));
  }

  async get(bundleId: string): Promise<BundleRecord | null> {
    const row = await this.#database.kysely
      .selectFrom("bundles")
      .selectAll()
      .where("bundle_id", "=", bundleId)
      .executeTakeFirst();
    return row === undefined ? null : toBundle(row);
  }

  async list(page: {
    readonly limit: number;
    readonly after: string | null;
  }): Promise<readonly BundleRecord[]> {
    const rows = await this.#database.kysely
      .selectFrom("bundles")
      .selectAll()
      .where("bundle_id", ">", page.after ?? "")
      .orderBy("bundle_id")
      .limit(page.limit)
      .execute();
    return rows.map(toBundle);
  }
}

/** Writes the record, in place of one of the same id, whose time of creation stays. */
export async function saveBundle(db: Kysely<Schema>, record: BundleRecord): Promise<void> {
  const { created_at, ...changing } = toRow(record);
  await db
    .insertInto("bundles")
    .values({ ...changing, created_at })
    .onConflict((conflict) => conflict.column("bundle_id").doUpdateSet(changing))
    .execute();
}

type Row = Selectable<Schema["bundles"]>;

function toRow(record: BundleRecord): Row {
  return {
    bundle_id: record.bundleId,
    fingerprint: record.fingerprint,
    graph_id: record.graphId,
    name: record.name,
    source_kind: record.source.kind,
    source_path: record.source.kind === "folder" ? record.source.path : null,
    size_bytes: record.sizeBytes,
    created_at: record.createdAtMs,
    updated_at: record.updatedAtMs,
  };
}

export function toBundle(row: Row): BundleRecord {
  return {
    bundleId: row.bundle_id,
    fingerprint: row.fingerprint,
    graphId: row.graph_id,
    name: row.name,
    source: originOf(row),
    sizeBytes: row.size_bytes,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
  };
}

function originOf(row: Row): BundleOrigin {
  if (row.source_kind === "zip") return { kind: "zip" };
  if (row.source_kind === "folder" && row.source_path !== null)
    return { kind: "folder", path: row.source_path };
  throw new Error(`Bundle ${row.bundle_id} has the unknown source "${row.source_kind}".`);
}
