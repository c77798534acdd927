// Checkpoints on a real database, by the real thread.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { sql } from "kysely";
import { until } from "../../../test/support/until.ts";
import { Checkpoints } from "./checkpoints.ts";
import { openSqlite, type SqliteDatabase } from "./database.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-checkpoints-"));
after(() => rmSync(root, { recursive: true, force: true }));
let files = 0;
let writes = 0;

const PAGES = 50;
const WRITES_MAX = 10_000;
/** Where Linux lists the threads of this process. */
const TASKS = "/proc/self/task";

function open() {
  const database = openSqlite(join(root, `${++files}.db`));
  const idle: (() => void)[] = [];
  const warnings: object[] = [];
  const checkpoints = new Checkpoints(database, {
    clock: {
      after(_, run) {
        idle.push(run);
        return () => {};
      },
    },
    log: { warn: (fields) => warnings.push(fields), error: (fields) => warnings.push(fields) },
    logPagesMax: PAGES,
  });
  return {
    database,
    idle,
    warnings,
    async close() {
      await checkpoints.close();
      await database.close();
    },
  };
}

const write = (database: SqliteDatabase, name: string) =>
  database.transaction((db) =>
    sql`INSERT INTO garbage VALUES ('test', ${name.padEnd(2_000, ".")})`.execute(db),
  );

function logOf(database: SqliteDatabase) {
  const row = database.connection.prepare("PRAGMA wal_checkpoint(NOOP)").get();
  return { pages: Number(row?.log), copied: Number(row?.checkpointed) };
}

/** Writes without a pause, until `isEnough`. @returns how many writes that were */
async function writeUntil(database: SqliteDatabase, isEnough: () => boolean): Promise<number> {
  for (let n = 1; n <= WRITES_MAX; n++) {
    await write(database, `${++writes}`);
    if (isEnough()) return n;
  }
  throw new Error(`It did not happen within ${WRITES_MAX} writes`);
}

test("the log begins again and again while others write without a pause, and all of it is in the database", async () => {
  const { database, warnings, close } = open();
  let begins = 0;
  let pagesBefore = 0;
  const written = await writeUntil(database, () => {
    const { pages } = logOf(database);
    if (pages < pagesBefore) begins++;
    pagesBefore = pages;
    return begins === 5;
  });
  assert.equal(database.connection.prepare("PRAGMA wal_autocheckpoint").get()?.wal_autocheckpoint, 0);
  assert.deepEqual(warnings, []);
  await close();
  const closed = new DatabaseSync(database.file, { readOnly: true });
  assert.equal(closed.prepare("SELECT count(*) AS n FROM garbage").get()?.n, written);
  assert.equal(closed.prepare("PRAGMA integrity_check").get()?.integrity_check, "ok");
  closed.close();
});

test("reads are answered while the log begins anew on another connection, and writes wait for their turn", async () => {
  const { database, close } = open();
  const elsewhere = Promise.withResolvers<void>();
  const turn = database.gate.runElsewhere(() => elsewhere.promise);
  let isWritten = false;
  const writing = write(database, "waits").then(() => {
    isWritten = true;
  });
  let rows: readonly unknown[] | null = null;
  const reading = database.read("SELECT * FROM garbage", []).then((found) => {
    rows = found;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([rows, isWritten], [[], false]);
  elsewhere.resolve();
  await Promise.all([turn, writing, reading]);
  assert.equal((await database.read("SELECT * FROM garbage", [])).length, 1);
  await close();
});

test("while a backup reads, the log grows, and begins again after it", async () => {
  const { database, warnings, close } = open();
  const backup = new DatabaseSync(database.file, { readOnly: true });
  backup.exec("BEGIN");
  backup.prepare("SELECT count(*) FROM garbage").get();
  await writeUntil(database, () => logOf(database).pages > 4 * PAGES);
  backup.exec("COMMIT");
  backup.close();
  await writeUntil(database, () => logOf(database).pages < PAGES);
  assert.deepEqual(warnings, [], "a reader is no fault");
  await close();
});

test("the thread ends when it is not needed, and the next checkpoint starts another one", async (t) => {
  if (!existsSync(TASKS)) return t.skip("the system does not list a process's threads");
  const { database, idle, close } = open();
  for (const round of [1, 2]) {
    await writeUntil(database, () => idle.length === round);
    const threads = readdirSync(TASKS).length;
    idle[round - 1]!();
    await until("the thread has ended", () => readdirSync(TASKS).length < threads);
  }
  await close();
});
