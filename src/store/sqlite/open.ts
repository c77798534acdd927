// The store of a program that has its database in its home.

import { stat } from "node:fs/promises";
import { COPY_MARK, readCopyMark } from "../copy-mark.ts";
import { checkHomeState, databaseFile } from "../home.ts";
import { StoreUnusable } from "../sql/database.ts";
import type { OpenStore, StoreOptions } from "../store.ts";
import { Checkpoints } from "./checkpoints.ts";
import { openSqlite, type SqliteDatabase } from "./database.ts";
import { holdsEncrypted } from "./encrypted-values.ts";
import { changedRowsText } from "./errors.ts";
import { SqliteFreeSpace } from "./free-space.ts";
import { SqliteJournal } from "./journal.ts";
import { quickCheckInBackground } from "./quick-check.ts";

/** @throws StoreUnusable */
export function openSqliteStore(options: StoreOptions): OpenStore {
  const { home, clock, log } = options;
  checkNotCopied(home);
  checkHomeState(home, options);
  const database = openSqlite(databaseFile(home), options);
  if (database.missing !== null) {
    log.warn({ ...database.missing }, "acknowledged commits are missing; continuing without them");
  }
  const checkpoints = new Checkpoints(database, { clock, log });
  const freeSpace = new SqliteFreeSpace(database);
  return {
    database,
    journal: new SqliteJournal(database),
    needsKey: async () => holdsEncrypted(database.connection),
    // The key is beside the database, and others have no part in it.
    checkKey: async ([first]) => first,
    // It shares its database with nobody.
    takeDuty: async () => true,
    sharedByNodes: null,
    shrink: () => freeSpace.shrink(),
    async sizes() {
      const [size, wal] = await Promise.all([sizeOf(database.file), sizeOf(`${database.file}-wal`)]);
      return { database: size, wal };
    },
    checkAfterUncleanEnd: (stopping) => checkAfterUncleanEnd(database, options, stopping),
    async close() {
      await checkpoints.close();
      await database.close();
    },
  };
}

function checkNotCopied(home: string): void {
  const mark = readCopyMark(home);
  if (mark === null) return;
  throw new StoreUnusable(
    `The database of SVC_HOME ${home} was copied to ${mark.server}, and what has happened since is there: set SVC_DATABASE_URL. ` +
      `To go on with the old one in its place, remove ${COPY_MARK} from SVC_HOME.`,
  );
}

/** Once a page is found damaged, nothing is written any more. */
async function checkAfterUncleanEnd(
  database: SqliteDatabase,
  { log }: StoreOptions,
  stopping: AbortSignal,
): Promise<"usable" | "damaged"> {
  if (!database.endedUncleanly) return "usable";
  try {
    const { damage, changedRows } = await quickCheckInBackground(database.file, stopping);
    if (changedRows.length > 0) log.error({ rows: [...changedRows] }, changedRowsText(database.file));
    if (damage === null) return "usable";
    database.setDamaged(damage);
    log.error({}, database.damage() ?? "");
    return "damaged";
  } catch (error) {
    if (!stopping.aborted) {
      log.warn({ reason: String(error) }, "the database could not be checked after an unclean shutdown");
    }
    return "usable";
  }
}

/** 0 for a file that is not there. */
async function sizeOf(path: string): Promise<number> {
  const stats = await stat(path).catch(() => null);
  return stats?.size ?? 0;
}
