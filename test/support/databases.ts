// The databases that the store's contracts run on: one more kind of database is one more entry here.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Journal } from "../../src/engine/journal.ts";
import { openPostgres } from "../../src/store/postgres/database.ts";
import { PostgresJournal } from "../../src/store/postgres/journal.ts";
import type { Database } from "../../src/store/sql/database.ts";
import { openSqlite, type SqliteDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { newDatabase } from "./new-database.ts";
import { inPostgres, returnPostgres, takePostgres } from "./postgres.ts";

export interface OpenDatabase {
  readonly database: Database;
  readonly journal: Journal;
  /** Opens it again, with what is on disk only. */
  reopen(): Promise<OpenDatabase>;
  /** From now on the commit of a transaction that inserts a job fails. @returns what repairs it */
  breakCommits(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

export interface DatabaseKind {
  readonly name: string;
  /** Makes an empty one, which is gone when it is closed. */
  create(): Promise<OpenDatabase>;
}

export const databases: readonly DatabaseKind[] = [
  { name: "SQLite", create: createSqlite },
  { name: "PostgreSQL", create: createPostgres },
];

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

async function createPostgres(): Promise<OpenDatabase> {
  const url = await takePostgres();
  /** Of what is open now: a test closes what it was given, and not what it has opened again. */
  let end = async () => {};
  const open = async (): Promise<OpenDatabase> => {
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    end = async () => {
      await journal.close();
      await database.close();
    };
    return {
      database,
      journal,
      async reopen() {
        await end();
        return open();
      },
      breakCommits: () => breakPostgresCommits(url),
      async close() {
        await end();
        await returnPostgres(url);
      },
    };
  };
  return open();
}

/** A reference to another table that nothing satisfies is noticed by the commit, and not before. */
const REFERENCE = `
    CREATE TABLE referenced (id INTEGER PRIMARY KEY);
    CREATE TABLE broken (id INTEGER REFERENCES referenced DEFERRABLE INITIALLY DEFERRED);`;

async function breakCommits({ connection }: SqliteDatabase): Promise<() => Promise<void>> {
  connection.exec(`${REFERENCE}
    CREATE TRIGGER breaks AFTER INSERT ON job_definitions BEGIN INSERT INTO broken VALUES (1); END`);
  return async () => connection.exec("DROP TRIGGER breaks; DROP TABLE broken; DROP TABLE referenced");
}

async function breakPostgresCommits(url: string): Promise<() => Promise<void>> {
  await inPostgres(
    url,
    `${REFERENCE}
    CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO broken VALUES (1); RETURN NULL; END';
    CREATE TRIGGER breaks AFTER INSERT ON job_definitions FOR EACH ROW EXECUTE FUNCTION break()`,
  );
  return () => inPostgres(url, "DROP FUNCTION break CASCADE; DROP TABLE broken; DROP TABLE referenced");
}
