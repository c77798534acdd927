// The records of what needs attention on real SQLite: the contract, and what only SQLite can show.

import assert from "node:assert/strict";
import { test } from "node:test";
import { attentionRecordsContract } from "../../../test/support/attention-records-contract.ts";
import { openSqlite } from "../sqlite/database.ts";
import { SqliteJournal } from "../sqlite/journal.ts";
import { SqlAttentionRecords } from "./attention-records.ts";

attentionRecordsContract("SQLite", async () => {
  const database = openSqlite(":memory:");
  return {
    journal: new SqliteJournal(database),
    records: new SqlAttentionRecords(database),
    removeJob: async (jobId) => {
      database.connection.prepare("DELETE FROM jobs WHERE job_id = ?").run(jobId);
    },
    close: () => database.close(),
  };
});

test("no read scans a table or sorts, whatever the filters", async () => {
  const database = openSqlite(":memory:");
  const { connection } = database;
  const asked = new Set<string>();
  const prepare = connection.prepare.bind(connection);
  connection.prepare = (sql, ...rest) => {
    asked.add(sql);
    return prepare(sql, ...rest);
  };
  const records = new SqlAttentionRecords(database);
  for (const status of [null, "pending"] as const) {
    await records.humanRequests("g-1", { status, limit: 5, afterSeq: 0 });
  }
  for (const status of [null, "open"] as const) {
    await records.deadLetters("g-1", { status, limit: 5, before: null });
  }
  await records.humanRequest("g-1", "a");
  await records.deadLetter("g-1", "a");
  await records.newestOpenLetter("g-1");
  await records.openLetters("g-1", { after: "", through: "b", limit: 5 });
  connection.prepare = prepare;
  assert.equal(asked.size, 8);
  for (const sql of asked) {
    for (const { detail } of connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()) {
      assert.doesNotMatch(String(detail), /TEMP B-TREE/, sql);
      if (/^SCAN /.test(String(detail))) assert.match(String(detail), /^SCAN CONSTANT ROW/, sql);
      // A filter is part of the index, so that what it leaves out is not read.
      if (/\bstatus\b.* = /.test(sql) && /(human_requests|dead_letters)/.test(String(detail))) {
        assert.match(String(detail), /_status \(job_id=\? AND status=\?/, sql);
      }
    }
  }
  await database.close();
});
