// Makes from the sum of the migrations src/store/sql/schema.generated.ts, the tables as Kysely sees them, and
// schema.generated.sql, what the migrations make of an empty database: `npm run schema`.

import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { applyMigrations, knownMigrations, WHOLE_SCHEMA } from "./migrate.ts";

export const SCHEMA_FILE = fileURLToPath(new URL("../sql/schema.generated.ts", import.meta.url));

interface ColumnRow {
  readonly tableName: string;
  readonly name: string;
  readonly type: "TEXT" | "INTEGER";
  /** Whether it is declared NOT NULL, or is a part of the key. */
  readonly isRequired: 0 | 1;
}

const types = { TEXT: "string", INTEGER: "number" } as const;

/** An empty database that every migration was applied to, one by one. */
export function migratedOneByOne(): DatabaseSync {
  const connection = new DatabaseSync(":memory:");
  applyMigrations(connection, knownMigrations());
  return connection;
}

/** The statements that make the database's tables, indexes and rows in an empty one. */
export function wholeSchema(connection: DatabaseSync): string {
  const made = connection
    .prepare(
      "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY rowid",
    )
    .all() as unknown as { readonly type: string; readonly name: string; readonly sql: string }[];
  const rows = made
    .filter(({ type }) => type === "table")
    .flatMap(({ name }) => {
      const columns = connection.prepare("SELECT name FROM pragma_table_info(?)").all(name);
      const values = columns.map((column) => `quote("${column.name}")`).join(" || ', ' || ");
      const found = connection.prepare(`SELECT ${values} AS row FROM ${name} ORDER BY row`).all();
      return found.map(({ row }) => `INSERT INTO ${name} VALUES (${row});\n`);
    });
  return `-- Made by \`npm run schema\` from the migrations.\n\n${made.map(({ sql }) => `${sql};\n`).join("")}${rows.join("")}`;
}

/** The text of schema.generated.ts. */
export function schemaTypes(): string {
  const connection = migratedOneByOne();
  const rows = connection
    .prepare(
      `SELECT t.name AS tableName, c.name, c.type, c."notnull" OR c.pk > 0 AS isRequired
       FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table' ORDER BY t.name, c.cid`,
    )
    .all() as unknown as ColumnRow[];
  connection.close();
  const tables = [...Map.groupBy(rows, ({ tableName }) => tableName)].map(([name, columns]) => {
    const lines = columns.map(
      (column) => `    ${column.name}: ${types[column.type]}${column.isRequired === 1 ? "" : " | null"};\n`,
    );
    return `  ${name}: {\n${lines.join("")}  };\n`;
  });
  return `// Made by \`npm run schema\` from the migrations (src/store/sqlite/migrations).\n\nexport interface Schema {\n${tables.join("")}}\n`;
}

if (import.meta.main) {
  writeFileSync(SCHEMA_FILE, schemaTypes());
  writeFileSync(WHOLE_SCHEMA, wholeSchema(migratedOneByOne()));
}
