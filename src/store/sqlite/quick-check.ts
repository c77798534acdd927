// Whether the pages of a database fit together and its rows are what was written. `troupe doctor` looks, and after an
// unclean end a process of its own, because it takes as long as reading the whole file.

import { execFile } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { scopeOf } from "./errors.ts";
import { isWhole, type Row } from "./row-checksum.ts";
import { type Table, tablesOf } from "./tables.ts";

const PROGRAM = fileURLToPath(import.meta.url);
/** Long, because nothing waits for the check. */
const BUSY_TIMEOUT_MS = 10_000;
/** Enough to show where to look. */
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
    const tables = tablesOf(connection);
    for (const { name } of tables) {
      const [found] = Object.values(connection.prepare(`PRAGMA quick_check("${name}")`).get() ?? {});
      if (found === "ok") continue;
      return { damage: `table ${name}: ${String(found).replaceAll("\n", " ")}`, changedRows: [] };
    }
    const changedRows = tables.values().flatMap((table) => changedRowsOf(connection, table));
    return { damage: null, changedRows: changedRows.take(CHANGED_ROWS_MAX).toArray() };
  } catch (error) {
    if (scopeOf(error) === "file") return { damage: (error as Error).message, changedRows: [] };
    throw error;
  } finally {
    connection.close();
  }
}

function* changedRowsOf(connection: DatabaseSync, { name, key, checksums }: Table): Generator<string> {
  if (checksums.length === 0) return;
  for (const row of connection.prepare(`SELECT * FROM "${name}"`).iterate() as Iterable<Row>) {
    if (!isWhole(row, checksums)) yield `${name} ${key.map((column) => row[column]).join(" ")}`;
  }
}

/**
 * `quickCheck` in a process of its own.
 *
 * @throws when it could not be done, or was aborted
 */
export async function quickCheckInBackground(file: string, signal: AbortSignal): Promise<CheckedDatabase> {
  const options = { signal, killSignal: "SIGKILL" } as const;
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, file], options);
  return JSON.parse(stdout) as CheckedDatabase;
}

if (process.argv[1] === PROGRAM) process.stdout.write(JSON.stringify(quickCheck(process.argv[2]!)));
