// The schema of a PostgreSQL database: numbered files, forward only, run at start by one program at a time.
//
// - A migration only adds. What is no longer used goes one version later, so that two adjacent versions work together.
// - A program that is older than the schema is refused only when the schema does not admit it (sql/admitted.ts).

import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { type Admits, checkAdmitted } from "../sql/admitted.ts";
import { StoreUnusable } from "../sql/database.ts";

const MIGRATIONS = new URL("./migrations/", import.meta.url);
/** Advisory locks of Troupe have this as their first key. */
export const LOCKS = 0x74_72_6f_75;
const MIGRATION_LOCK = 1;

const VERSION_MIN = 150_000;

const FOUNDATION = `
  CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT COLLATE "C" PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS schema_admits (
    id     BIGINT PRIMARY KEY CHECK (id = 1),
    -- The newest migration that a program must know.
    oldest TEXT COLLATE "C" NOT NULL
  );
  INSERT INTO schema_admits VALUES (1, '') ON CONFLICT DO NOTHING`;

/**
 * Brings the database to the newest schema that this program knows.
 *
 * @param server as an operator knows it
 * @throws StoreUnusable when only newer programs may use it, or it is one that this program cannot use
 */
export async function migrate(client: pg.ClientBase, server: string): Promise<void> {
  const steps = knownSteps();
  await checkServer(client, server);
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1, $2)", [LOCKS, MIGRATION_LOCK]);
    await client.query(FOUNDATION);
    const { rows } = await client.query<{ name: string }>("SELECT name FROM schema_migrations");
    const applied = new Set(rows.map(({ name }) => name));
    for (const name of steps) {
      if (applied.has(name)) continue;
      await client.query(readFileSync(new URL(name, MIGRATIONS), "utf8"));
      await client.query("INSERT INTO schema_migrations VALUES ($1)", [name]);
    }
    await checkSchema(client, server);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

function knownSteps(): readonly string[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}-.*\.sql$/.test(name))
    .sort();
}

/** @throws StoreUnusable when only newer programs may use the database */
export async function checkSchema(client: pg.ClientBase, server: string): Promise<void> {
  const { rows } = await client.query<Admits>("SELECT * FROM schema_admits");
  checkAdmitted(server, rows[0], knownSteps());
}

/** @throws StoreUnusable when it is one that this program cannot use */
export async function checkServer(client: pg.ClientBase, server: string): Promise<void> {
  const { rows } = await client.query<{ version: number; name: string; encoding: string }>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
       current_setting('server_encoding') AS encoding`,
  );
  const [found] = rows;
  if (found === undefined) return;
  if (found.version < VERSION_MIN) {
    throw new StoreUnusable(
      `The database ${server} is on PostgreSQL ${found.name}; Troupe needs 15 or newer. Use another server, or upgrade this one.`,
    );
  }
  if (found.encoding !== "UTF8") {
    throw new StoreUnusable(
      `The database ${server} has the encoding ${found.encoding}; Troupe needs UTF8. Make another one with \`createdb -E UTF8 -T template0\`.`,
    );
  }
}
