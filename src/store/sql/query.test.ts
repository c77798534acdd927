// Reads that are compiled once: planned once too, and apart from transactions.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StatementSync } from "node:sqlite";
import { after, test } from "node:test";
import { changes } from "../../../test/support/journal-records.ts";
import { openSqlite } from "../sqlite/database.ts";
import { SqliteJournal } from "../sqlite/journal.ts";
import { sqlJobRecords } from "./jobs.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-queries-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

/** How often SQLite has parsed and planned the statement again since it was prepared. */
function timesPlannedAgain(statement: StatementSync): number {
  return Number((statement as unknown as { stat(name: "reprepare"): number }).stat("reprepare"));
}

test("reads of the request paths are planned once, whatever their arguments", async () => {
  const database = openSqlite(newFile());
  const { connection } = database;
  const statements = new Map<string, StatementSync>();
  const prepare = connection.prepare.bind(connection);
  connection.prepare = (sql, ...rest) => {
    const statement = prepare(sql, ...rest);
    statements.set(sql, statement);
    return statement;
  };
  const journal = new SqliteJournal(database);
  await journal.commit(["j-1", "j-2", "j-3"].map((jobId) => changes({ jobId })));
  statements.clear();
  const records = sqlJobRecords(database);
  for (const n of [1, 2, 3]) {
    const jobId = `j-${n}`;
    const job = await records.find(jobId);
    assert.equal(job?.jobId, jobId);
    await records.detail(jobId, n);
    await records.events(jobId, n);
    await records.findRun(job.runId);
    await records.artifactPage(job.runId, 10, null);
    await records.artifact(job.runId, `a-${n}`);
    for (const includeTerminal of [true, false]) {
      const after = n === 1 ? null : { submittedAtMs: job.submittedAtMs, jobId };
      await records.page({ includeTerminal, limit: n, after });
    }
  }
  assert.ok(statements.size >= 8, `${statements.size} statements`);
  for (const [sql, statement] of statements) assert.equal(timesPlannedAgain(statement), 0, sql);
  await database.close();
});

test("a read waits for the transaction under way, and sees all of it or nothing", async () => {
  const database = openSqlite(newFile());
  const records = sqlJobRecords(database);
  const journal = new SqliteJournal(database);
  await journal.commit([changes({ jobId: "j-1" })]);
  const hasDeleted = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  const undone = database.transaction(async (db) => {
    await db.deleteFrom("jobs").where("job_id", "=", "j-1").execute();
    hasDeleted.resolve();
    await mayEnd.promise;
    throw new Error("undone");
  });
  await hasDeleted.promise;
  const found = records.find("j-1");
  mayEnd.resolve();
  await assert.rejects(undone, /undone/);
  assert.equal((await found)?.jobId, "j-1");
  await database.close();
});

test("a read runs at once while there is no transaction", async () => {
  const database = openSqlite(newFile());
  const order: string[] = [];
  const read = database.read("SELECT 1 AS one", []).then((rows) => order.push(`read ${rows.length}`));
  const write = database.gate.run(() => order.push("write"));
  // The read has happened already: the writer behind it did not have to wait.
  assert.deepEqual(order, ["write"]);
  await Promise.all([read, write]);
  await assert.rejects(database.read("SELECT no_such_column", []), /no_such_column/);
  await database.close();
});
