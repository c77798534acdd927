// The encrypted values of a database: whether there are any, and re-encrypting them with another key.
//
// - Every text column is searched, so that a table added later is not forgotten.
// - Values are rewritten in transactions of bounded size. Each value is complete at any time, so an interrupted
//   rotation can start again and find the rest.

import type { DatabaseSync } from "node:sqlite";
import { CompiledQuery } from "kysely";
import type { Page } from "../../lib/page.ts";
import { PART_OF_ENCRYPTED, reencryptIn } from "../sql/encrypted-texts.ts";
import type { SqliteDatabase } from "./database.ts";
import { isWhole, rowChecksum } from "./row-checksum.ts";
import { type Table, tablesOf } from "./tables.ts";

const PAGE_CHARS_MAX = 1024 * 1024;

type Value = string | number | null;
type Row = Record<string, Value>;

/** Reads whole tables, so it is asked only when the key is missing. */
export function holdsEncrypted(connection: DatabaseSync): boolean {
  return tablesWithTexts(connection).some(
    (table) =>
      connection.prepare(`SELECT 1 FROM "${table.name}" WHERE ${mayHold(table)} LIMIT 1`).get() !== undefined,
  );
}

/**
 * Writes every encrypted value anew, with the checksums of its row.
 *
 * @param reencrypt from the text behind `$sealed` to the one in its place, which may be the same
 * @returns how many rows were left as they are, because they have changed since the program wrote them
 */
export async function rewriteEncrypted(
  database: SqliteDatabase,
  reencrypt: (encrypted: string) => string,
): Promise<{ readonly damagedRows: number }> {
  // What is replaced is overwritten, and not only given free.
  database.connection.exec("PRAGMA secure_delete = ON");
  let damagedRows = 0;
  for (const table of tablesWithTexts(database.connection)) {
    let after: readonly Value[] | null = null;
    for (let isCut = true; isCut; ) {
      const page: Page<Row> = await database.readWithin<Row>(
        PAGE_CHARS_MAX,
        pageQuery(table, after !== null),
        after ?? [],
      );
      const changes = page.rows.map((row) => changeOf(table, row, reencrypt));
      damagedRows += changes.filter((change) => change === "damaged").length;
      const updates = changes.filter((change) => change instanceof Object);
      if (updates.length > 0) {
        await database.transaction(async (db) => {
          for (const update of updates) await db.executeQuery(update);
        });
      }
      const last = page.rows.at(-1);
      if (last !== undefined) after = table.key.map((name) => last[name]!);
      ({ isCut } = page);
    }
  }
  return { damagedRows };
}

function changeOf(table: Table, row: Row, reencrypt: (encrypted: string) => string) {
  const changed: Row = { ...row };
  for (const name of table.texts) {
    if (typeof row[name] !== "string") continue;
    changed[name] = reencryptIn(row[name], reencrypt);
  }
  const names = table.texts.filter((name) => changed[name] !== row[name]);
  if (names.length === 0) return null;
  // A checksum of what is damaged would make it pass for whole.
  if (!isWhole(row, table.checksums)) return "damaged";
  for (const { column, of } of table.checksums) {
    changed[column] = rowChecksum(of.map((name) => changed[name]!));
    names.push(column);
  }
  return CompiledQuery.raw(
    `UPDATE "${table.name}" SET ${names.map((name) => `"${name}" = ?`).join(", ")}
     WHERE ${table.key.map((name) => `"${name}" = ?`).join(" AND ")}`,
    [...names, ...table.key].map((name) => changed[name]),
  );
}

function pageQuery(table: Table, hasBefore: boolean): string {
  const key = table.key.map((name) => `"${name}"`).join(", ");
  const behind = hasBefore ? `(${key}) > (${table.key.map(() => "?").join(", ")}) AND ` : "";
  return `SELECT * FROM "${table.name}" WHERE ${behind}(${mayHold(table)}) ORDER BY ${key}`;
}

const mayHold = ({ texts }: Table) =>
  texts.map((name) => `instr("${name}", '${PART_OF_ENCRYPTED}') > 0`).join(" OR ");

const tablesWithTexts = (connection: DatabaseSync) =>
  tablesOf(connection).filter(({ texts }) => texts.length > 0);
