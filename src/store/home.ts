// SVC_HOME: the folder of everything on disk, and the lock that keeps a second program out of it.
//
// H1. At most one program uses a home. The lock is the operating system's (an exclusive lock inside SQLite), so it
//     ends with the process, however that ends.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeFolder } from "../lib/files.ts";
import { StoreUnusable } from "./sql/database.ts";
import { explain, isBusy } from "./sqlite/errors.ts";

export interface Home {
  readonly path: string;
  release(): void;
}

/** A predecessor that was killed a moment ago may still be on its way out. */
const LOCK_WAIT_MS = 1_000;

/** The store's file in a home. */
export const databaseFile = (home: string): string => join(home, "troupe.db");

/**
 * Creates the folder if needed, checks that it can be written, and locks it.
 *
 * @throws StoreUnusable when it cannot be written, or another program uses it
 */
export function openHome(path: string): Home {
  try {
    makeFolder(path, 0o700);
    const probe = join(path, ".write-test");
    writeFileSync(probe, "x");
    rmSync(probe);
  } catch (error) {
    throw new StoreUnusable(
      `SVC_HOME ${path} cannot be written (${(error as Error).message}). Choose a folder that this user may write, or free some space.`,
    );
  }
  const lock = new DatabaseSync(join(path, "lock.db"), { timeout: LOCK_WAIT_MS });
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw new StoreUnusable(explain(error, join(path, "lock.db")));
    throw new StoreUnusable(
      `SVC_HOME ${path} is in use by another Troupe. Stop that one first, or set SVC_HOME to another folder.`,
    );
  }
  return { path, release: () => lock.close() };
}
