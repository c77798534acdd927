// Whether the pages of a database fit together and its rows are what was written: looked at by a process of its own after an unclean end, because it takes
// as long as reading the whole file, and by `troupe doctor`.

import { execFile } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { scopeOf } from "./errors.ts";
import { checksumsOf, isWhole, type Row } from "./row-checksum.ts";

const PROGRAM = fileURLToPath(new URL("./quick-check-process.ts", import.meta.url));
/** Nobody waits for it, except for locks that last a moment. */
const BUSY_TIMEOUT_MS = 10_000;
/** Somebody who reads them wants to know where to look, not all of a damaged disk. */
const CHANGED_ROWS_MAX = 10;

/** What a look at a database found. */
export interface CheckedDatabase {
  /** The first thing that is wrong with its pages, in SQLite's words; null when nothing is. */
  readonly damage: string | null;
  /** Rows whose checksums say that they are not what was written, as "table KEY"; the first few of them. */
  readonly changedRows: readonly string[];
}

/**
 * Looks at every table and its indexes, each in a transaction of its own so that the write-ahead log can be emptied
 * in between, and then at the checksums of the rows. Reads only; blocks until it is done.
 */
export function quickCheck(file: string): CheckedDatabase {
  const connection = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const names = tables.map(({ name }) => String(name));
    for (const name of names) {
      const [found] = Object.values(connection.prepare(`PRAGMA quick_check("${name}")`).get() ?? {});
      if (found === "ok") continue;
      return { damage: `table ${name}: ${String(found).replaceAll("\n", " ")}`, changedRows: [] };
    }
    const changedRows = names.values().flatMap((name) => changedRowsOf(connection, name));
    return { damage: null, changedRows: changedRows.take(CHANGED_ROWS_MAX).toArray() };
  } catch (error) {
    if (scopeOf(error) === "file") return { damage: (error as Error).message, changedRows: [] };
    throw error;
  } finally {
    connection.close();
  }
}

function* changedRowsOf(connection: DatabaseSync, table: string): Generator<string> {
  const columns = connection.prepare("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid").all(table);
  const names = columns.map(({ name }) => String(name));
  const checksums = checksumsOf(table, names);
  if (checksums.length === 0) return;
  const key = names.filter((_, at) => columns[at]!.pk !== 0);
  for (const row of connection.prepare(`SELECT * FROM "${table}"`).iterate() as Iterable<Row>) {
    if (!isWhole(row, checksums)) yield `${table} ${key.map((name) => row[name]).join(" ")}`;
  }
}

/**
 * `quickCheck` in a process of its own.
 *
 * @throws when it could not be done, or was aborted
 */
export function quickCheckInBackground(file: string, signal: AbortSignal): Promise<CheckedDatabase> {
  return new Promise((resolve, reject) => {
    const options = { signal, killSignal: "SIGKILL", encoding: "utf8" } as const;
    execFile(process.execPath, [PROGRAM, file], options, (error, stdout) => {
      if (error !== null) reject(error);
      else resolve(JSON.parse(stdout) as CheckedDatabase);
    });
  });
}
