// Copies of a home's database, made and read without the program that may be using it.

import { rm } from "node:fs/promises";
import { backup, DatabaseSync } from "node:sqlite";
import { StoreUnusable } from "../sql/database.ts";
import { holdsEncrypted } from "./encrypted-values.ts";
import { explain } from "./errors.ts";
import { type NamedContent, namedContent } from "./named-content.ts";

const PAGES_PER_STEP = 2_000;
const BUSY_TIMEOUT_MS = 5_000;

/**
 * Copies one moment of a database that others may be writing to; they are not held up.
 *
 * @param copy where it goes; what is there is replaced
 * @throws StoreUnusable when it cannot be read; the signal's reason when it is aborted
 */
export async function copyDatabase(file: string, copy: string, signal: AbortSignal): Promise<void> {
  await rm(copy, { force: true });
  try {
    using source = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    // A read transaction around the whole copy: without it, every commit of the program would make it start over.
    source.exec("BEGIN");
    source.prepare("SELECT count(*) FROM sqlite_schema").get();
    await backup(source, copy, { rate: PAGES_PER_STEP, progress: () => signal.throwIfAborted() });
  } catch (error) {
    const isSqlite = (error as { errcode?: number }).errcode !== undefined;
    throw isSqlite ? new StoreUnusable(explain(error, file)) : error;
  }
}

/** What the rows of a database name, which may be in use. */
export function* contentNamedIn(file: string): Generator<NamedContent> {
  using connection = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  yield* namedContent(connection);
}

/** Whether values in it can be decrypted with the secret key alone. */
export function needsKey(file: string): boolean {
  using connection = new DatabaseSync(file);
  return holdsEncrypted(connection);
}

/** @returns what SQLite finds wrong with the file of a database that nobody uses; null when it is sound */
export function damageIn(file: string): string | null {
  // Opened for writing, so that nothing is left beside it.
  using connection = new DatabaseSync(file);
  const found = String(connection.prepare("PRAGMA quick_check(1)").get()?.quick_check);
  return found === "ok" ? null : found;
}
