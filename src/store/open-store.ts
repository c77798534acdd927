// The one place that chooses: SQLite in SVC_HOME, or the PostgreSQL database that SVC_DATABASE_URL names.

import { openSqliteStore } from "./sqlite/open.ts";
import type { OpenStore, StoreOptions } from "./store.ts";

/**
 * Opens the store, and brings it to the newest schema.
 *
 * @throws StoreUnusable when it cannot be used; the message says why, and how to fix it
 */
export async function openStore(options: StoreOptions): Promise<OpenStore> {
  if (options.databaseUrl === null) return openSqliteStore(options);
  // Loaded here because most programs have no use for a client of PostgreSQL.
  const { openPostgresStore } = await import("./postgres/open.ts");
  return openPostgresStore(options, options.databaseUrl);
}
