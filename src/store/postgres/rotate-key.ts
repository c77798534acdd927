// Encrypts the values of a PostgreSQL database again, with another key: all of them in one transaction, or none.
//
// - No program uses the database meanwhile: none has a valid lease or a connection, and one that starts waits for the row of
//   `cluster`. One that was away has to register again, which it cannot with the old key (PostgresNodes.register).
// - Every text column is searched, so that a table added later is not forgotten.

import type pg from "pg";
import { StoreUnusable } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";
import { PART_OF_ENCRYPTED, reencryptIn } from "../sql/encrypted-texts.ts";
import { OTHER_KEY } from "./cluster.ts";
import { BEGIN, configOf, serverOf } from "./connection.ts";
import { explain } from "./errors.ts";
import { migrate } from "./migrate.ts";

/** A row may have some MiB. */
const ROWS_AT_ONCE = 20;

export interface KeyRotation {
  readonly url: string;
  readonly isPooled: boolean;
  /** Of the keys that decrypt; the first is the one that encrypts from now on. */
  readonly keyIds: readonly [string, ...string[]];
  /** From the text behind `$sealed` to the one in its place, which may be the same. */
  readonly reencrypt: (encrypted: string) => string;
}

/** @throws StoreUnusable when programs use the database, or none of the keys is the one that it is encrypted with */
export async function rotateKey({ url, isPooled, keyIds, reencrypt }: KeyRotation): Promise<void> {
  const server = serverOf(url);
  const config = configOf(url, isPooled);
  const client = new config.Client(config);
  client.on("error", () => {});
  try {
    await client.connect();
    await migrate(client, server);
    await client.query(BEGIN);
    await checkUnused(client, server, isPooled, keyIds);
    for (const table of await tablesWithTexts(client)) await rewrite(client, table, reencrypt);
    await client.query("UPDATE cluster SET sealing_key_id = $1", [keyIds[0]]);
    await client.query("COMMIT");
  } catch (error) {
    throw error instanceof StoreUnusable ? error : new StoreUnusable(explain(error, server));
  } finally {
    await client.end().catch(() => {});
  }
}

async function checkUnused(
  client: pg.Client,
  server: string,
  isPooled: boolean,
  keyIds: readonly string[],
): Promise<void> {
  const cluster = await client.query<{ keyId: string }>(
    'SELECT sealing_key_id AS "keyId" FROM cluster FOR UPDATE',
  );
  const [known] = cluster.rows;
  if (known === undefined) {
    throw new StoreUnusable(
      `No program has used the database ${server} yet: there is nothing to encrypt again.`,
    );
  }
  if (!keyIds.includes(known.keyId)) throw new StoreUnusable(OTHER_KEY);
  await client.query("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE");
  const nodes = await client.query<{ name: string; left: number }>(
    `SELECT name, (lease_until - ${NOW}) / 1000 + 1 AS left FROM nodes WHERE lease_until > ${NOW} ORDER BY name LIMIT 5`,
  );
  if (nodes.rows.length > 0) {
    const leases = nodes.rows.map(({ name, left }) => `${name} (${left} s)`);
    throw new StoreUnusable(
      `Programs use the database ${server}: stop them all first. If one has ended already, wait until its lease is over: ${leases.join(", ")}.`,
    );
  }
  // Those of a pooler stay when its clients have gone.
  if (isPooled) return;
  const others = await client.query<{ at: string | null }>(
    `SELECT DISTINCT host(client_addr) AS at FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()`,
  );
  if (others.rows.length === 0) return;
  throw new StoreUnusable(
    `A program without a lease is connected to the database ${server} (from ${others.rows.map(({ at }) => at ?? "this machine").join(", ")}): stop it first.`,
  );
}

interface Table {
  readonly name: string;
  readonly texts: readonly string[];
}

async function tablesWithTexts(client: pg.Client): Promise<readonly Table[]> {
  const { rows } = await client.query<Table>(
    `SELECT table_name::text AS name, array_agg(column_name::text) AS texts FROM information_schema.columns
     WHERE table_schema = current_schema() AND data_type = 'text' GROUP BY table_name ORDER BY table_name`,
  );
  return rows;
}

async function rewrite(
  client: pg.Client,
  { name, texts }: Table,
  reencrypt: KeyRotation["reencrypt"],
): Promise<void> {
  const mayHold = texts.map((text) => `strpos("${text}", '${PART_OF_ENCRYPTED}') > 0`).join(" OR ");
  const columns = texts.map((text) => `"${text}"`).join(", ");
  // Nobody else writes, so a row stays at its place until it is changed here.
  await client.query(
    `DECLARE found CURSOR FOR SELECT ctid::text AS place, ${columns} FROM "${name}" WHERE ${mayHold}`,
  );
  for (;;) {
    const { rows } = await client.query<Record<string, string | null>>(`FETCH ${ROWS_AT_ONCE} FROM found`);
    if (rows.length === 0) break;
    for (const row of rows) {
      const changed = texts.flatMap((text) => {
        const before = row[text] ?? "";
        const after = reencryptIn(before, reencrypt);
        return after === before ? [] : [[text, after] as const];
      });
      if (changed.length === 0) continue;
      const set = changed.map(([text], i) => `"${text}" = $${i + 2}`).join(", ");
      const values = [row.place, ...changed.map(([, value]) => value)];
      await client.query(`UPDATE "${name}" SET ${set} WHERE ctid = $1::tid`, values);
    }
  }
  await client.query("CLOSE found");
}
