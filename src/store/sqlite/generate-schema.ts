// Makes src/store/sql/schema.generated.ts, the tables as Kysely sees them, from the sum of the migrations:
// `npm run schema`.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openSqlite } from "./database.ts";

export const SCHEMA_FILE = fileURLToPath(new URL("../sql/schema.generated.ts", import.meta.url));

interface ColumnRow {
  readonly tableName: string;
  readonly name: string;
  readonly type: "TEXT" | "INTEGER";
  /** Whether it is declared NOT NULL, or is a part of the key. */
  readonly isRequired: 0 | 1;
}

const types = { TEXT: "string", INTEGER: "number" } as const;

/** The text of the file. */
export async function schemaTypes(): Promise<string> {
  const database = openSqlite(":memory:");
  const rows = await database.read<ColumnRow>(
    `SELECT t.name AS tableName, c.name, c.type, c."notnull" OR c.pk > 0 AS isRequired
     FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
     WHERE t.type = 'table' ORDER BY t.name, c.cid`,
    [],
  );
  await database.close();
  const tables = [...Map.groupBy(rows, ({ tableName }) => tableName)].map(([name, columns]) => {
    const lines = columns.map(
      (column) => `    ${column.name}: ${types[column.type]}${column.isRequired === 1 ? "" : " | null"};\n`,
    );
    return `  ${name}: {\n${lines.join("")}  };\n`;
  });
  return `// Made by \`npm run schema\` from the migrations (src/store/sqlite/migrations).\n\nexport interface Schema {\n${tables.join("")}}\n`;
}

if (import.meta.main) void schemaTypes().then((types) => writeFileSync(SCHEMA_FILE, types));
