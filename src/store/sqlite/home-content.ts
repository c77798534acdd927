// What a home on SQLite holds that would be lost with its database.

import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CONTENT_TABLES } from "../content-tables.ts";
import { contentOf, databaseFile } from "../home.ts";

/** @returns what is there, for people; empty for a home in which nothing was begun */
export function homeContent(home: string): readonly string[] {
  const file = databaseFile(home);
  const content = new Set<string>(contentOf(home));
  if (!existsSync(file)) return [...content];
  const connection = new DatabaseSync(file, { readOnly: true });
  try {
    for (const [table, name] of Object.entries(CONTENT_TABLES))
      if (connection.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined) content.add(name);
  } finally {
    connection.close();
  }
  return [...content];
}
