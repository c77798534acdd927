// The databases that the store's contracts run on: one more kind of database is one more entry here.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Journal } from "../../src/engine/journal.ts";
import type { Database } from "../../src/store/sql/database.ts";
import { openSqlite, type SqliteDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { newDatabase } from "./new-database.ts";

export interface OpenDatabase {
  readonly database: Database;
  readonly journal: Journal;
  /** Opens it again, with what is on disk only. */
  reopen(): Promise<OpenDatabase>;
  /** From now on the commit of a transaction that inserts a job fails. @returns what repairs it */
  breakCommits(): () => void;
  close(): Promise<void>;
}

export interface DatabaseKind {
  readonly name: string;
  /** Makes an empty one, which is gone when it is closed. */
  create(): Promise<OpenDatabase>;
}

export const databases: readonly DatabaseKind[] = [{ name: "SQLite", create: createSqlite }];

export type ContractTest<Under> = (sentence: string, body: (under: Under) => Promise<void>) => void;

/**
 * Runs tests on each kind of database, every one on an empty one.
 *
 * @param subject of the contract, such as "the records of operations"
 * @param under what the tests get
 */
export function contractOnEach<Under>(
  subject: string,
  under: (open: OpenDatabase) => Under | Promise<Under>,
  tests: (test: ContractTest<Under>) => void,
): void {
  for (const { name, create } of databases) {
    describe(`${name} as ${subject}`, () => {
      tests((sentence, body) =>
        it(sentence, async () => {
          const open = await create();
          try {
            await body(await under(open));
          } finally {
            await open.close();
          }
        }),
      );
    });
  }
}

async function createSqlite(): Promise<OpenDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-store-"));
  const file = join(folder, "troupe.db");
  const opened = (database: SqliteDatabase): OpenDatabase => {
    return {
      database,
      journal: new SqliteJournal(database),
      async reopen() {
        await database.close();
        return opened(openSqlite(file));
      },
      breakCommits: () => breakCommits(database),
      async close() {
        await database.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  };
  return opened(await newDatabase(file));
}

/** A reference to another table that nothing satisfies is noticed by the commit, and not before. */
function breakCommits({ connection }: SqliteDatabase): () => void {
  connection.exec(`
    CREATE TABLE referenced (id INTEGER PRIMARY KEY);
    CREATE TABLE broken (id INTEGER REFERENCES referenced DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER breaks AFTER INSERT ON job_definitions BEGIN INSERT INTO broken VALUES (1); END`);
  return () => connection.exec("DROP TRIGGER breaks; DROP TABLE broken; DROP TABLE referenced");
}
