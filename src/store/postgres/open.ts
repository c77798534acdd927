// The store of a program that has its database on a PostgreSQL server.

import { statSync } from "node:fs";
import { sql } from "kysely";
import { checkRestored, databaseFile } from "../home.ts";
import { StoreUnusable } from "../sql/database.ts";
import type { OpenStore, StoreOptions } from "../store.ts";
import { checkKey, isInUse } from "./cluster.ts";
import { configOf, serverOf } from "./connection.ts";
import { openPostgres, type PostgresDatabase } from "./database.ts";
import { explain } from "./errors.ts";
import { ExclusiveUse } from "./exclusive-use.ts";
import { PostgresJournal } from "./journal.ts";

/** @throws StoreUnusable */
export async function openPostgresStore(options: StoreOptions, url: string): Promise<OpenStore> {
  const { home } = options;
  checkRestored(home);
  checkNoOther(home);
  const server = serverOf(url);
  const use = new ExclusiveUse(configOf(url), server);
  try {
    await use.begin();
    const database = await openPostgres(url, use);
    const journal = new PostgresJournal(database);
    return {
      database,
      journal,
      needsKey: () => isInUse(database),
      checkKey: (ids) => checkKey(database, ids, options),
      // The server's autovacuum does.
      shrink: async () => false,
      sizes: sizesOf(database),
      checkAfterUncleanEnd: async () => "usable",
      async close() {
        await journal.close();
        await database.close();
        await use.end();
      },
    };
  } catch (error) {
    await use.end();
    throw error instanceof StoreUnusable ? error : new StoreUnusable(explain(error, server));
  }
}

/** What a home holds belongs to its own database, and would be removed as what no row of the other one names. */
function checkNoOther(home: string): void {
  const file = databaseFile(home);
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  throw new StoreUnusable(
    `SVC_HOME ${home} holds a SQLite database, with jobs and runs that SVC_DATABASE_URL does not have. Set SVC_HOME to ` +
      "another folder, or leave SVC_DATABASE_URL unset to go on with the SQLite database.",
  );
}

/** While the server cannot be asked, what it said last. */
function sizesOf({ kysely }: PostgresDatabase): OpenStore["sizes"] {
  let last = 0;
  return async () => {
    try {
      const { rows } = await sql<{ size: number }>`
        SELECT pg_database_size(current_database()) AS size`.execute(kysely);
      last = rows[0]?.size ?? last;
    } catch {
      // That it cannot be reached is shown by troupe_available.
    }
    return { database: last, wal: 0 };
  };
}
