// The encrypted values of a database: whether there are any. Every text column is searched, so that a table added later is
// not forgotten.

import { sql } from "kysely";
import type { Database } from "../sql/database.ts";

const PART_OF_ENCRYPTED = '"$sealed';

/** Reads whole tables, so it is asked only when the key is missing. */
export async function holdsEncrypted({ kysely, read }: Database): Promise<boolean> {
  const { rows } = await sql<{ name: string; columns: readonly string[] }>`
    SELECT table_name AS name, array_agg(column_name::text) AS columns FROM information_schema.columns
    WHERE table_schema = current_schema() AND data_type = 'text' GROUP BY table_name`.execute(kysely);
  for (const { name, columns } of rows) {
    const mayHold = columns.map((column) => `strpos("${column}", $1) > 0`).join(" OR ");
    const found = await read(`SELECT 1 FROM "${name}" WHERE ${mayHold} LIMIT 1`, [PART_OF_ENCRYPTED]);
    if (found.length > 0) return true;
  }
  return false;
}
