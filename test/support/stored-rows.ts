// What is stored in the database of a home, for tests that must know what no answer tells.

import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { databaseFile } from "../../src/store/home.ts";

/** Rows of a query, from a connection of its own that only reads. */
export function rowsOf(
  home: string,
  query: string,
  ...values: SQLInputValue[]
): readonly Readonly<Record<string, unknown>>[] {
  const database = new DatabaseSync(databaseFile(home), { readOnly: true });
  try {
    return database.prepare(query).all(...values);
  } finally {
    database.close();
  }
}
