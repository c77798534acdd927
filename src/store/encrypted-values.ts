// Whether a database holds encrypted values. It reads whole tables, so it is asked only when the key is missing.

import type { DatabaseSync } from "node:sqlite";

/** Looks at every column of JSON (`…_json`), so that a table that is added later is not forgotten. */
export function holdsEncrypted(connection: DatabaseSync): boolean {
  const columns = connection
    .prepare(
      `SELECT t.name AS tableName, c.name AS columnName FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table' AND c.name LIKE '%\\_json' ESCAPE '\\'`,
    )
    .all();
  return columns.some(
    ({ tableName, columnName }) =>
      connection
        .prepare(`SELECT 1 FROM "${tableName}" WHERE instr("${columnName}", '{"$sealed":') > 0 LIMIT 1`)
        .get() !== undefined,
  );
}
