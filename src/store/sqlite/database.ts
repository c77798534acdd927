// SQLite: one connection, opened for durability, brought to the newest schema before anyone sees it.
//
// - WAL with synchronous=NORMAL: a commit that returned is not on disk yet. The log is synced off the main thread
//   (log-sync.ts), and every write resolves behind the sync that covers it. The start itself commits with FULL: what a
//   predecessor left in the log is on disk before anyone sees it.
// - One transaction at a time: the journal's (synchronous) and Kysely's (a chain of promises) go through one gate,
//   because they share the connection. A read outside of them waits for the current transaction.
// - No statement waits for a lock longer than BUSY_TIMEOUT_MS, because it would block the event loop; callers that
//   must wait longer retry.
// - A damaged file is not written any more: the first error that shows damage makes the connection read-only until the
//   program ends. Reads continue.

import { accessSync, closeSync, constants, existsSync, openSync, statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { Kysely, SqliteDialect, type SqliteStatement } from "kysely";
import { JournalUnavailable } from "../../engine/journal.ts";
import type { Page } from "../../lib/page.ts";
import { type Database, StoreUnusable } from "../sql/database.ts";
import type { Schema } from "../sql/schema.generated.ts";
import { CommitCounter, commitCountFile, type MissingCommits, missingCommits } from "./commit-counter.ts";
import { asUnavailable, damageText, explain, readOnlyText, scopeOf, unsyncedText } from "./errors.ts";
import { LogSync, type SyncFile } from "./log-sync.ts";
import { migrate } from "./migrate.ts";
import { WriteGate } from "./write-gate.ts";

const BUSY_TIMEOUT_MS = 20;
const STATEMENTS_KEPT = 200;

export interface SqliteDatabase extends Database {
  readonly connection: DatabaseSync;
  readonly gate: WriteGate;
  readonly file: string;
  /** Ends all writing: a check has found the file damaged. */
  setDamaged(reason: string): void;
  readonly sync: LogSync;
  /** Raised with every transaction, and noted once it is on disk (commit-counter.ts). */
  readonly counter: CommitCounter;
  /** Commits that the start accepted as lost, because it was told to. */
  readonly missing: MissingCommits | null;
  /** Whether the last program that had it open did not close it. */
  readonly endedUncleanly: boolean;
  /** Once: the descriptors that it closes may be another file's the next time. */
  close(): Promise<void>;
}

export interface OpenOptions {
  /** To go on although acknowledged commits are missing. */
  readonly acceptDataLoss?: boolean;
  /** What syncs the write-ahead log; fs.fdatasync when absent. */
  readonly syncFile?: SyncFile;
}

/**
 * Opens the database file, creates it if needed, and migrates it.
 *
 * @param file path of the database, or ":memory:"
 * @throws StoreUnusable when the file is no database, is damaged, lacks acknowledged commits, is locked, or admits
 *   newer programs only
 */
export function openSqlite(file: string, options: OpenOptions = {}): SqliteDatabase {
  const { connection, counter, missing, endedUncleanly } = connect(file, options);
  let damage: string | null = null;
  const setDamaged = (reason: string) => {
    if (damage !== null) return;
    stopWriting(damageText(basename(file), reason));
  };
  const stopWriting = (reason: string) => {
    damage = reason;
    connection.exec("PRAGMA query_only = ON");
  };
  const explained = (error: unknown) => {
    if (scopeOf(error) === "file") setDamaged((error as Error).message);
    else if (damage === null || scopeOf(error) === "row") return asUnavailable(error, basename(file));
    return new JournalUnavailable(damage ?? "", "damaged");
  };
  /** Reads of a damaged file continue; one that meets the damage itself gets the error that names it. */
  const reading = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw scopeOf(error) === "file" ? explained(error) : error;
    }
  };
  const prepare = statementCache(connection, reading);
  const dialect = new SqliteDialect({
    database: {
      prepare,
      close: () => connection.close(),
    },
  });
  const kysely = new Kysely<Schema>({ dialect });
  const gate = new WriteGate();
  const sync = new LogSync({
    path: file === ":memory:" ? null : `${file}-wal`,
    counter,
    syncFile: options.syncFile,
    failed: (error) => {
      const text = unsyncedText(basename(file), error.message);
      stopWriting(text);
      return {
        waiting: new JournalUnavailable(text, "unknown"),
        later: new JournalUnavailable(text, "damaged"),
      };
    },
  });
  const close = async () => {
    await gate.run(() => sync.durable()).catch(() => {});
    // Closing would copy the log to the database and remove it, though it may not be on disk.
    if (!sync.hasFailed) {
      await kysely.destroy();
      // It closes only what it has used.
      if (connection.isOpen) connection.close();
    }
    sync.close();
    counter.close();
  };
  let closed: Promise<void> | null = null;
  return {
    connection,
    kysely,
    gate,
    file,
    read: <Row>(sql: string, parameters: readonly unknown[]) =>
      gate.look(() => prepare(sql).all(parameters) as Row[]),
    readWithin: <Row>(charsMax: number, sql: string, parameters: readonly unknown[]) =>
      gate.look(() => reading(() => within(prepare(sql).iterate(parameters) as Iterable<Row>, charsMax))),
    async transaction(work) {
      try {
        return await gate.run(async () => {
          const value = await kysely.transaction().execute(async (db) => {
            const done = await work(db);
            counter.raiseIfChanged();
            return done;
          });
          counter.committed();
          return value;
        });
      } catch (error) {
        throw explained(error);
      } finally {
        // What failed may have been told by rows that are not on disk yet.
        await sync.durable();
      }
    },
    durable: () => sync.durable(),
    durableJob: (jobId) => sync.durableJob(jobId),
    sync,
    explained,
    damage: () => damage,
    setDamaged,
    counter,
    missing,
    endedUncleanly,
    close() {
      closed ??= close();
      return closed;
    },
  };
}

/** Takes rows until their texts are too long; the row that exceeds the limit is read and dropped. */
function within<Row>(rows: Iterable<Row>, charsMax: number): Page<Row> {
  const taken: Row[] = [];
  let chars = 0;
  for (const row of rows) {
    // A list of the values would cost half as much again as reading the row.
    for (const column in row) {
      const value = row[column];
      if (typeof value === "string") chars += value.length;
    }
    if (taken.length > 0 && chars > charsMax) return { rows: taken, isCut: true };
    taken.push(row);
  }
  return { rows: taken, isCut: false };
}

function connect(file: string, { acceptDataLoss = false }: OpenOptions) {
  let connection: DatabaseSync | undefined;
  try {
    mustBeWritable(file);
    // Closing a database empties its log and removes it.
    const endedUncleanly = !isEmpty(`${file}-wal`);
    const missing = isEmpty(file) ? null : missingCommits(file);
    if (missing !== null && !acceptDataLoss) throw new StoreUnusable(missingText(file, missing));
    makeOwn(file);
    connection = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
    connection.exec(
      // The first one counts only for a database that is still empty (free-space.ts).
      "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192; PRAGMA foreign_keys = ON",
    );
    migrate(connection, file);
    connection.exec("PRAGMA synchronous = NORMAL");
    const path = file === ":memory:" ? null : commitCountFile(file);
    return { connection, counter: new CommitCounter(connection, path), missing, endedUncleanly };
  } catch (error) {
    connection?.close();
    if (error instanceof StoreUnusable) throw error;
    throw new StoreUnusable(explain(error, file));
  }
}

function isEmpty(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

function missingText(file: string, { stored, acknowledged }: MissingCommits): string {
  return (
    `The database ${file} lacks ${acknowledged - stored} of ${acknowledged} acknowledged commits: its write-ahead log ` +
    `${file}-wal was removed or damaged, or the database was replaced by an older one. Put the right files back, or move ` +
    "SVC_HOME away and restore the newest backup with `troupe restore FILE`. To go on with what is left, start once with " +
    "--accept-data-loss."
  );
}

/** A new one is for its owner alone, and so are the files beside it, to which SQLite gives its mode. */
function makeOwn(file: string): void {
  if (file === ":memory:" || existsSync(file)) return;
  try {
    closeSync(openSync(file, "a", 0o600));
  } catch {
    // SQLite gets the same error and reports it.
  }
}

/** Checked before SQLite opens it: beside a file that it may only read, it creates others that cannot be written. */
function mustBeWritable(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new StoreUnusable(`The database ${file} cannot be opened: it is a folder. Move it away.`);
  }
  try {
    accessSync(file, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM" || code === "EROFS")
      throw new StoreUnusable(readOnlyText(file));
  }
}

/** Caches prepared statements by their text: Kysely compiles a query to text each time. */
function statementCache(connection: DatabaseSync, reading: Reading): (sql: string) => SqliteStatement {
  const statements = new Map<string, SqliteStatement>();
  return (sql) => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= STATEMENTS_KEPT) statements.clear();
      statement =
        sql === "rollback"
          ? rollback(connection)
          : adapt(
              reading(() => connection.prepare(sql)),
              reading,
            );
      statements.set(sql, statement);
    }
    return statement;
  };
}

/** SQLite rolls back by itself when the disk is full; doing it again would raise an error that hides the cause. */
function rollback(connection: DatabaseSync): SqliteStatement {
  const run = () => {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    return { changes: 0, lastInsertRowid: 0 };
  };
  return { reader: false, all: () => [], run, iterate: () => [][Symbol.iterator]() };
}

/** Calls back, and converts an error that shows damage. */
type Reading = <T>(read: () => T) => T;

/** node:sqlite's statement as Kysely's dialect wants it. */
function adapt(statement: StatementSync, reading: Reading): SqliteStatement {
  type Values = Parameters<StatementSync["all"]>;
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => reading(() => statement.all(...(parameters as Values))),
    run: (parameters) => statement.run(...(parameters as Values)),
    iterate: (parameters) => statement.iterate(...(parameters as Values)) as IterableIterator<unknown>,
  };
}
