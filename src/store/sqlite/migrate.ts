// Brings a database to the newest schema: by the migrations that it lacks, or, when it is empty, by what all of them make of
// an empty one (`npm run schema`), which takes a quarter of their time.

import { readdirSync, readFileSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { type Admits, checkAdmitted } from "../sql/admitted.ts";

const MIGRATIONS = new URL("./migrations/", import.meta.url);
/** Every table and index, and the rows that migrations insert. */
export const WHOLE_SCHEMA = new URL("./schema.generated.sql", import.meta.url);

/** The migrations of this program's schema, in their order. */
export function knownMigrations(): readonly string[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}-.*\.sql$/.test(name))
    .sort();
}

/**
 * Brings a database to the newest schema, all or nothing.
 *
 * @param file as messages name the database
 * @throws StoreUnusable when the database admits newer programs only
 */
export function migrate(connection: DatabaseSync, file: string): void {
  const steps = knownMigrations();
  connection.exec("BEGIN IMMEDIATE");
  try {
    if (connection.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined)
      connection.exec(readFileSync(WHOLE_SCHEMA, "utf8"));
    applyMigrations(connection, steps);
    const [admits] = connection.prepare("SELECT * FROM schema_admits").all() as unknown as Admits[];
    checkAdmitted(file, admits, steps);
    // Written at every start, so that a file or a disk that takes no writes is noticed here, and not by the first job.
    connection.exec(`PRAGMA user_version = ${steps.length}`);
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** Applies those migrations that the database does not list. */
export function applyMigrations(connection: DatabaseSync, steps: readonly string[]): void {
  connection.exec("CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY)");
  const rows = connection.prepare("SELECT name FROM schema_migrations ORDER BY name").all();
  const applied = new Set(rows.map((row) => String(row.name)));
  const record = connection.prepare("INSERT INTO schema_migrations (name) VALUES (?)");
  for (const name of steps) {
    if (applied.has(name)) continue;
    connection.exec(readFileSync(new URL(name, MIGRATIONS), "utf8"));
    record.run(name);
  }
}
