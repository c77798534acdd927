// What a look at a whole database finds; who acts on it is in test/integration/damaged-store.test.ts.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { overwriteRootPage } from "../../../test/support/damage.ts";
import { changes } from "../../../test/support/journal-records.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";
import { quickCheck } from "./quick-check.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-quick-check-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A database with two jobs, which no program has open. */
async function stored(name: string): Promise<string> {
  const file = join(folder, name);
  const database = openSqlite(file);
  await new SqliteJournal(database).commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1" })]);
  await database.close();
  return file;
}

test("a database as it was written has neither damage nor changed rows", async () => {
  assert.deepEqual(quickCheck(await stored("whole.db")), { damage: null, changedRows: [] });
});

test("rows that have changed since they were written are named by table and key", async () => {
  const file = await stored("changed.db");
  const connection = new DatabaseSync(file);
  connection.exec(`
    UPDATE jobs SET last_event_json = last_event_json || ' ' WHERE job_id = 'b-1';
    UPDATE job_sources SET manifest_json = manifest_json || ' ' WHERE job_id = 'a-1';
  `);
  connection.close();
  assert.deepEqual(quickCheck(file), { damage: null, changedRows: ["job_sources a-1", "jobs b-1"] });
});

test("a damaged page is reported with its table", async () => {
  const file = await stored("damaged.db");
  await overwriteRootPage(file, "dead_letters");
  const { damage, changedRows } = quickCheck(file);
  assert.match(String(damage), /dead_letters/);
  assert.deepEqual(changedRows, []);
});
