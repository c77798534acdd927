// The store of a program that has its database on a PostgreSQL server.

import { statSync } from "node:fs";
import { sql } from "kysely";
import { readCopyMark } from "../copy-mark.ts";
import { checkRestored, contentOf, databaseFile } from "../home.ts";
import { StoreUnusable } from "../sql/database.ts";
import type { OpenStore, StoreOptions } from "../store.ts";
import { checkKey, nodeSecret, useOf } from "./cluster.ts";
import { openPostgres, type PostgresDatabase } from "./database.ts";
import { takeDuty } from "./duties.ts";
import { explain } from "./errors.ts";
import { expectedNodes } from "./expected-nodes.ts";
import { PostgresJournal } from "./journal.ts";
import { nodeGarbage } from "./node-garbage.ts";
import { forgetNodes, nodeReads, PostgresNodes } from "./nodes.ts";
import { volumeOwners } from "./volumes.ts";

/** @throws StoreUnusable */
export async function openPostgresStore(options: StoreOptions, url: string): Promise<OpenStore> {
  checkRestored(options.home);
  const isPooled = options.databaseIsPooled === true;
  const database = await openPostgres(url, { isPooled });
  try {
    await checkHome(database, options);
  } catch (error) {
    await database.close();
    throw error instanceof StoreUnusable ? error : new StoreUnusable(explain(error, database.server));
  }
  const journal = new PostgresJournal(database);
  let keyId: string | null = null;
  return {
    database,
    journal,
    needsKey: async () => (await useOf(database)) !== null,
    async checkKey(ids) {
      keyId = await checkKey(database, ids, options);
      return keyId;
    },
    sharedByNodes: {
      secret: () => nodeSecret(database),
      nodes: (limitMs) => new PostgresNodes(database, limitMs, () => keyId),
      reads: nodeReads(database),
      expected: expectedNodes(database),
      forgetNodes: () => forgetNodes(database),
      volumesOf: (nodeId) => volumeOwners(database, nodeId),
      garbageOf: (node) => nodeGarbage(database, node),
    },
    // The server's autovacuum does.
    shrink: async () => false,
    takeDuty: (name, owner, forMs) => takeDuty(database, name, owner, forMs),
    sizes: sizesOf(database),
    checkAfterUncleanEnd: async () => "usable",
    async close() {
      await journal.close();
      await database.close();
    },
  };
}

/**
 * What a home holds belongs to one database, and would be removed as what no row of another one names.
 *
 * @throws StoreUnusable when it belongs to another one than this
 */
async function checkHome(
  database: PostgresDatabase,
  { home, newDatabase = false }: StoreOptions,
): Promise<void> {
  const use = await useOf(database);
  const mark = readCopyMark(home);
  if (mark !== null && mark.id !== use?.copiedFrom) {
    throw new StoreUnusable(
      `The database of SVC_HOME ${home} was copied to ${mark.server}, but SVC_DATABASE_URL names ${database.server}, which is ` +
        "not that copy. Correct SVC_DATABASE_URL, or set SVC_HOME to another folder.",
    );
  }
  if (mark === null && (statSync(databaseFile(home), { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new StoreUnusable(
      `SVC_HOME ${home} holds a SQLite database, with jobs and runs that ${database.server} does not have. Copy them with ` +
        "`troupe store copy`, or set SVC_HOME to another folder. Without SVC_DATABASE_URL the program goes on with the SQLite database.",
    );
  }
  const content = contentOf(home);
  if (use !== null || content.length === 0 || newDatabase) return;
  throw new StoreUnusable(
    `The database ${database.server} is empty, but SVC_HOME ${home} holds ${content.join(", ")}, which belong to another one. Set ` +
      "SVC_DATABASE_URL to that one, or restore it. To go on without it, start once with --new-database: jobs and runs are " +
      "lost, and their files stay until `troupe gc --confirm`.",
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
