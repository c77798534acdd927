// Errors as SQLite makes them, and what becomes of the work that met them.

import assert from "node:assert/strict";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { sql } from "kysely";
import { overwriteRootPage } from "../../../test/support/damage.ts";
import { changes, next } from "../../../test/support/journal-records.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { openSqlite } from "./database.ts";
import { asUnavailable, scopeOf } from "./errors.ts";
import { SqliteJournal } from "./journal.ts";

/** The error that a statement meets in a database of its own. */
function errorOf(statement: string): unknown {
  const db = new DatabaseSync(":memory:");
  try {
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL CHECK (length(name) < 5)) STRICT");
    db.exec("INSERT INTO t VALUES (1, 'one'); PRAGMA max_page_count = 2");
    db.exec(statement);
  } catch (error) {
    return error;
  } finally {
    db.close();
  }
  return assert.fail("no error");
}

test("a violated constraint concerns the row; a full disk is transient; a file that is no database is damaged", async () => {
  for (const one of [
    "INSERT INTO t VALUES (1, 'two')",
    "INSERT INTO t VALUES (2, NULL)",
    "INSERT INTO t VALUES (2, 'longer')",
    "INSERT INTO t VALUES ('x', 'two')",
    "INSERT INTO t VALUES (2, zeroblob(2000000000))",
    "SELECT json('no json')",
  ]) {
    assert.equal(scopeOf(errorOf(one)), "row", one);
  }
  assert.equal(scopeOf(new TypeError("a mistake")), "row");
  assert.equal(scopeOf(undefined), "row");
  assert.equal(scopeOf(errorOf("CREATE TABLE more (id)")), "passing");
  const sqlite = (errcode: number) => Object.assign(new Error("x"), { code: "ERR_SQLITE_ERROR", errcode });
  for (const code of [5, 261, 6, 7, 8, 10, 266, 13, 14])
    assert.equal(scopeOf(sqlite(code)), "passing", `${code}`);
  for (const code of [11, 267, 26, 8202, 8458, 1032]) assert.equal(scopeOf(sqlite(code)), "file", `${code}`);
  const outcome = (code: number) => (asUnavailable(sqlite(code), "t.db") as JournalUnavailable).outcome;
  assert.deepEqual([outcome(13), outcome(778), outcome(1034)], ["not_written", "not_written", "unknown"]);
});

test("a damaged page: reading it reports the damage and what to do, writing ends, other reads continue", async () => {
  const folder = await mkdtemp(join(tmpdir(), "troupe-damaged-"));
  const file = join(folder, "troupe.db");
  try {
    const first = openSqlite(file);
    await new SqliteJournal(first).commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1" })]);
    await first.close();
    await overwriteRootPage(file, "agents");
    const database = openSqlite(file);
    const journal = new SqliteJournal(database);
    const isDamaged = (error: unknown) =>
      error instanceof JournalUnavailable &&
      error.outcome === "damaged" &&
      /troupe\.db is damaged.*`troupe restore FILE`/.test(error.message);
    assert.equal(database.damage(), null);
    await journal.commit([next(1, { jobId: "b-1" })]);
    await assert.rejects(journal.load("a-1"), isDamaged);
    assert.match(database.damage() ?? "", /is damaged/);
    const before = await contentOf(file);
    await assert.rejects(journal.commit([next(2, { jobId: "b-1" })]), isDamaged);
    await assert.rejects(journal.commit([]), isDamaged);
    await assert.rejects(journal.claim("me", 1), isDamaged);
    await assert.rejects(
      database.transaction((db) => sql`DELETE FROM garbage`.execute(db)),
      isDamaged,
    );
    assert.deepEqual(await contentOf(file), before);
    const rows = await database.read<{ job_id: string }>("SELECT job_id FROM jobs ORDER BY job_id", []);
    assert.deepEqual(
      rows.map(({ job_id }) => job_id),
      ["a-1", "b-1"],
    );
    await assert.rejects(database.read("SELECT * FROM agents", []), isDamaged);
    await assert.rejects(database.readWithin(9, "SELECT * FROM agents", []), isDamaged);
    await database.close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** The file and what waits beside it to be moved into it. */
async function contentOf(file: string): Promise<readonly Buffer[]> {
  return Promise.all(
    [file, `${file}-wal`].map(async (path) => {
      await using one = await open(path);
      return one.readFile();
    }),
  );
}
