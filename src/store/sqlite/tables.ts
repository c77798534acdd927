// The tables of a SQLite file as it has them, whatever version of the program has written it.

import type { DatabaseSync } from "node:sqlite";
import { checksumsOf, type RowChecksum } from "./row-checksum.ts";

export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns of the primary key. */
  readonly key: readonly string[];
  /** Columns of text beside the key. */
  readonly texts: readonly string[];
  readonly checksums: readonly RowChecksum[];
}

interface ColumnRow {
  readonly tableName: string;
  readonly name: string;
  readonly type: string;
  /** From 1 within the key; 0 outside. */
  readonly pk: number;
}

/** In the order of their names. */
export function tablesOf(connection: DatabaseSync): readonly Table[] {
  const rows = connection
    .prepare(
      `SELECT t.name AS tableName, c.name, c.type, c.pk FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table' ORDER BY t.name, c.cid`,
    )
    .all() as unknown as readonly ColumnRow[];
  return [...Map.groupBy(rows, ({ tableName }) => tableName)].map(([name, found]) => {
    const columns = found.map((column) => column.name);
    return {
      name,
      columns,
      key: found
        .filter(({ pk }) => pk > 0)
        .sort((a, b) => a.pk - b.pk)
        .map((column) => column.name),
      texts: found.filter(({ type, pk }) => type === "TEXT" && pk === 0).map((column) => column.name),
      checksums: checksumsOf(name, columns),
    };
  });
}
