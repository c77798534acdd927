// Whether the pages of a database fit together: looked at by a process of its own after an unclean end, because it takes
// as long as reading the whole file, and by `troupe doctor`.

import { execFile } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { scopeOf } from "./errors.ts";

const PROGRAM = fileURLToPath(new URL("./quick-check-process.ts", import.meta.url));
/** Nobody waits for it, except for locks that last a moment. */
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Looks at every table and its indexes, each in a transaction of its own so that the write-ahead log can be emptied
 * in between. Reads only; blocks until it is done.
 *
 * @returns the first thing that is wrong, in SQLite's words; null when nothing is
 */
export function quickCheck(file: string): string | null {
  const connection = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    for (const { name } of tables) {
      const [found] = Object.values(connection.prepare(`PRAGMA quick_check("${String(name)}")`).get() ?? {});
      if (found !== "ok") return `table ${String(name)}: ${String(found).replaceAll("\n", " ")}`;
    }
    return null;
  } catch (error) {
    if (scopeOf(error) === "file") return (error as Error).message;
    throw error;
  } finally {
    connection.close();
  }
}

/**
 * `quickCheck` in a process of its own.
 *
 * @throws when it could not be done, or was aborted
 */
export function quickCheckInBackground(file: string, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const options = { signal, killSignal: "SIGKILL", encoding: "utf8" } as const;
    execFile(process.execPath, [PROGRAM, file], options, (error, stdout) => {
      if (error !== null) reject(error);
      else resolve((JSON.parse(stdout) as { readonly damage: string | null }).damage);
    });
  });
}
