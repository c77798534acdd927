// Copies the SQLite database of a home into an empty PostgreSQL database: all of it in one transaction, or nothing.
//
// - What PostgreSQL has stored is compared with what was read, before the commit: rows are counted, and the server computes
//   the same digest of each table.
// - The row of `cluster` is written first: a program that starts meanwhile waits for it, and a target that has one is not empty.
// - The source is opened for reading alone, and is checked before.

import { hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { COPY_MARK, readCopyMark, removeCopyMark, writeCopyMark } from "./copy-mark.ts";
import { checkHomeState, databaseFile } from "./home.ts";
import { configOf, serverOf } from "./postgres/connection.ts";
import { explain } from "./postgres/errors.ts";
import { migrate } from "./postgres/migrate.ts";
import { storable } from "./postgres/values.ts";
import { StoreUnusable } from "./sql/database.ts";
import { missingCommits } from "./sqlite/commit-counter.ts";
import { holdsEncrypted } from "./sqlite/encrypted-values.ts";
import { changedRowsText, damageText } from "./sqlite/errors.ts";
import { knownMigrations } from "./sqlite/migrate.ts";
import { quickCheck } from "./sqlite/quick-check.ts";
import { tablesOf } from "./sqlite/tables.ts";

/** Tables that are only SQLite's: what tells of its schema, and the count by which it notices lost commits. */
const SQLITE_OWN: ReadonlySet<string> = new Set(["schema_migrations", "schema_admits", "commit_count"]);
/** Tables that a database has before anyone has used it. */
const SCHEMA_OWN: ReadonlySet<string> = new Set(["schema_migrations", "schema_admits"]);
const ROWS_AT_ONCE = 500;
const CHARS_AT_ONCE = 4 * 1024 * 1024;
/** Of a row's hash the digest of a table has this many bytes, as a number; it is the sum of those of its rows. */
const DIGEST_BYTES = 7;
/** Between values, and in place of one that is null. */
const SEPARATOR = "\x1f";
const NULL = "\x1e";

export interface CopyRequest {
  /** SVC_HOME; it is locked. */
  readonly home: string;
  /** The target. */
  readonly url: string;
  /** The id of the key that the home's secrets are encrypted with. */
  readonly keyId: string;
  /** Names this copy; never used before. */
  readonly copyId: string;
}

export interface CopiedTable {
  readonly name: string;
  readonly rows: number;
}

interface Target {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

type Value = string | number | null;

/**
 * Copies every table, and marks the home as one whose database is the target from now on.
 *
 * @throws StoreUnusable when the source or the target is not as it must be; then nothing was copied
 */
export async function copyToPostgres(
  request: CopyRequest,
): Promise<{ readonly server: string; readonly tables: readonly CopiedTable[] }> {
  const { home, url } = request;
  checkHomeState(home);
  const mark = readCopyMark(home);
  if (mark !== null) {
    throw new StoreUnusable(
      `The database of SVC_HOME ${home} was copied to ${mark.server} before: start with that SVC_DATABASE_URL. If that copy is ` +
        `gone, remove ${COPY_MARK} from SVC_HOME.`,
    );
  }
  const source = openSource(databaseFile(home));
  const server = serverOf(url);
  const client = new pg.Client(configOf(url));
  client.on("error", () => {});
  try {
    await client.connect();
    await migrate(client, server);
    await client.query("BEGIN");
    await takeEmpty(client, server, request);
    const copied: CopiedTable[] = [];
    for (const table of await targetsOf(client, source)) copied.push(await copyTable(source, client, table));
    // Written before the commit: a copy without its mark would be refused by every start.
    writeCopyMark(home, { id: request.copyId, server });
    await client.query("COMMIT").catch((error: unknown) => {
      removeCopyMark(home);
      throw error;
    });
    await client.query("ANALYZE");
    return { server, tables: copied };
  } catch (error) {
    throw error instanceof StoreUnusable ? error : new StoreUnusable(explain(error, server));
  } finally {
    await client.end().catch(() => {});
    source.close();
  }
}

/** Whether the database of a home holds what only its secret key decrypts. */
export function keyNeededBy(home: string): boolean {
  const source = new DatabaseSync(databaseFile(home), { readOnly: true });
  try {
    return holdsEncrypted(source);
  } finally {
    source.close();
  }
}

function openSource(file: string): DatabaseSync {
  const missing = missingCommits(file);
  if (missing !== null) {
    throw new StoreUnusable(
      `The database ${file} lacks acknowledged commits. Start the program with it once, which says what to do, before it is copied.`,
    );
  }
  const { damage, changedRows } = quickCheck(file);
  if (damage !== null) throw new StoreUnusable(damageText(file, damage));
  if (changedRows.length > 0) throw new StoreUnusable(`${changedRowsText(file)} ${changedRows.join(", ")}`);
  const source = new DatabaseSync(file, { readOnly: true });
  const rows = source.prepare("SELECT name FROM schema_migrations ORDER BY name").all();
  const applied = rows.map(({ name }) => String(name));
  const known = knownMigrations();
  if (applied.join() === known.join()) return source;
  source.close();
  const later = applied.find((name) => !known.includes(name));
  throw new StoreUnusable(
    later === undefined
      ? `The database ${file} was last used by an older version of Troupe. Start this version with it once, without ` +
          "SVC_DATABASE_URL, and stop it; then copy it."
      : `The database ${file} was used by a newer version of Troupe (it has the migration ${later}), and this one would not copy ` +
          "all of it. Copy it with that version.",
  );
}

/** Makes the target this copy's own. @throws StoreUnusable when anything is in it */
async function takeEmpty(client: pg.Client, server: string, { keyId, copyId }: CopyRequest): Promise<void> {
  const { rows: tables } = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename",
  );
  for (const { name } of tables.filter((table) => !SCHEMA_OWN.has(table.name))) {
    const { rowCount } = await client.query(`SELECT 1 FROM "${name}" LIMIT 1`);
    if (rowCount === 0) continue;
    throw new StoreUnusable(
      `The database ${server} is not empty: table ${name} has rows. Copy into a new database (\`createdb\`), or drop what is in this one.`,
    );
  }
  await client.query(
    `INSERT INTO cluster (id, sealing_key_id, node_secret, copied_from)
     VALUES (1, $1, translate(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), $2)`,
    [keyId, copyId],
  );
}

/** The tables to be copied, with those of their columns that both databases have. */
async function targetsOf(client: pg.Client, source: DatabaseSync): Promise<readonly Target[]> {
  const { rows } = await client.query<{ table: string; name: string; type: string }>(
    `SELECT table_name AS table, column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
  );
  const known = Map.groupBy(rows, ({ table }) => table);
  return tablesOf(source)
    .filter(({ name }) => !SQLITE_OWN.has(name))
    .map(({ name, columns, checksums }) => {
      const kept = columns.filter((column) => !checksums.some((checksum) => checksum.column === column));
      const found = kept.map((column) => known.get(name)?.find((of) => of.name === column));
      if (found.includes(undefined)) throw new Error(`table ${name} differs between the databases`);
      return { name, columns: found.map((column) => ({ name: column!.name, type: column!.type })) };
    });
}

async function copyTable(source: DatabaseSync, client: pg.Client, table: Target): Promise<CopiedTable> {
  const names = table.columns.map(({ name }) => `"${name}"`).join(", ");
  const arrays = table.columns.map(({ type }, i) => `$${i + 1}::${type}[]`).join(", ");
  const text = `INSERT INTO "${table.name}" (${names}) SELECT * FROM unnest(${arrays})`;
  let [count, digest, chars] = [0, 0n, 0];
  let portion: Value[][] = [];
  const send = async () => {
    const values = table.columns.map((_, i) => portion.map((row) => row[i]));
    await client.query({ name: `copy_${table.name}`, text, values });
    [portion, chars] = [[], 0];
  };
  const statement = source.prepare(`SELECT ${names} FROM "${table.name}"`);
  statement.setReturnArrays(true);
  for (const row of statement.iterate() as Iterable<unknown>) {
    const values = (row as Value[]).map(storable) as Value[];
    const whole = values.map((value) => value ?? NULL).join(SEPARATOR);
    digest += BigInt(`0x${hash("sha256", whole, "hex").slice(0, 2 * DIGEST_BYTES)}`);
    portion.push(values);
    count++;
    chars += whole.length;
    if (portion.length >= ROWS_AT_ONCE || chars >= CHARS_AT_ONCE) await send();
  }
  if (portion.length > 0) await send();
  await compare(client, table, { count, digest });
  return { name: table.name, rows: count };
}

/** @throws StoreUnusable when the server has not what was sent */
async function compare(
  client: pg.Client,
  { name, columns }: Target,
  sent: { readonly count: number; readonly digest: bigint },
): Promise<void> {
  const values = columns.map((column) => `coalesce("${column.name}"::text, E'\\x1e')`).join(", ");
  const { rows } = await client.query<{ count: number; digest: string }>(
    `SELECT count(*) AS count, coalesce(sum(
       ('x' || encode(substr(sha256(convert_to(concat_ws(E'\\x1f', ${values}), 'UTF8')), 1, ${DIGEST_BYTES}), 'hex'))
         ::bit(${8 * DIGEST_BYTES})::bigint), 0)::text AS digest
     FROM "${name}"`,
  );
  const [stored] = rows;
  if (stored?.count === sent.count && BigInt(stored.digest) === sent.digest) return;
  throw new StoreUnusable(
    `Table ${name} is not in the target as it was read (${sent.count} rows sent, ${stored?.count} found). Nothing was copied.`,
  );
}
