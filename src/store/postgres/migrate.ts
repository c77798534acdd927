// The schema of a PostgreSQL database: numbered files, forward only, run at start by one program at a time.
//
// - A migration only adds. What is no longer used goes one version later, so that two adjacent versions work together.
// - A program that is older than the schema is refused only when the schema does not admit it (sql/admitted.ts).
// - A migration that no longer admits programs waits until none of them works: it would break their statements.

import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { type Admits, checkAdmitted } from "../sql/admitted.ts";
import { StoreUnusable } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";

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
    const before = await admitsOf(client);
    for (const name of steps) {
      if (applied.has(name)) continue;
      await client.query(readFileSync(new URL(name, MIGRATIONS), "utf8"));
      await client.query("INSERT INTO schema_migrations VALUES ($1)", [name]);
    }
    const admits = await admitsOf(client);
    checkAdmitted(server, admits, steps);
    if (admits.oldest > before.oldest) await checkLiving(client, server, admits);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** @throws StoreUnusable when there are nodes at work of versions that the schema would admit no longer */
async function checkLiving(client: pg.ClientBase, server: string, { version }: Admits): Promise<void> {
  const { rows } = await client.query<{ readonly name: string; readonly version: string }>(
    `SELECT name, version FROM nodes
      WHERE lease_until > ${NOW} AND ${partsOf("version")} < ${partsOf("$1")} ORDER BY name`,
    [version],
  );
  if (rows.length === 0) return;
  const nodes = rows.map((row) => `${row.name} (${row.version})`).join(", ");
  throw new StoreUnusable(
    `The database ${server} would be for Troupe ${version} and newer, and older nodes work with it: ${nodes}. ` +
      `Start version ${version} on them first, or stop them, and start this one then.`,
  );
}

/** The numbers of a version, in SQL. */
const partsOf = (version: string) => `string_to_array(split_part(${version}, '-', 1), '.')::int[]`;

/** @returns the newest migration that this program knows */
export function newestStep(): string {
  return knownSteps().at(-1) ?? "";
}

function knownSteps(): readonly string[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => /^\d{4}-.*\.sql$/.test(name))
    .sort();
}

/** @throws StoreUnusable when only newer programs may use the database */
export async function checkSchema(client: pg.ClientBase, server: string): Promise<void> {
  checkAdmitted(server, await admitsOf(client), knownSteps());
}

async function admitsOf(client: pg.ClientBase): Promise<Admits> {
  const { rows } = await client.query<Admits>("SELECT * FROM schema_admits");
  return rows[0]!;
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
