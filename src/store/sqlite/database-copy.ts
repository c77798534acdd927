// Copies of a home's database, made and read without the program that may be using it; and the files and folders that
// the rows of a database, also of an older version, reference in the home.

import { rm } from "node:fs/promises";
import { backup, DatabaseSync } from "node:sqlite";
import { folderName } from "../../lib/paths.ts";
import { StoreUnusable } from "../sql/database.ts";
import { holdsEncrypted } from "./encrypted-values.ts";
import { explain } from "./errors.ts";
import { tablesOf } from "./tables.ts";

export interface NamedContent {
  /** A `prepared` folder is there until its run has ended. */
  readonly kind: "blob" | "snapshot" | "resource" | "model" | "prepared";
  /** Relative to SVC_HOME; a file, a folder, or a link into the same folder. */
  readonly path: string;
}

interface Naming {
  readonly kind: NamedContent["kind"];
  readonly table: string;
  /** The last column that the query needs: an older database may not have it. */
  readonly column: string;
  readonly sql: string;
  readonly path: (row: Record<string, string>) => string;
}

const snapshot = (table: string, column: string): Naming => ({
  kind: "snapshot",
  table,
  column,
  sql: `SELECT DISTINCT ${column} AS fingerprint FROM ${table} WHERE ${column} IS NOT NULL AND ${column} <> ''`,
  path: ({ fingerprint }) => `bundles/${fingerprint}`,
});

const asset = (kind: "resource" | "model", path: Naming["path"]): Naming => ({
  kind,
  table: "blueprint_assets",
  column: "recipe",
  sql: `SELECT blueprint_id AS blueprintId, asset_id AS assetId, recipe FROM blueprint_assets WHERE kind = '${kind}' AND ready = 1`,
  path,
});

const namings: readonly Naming[] = [
  {
    kind: "blob",
    table: "artifacts",
    column: "sha256",
    sql: "SELECT DISTINCT sha256 FROM artifacts",
    path: ({ sha256 = "" }) => `blobs/${sha256.slice(0, 2)}/${sha256}`,
  },
  snapshot("bundles", "fingerprint"),
  snapshot("job_definitions", "bundle_fingerprint"),
  snapshot("jobs", "bundle_fingerprint"),
  snapshot("blueprints", "fingerprint"),
  asset(
    "resource",
    ({ blueprintId = "", assetId = "" }) => `resources/${folderName(blueprintId)}/${assetId}`,
  ),
  asset("model", ({ assetId = "", recipe }) => `models/${folderName(assetId)}/${recipe}`),
  {
    kind: "model",
    table: "model_installations",
    column: "sha256",
    sql: "SELECT model_id AS assetId, sha256 AS recipe FROM model_installations WHERE sha256 IS NOT NULL",
    path: ({ assetId = "", recipe }) => `models/${folderName(assetId)}/${recipe}`,
  },
  {
    kind: "prepared",
    table: "jobs",
    column: "own_payload",
    sql: "SELECT run_id AS runId FROM jobs WHERE terminal = 0 AND own_payload = 1",
    path: ({ runId = "" }) => `runs/${folderName(runId)}/prepared`,
  },
];

const PAGES_PER_STEP = 2_000;
const BUSY_TIMEOUT_MS = 5_000;

/**
 * Copies a consistent state of a database that others may be writing to, without blocking them.
 *
 * @param copy where it goes; what is there is replaced
 * @throws StoreUnusable when it cannot be read; the signal's reason when it is aborted
 */
export async function copyDatabase(file: string, copy: string, signal: AbortSignal): Promise<void> {
  await rm(copy, { force: true });
  try {
    using source = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    // A read transaction around the whole copy: without it, every commit of the program would make it start over.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_schema").get();
    await backup(source, copy, { rate: PAGES_PER_STEP, progress: () => signal.throwIfAborted() });
  } catch (error) {
    const isSqlite = (error as { errcode?: number }).errcode !== undefined;
    throw isSqlite ? new StoreUnusable(explain(error, file)) : error;
  }
}

/** The content that the rows of a database reference; it may be in use. A path may come several times. */
export function* contentNamedIn(file: string): Generator<NamedContent> {
  using connection = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  const tables = new Map(tablesOf(connection).map(({ name, columns }) => [name, columns]));
  for (const { kind, table, column, sql, path } of namings) {
    if (!tables.get(table)?.includes(column)) continue;
    for (const row of connection.prepare(sql).iterate()) {
      yield { kind, path: path(row as Record<string, string>) };
    }
  }
}

/** Whether values in it can be decrypted with the secret key alone. */
export function needsKey(file: string): boolean {
  using connection = new DatabaseSync(file);
  return holdsEncrypted(connection);
}

/** @returns the damage that SQLite finds in a database file that is not in use; null when there is none */
export function damageIn(file: string): string | null {
  // Opened for writing, so that nothing is left beside it.
  using connection = new DatabaseSync(file);
  const found = String(connection.prepare("PRAGMA quick_check(1)").get()?.quick_check);
  return found === "ok" ? null : found;
}
