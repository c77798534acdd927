// What rows of a database name on disk: the files and folders that a home must have beside it. Read with a connection
// of its own, also of a database that a running program writes to, or that an older version has written.

import type { DatabaseSync } from "node:sqlite";
import { folderName } from "../../execution/runner/paths.ts";

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
    kind: "prepared",
    table: "jobs",
    column: "own_payload",
    sql: "SELECT run_id AS runId FROM jobs WHERE terminal = 0 AND own_payload = 1",
    path: ({ runId = "" }) => `runs/${folderName(runId)}/prepared`,
  },
];

/** Each path may come several times. While the iteration goes on, so does a read transaction of the connection. */
export function* namedContent(connection: DatabaseSync): Generator<NamedContent> {
  const hasColumn = connection.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
  for (const { kind, table, column, sql, path } of namings) {
    if (hasColumn.get(table, column) === undefined) continue;
    for (const row of connection.prepare(sql).iterate()) {
      yield { kind, path: path(row as Record<string, string>) };
    }
  }
}
