// A program's store on PostgreSQL, which others use too, with a home that holds no other database.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sql } from "kysely";
import { changes, next } from "../../../test/support/journal-records.ts";
import { END_CONNECTIONS, inPostgres, onPostgres } from "../../../test/support/postgres.ts";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../app/clock.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { openStore } from "../open-store.ts";
import { openSqlite } from "../sqlite/database.ts";

const home = mkdtempSync(join(tmpdir(), "troupe-open-"));
after(() => rmSync(home, { recursive: true, force: true }));

const log = { warn: () => {}, error: () => {} };
const open = (databaseUrl: string, at = home) =>
  openStore({ home: at, databaseUrl, clock: systemClock, log });

test("a program that has lost its connections goes on, and so do others on the same database", () =>
  onPostgres(async (url) => {
    const first = await open(url);
    const second = await open(url);
    await first.journal.commit([changes()]);
    await inPostgres(url, END_CONNECTIONS);
    const commit = () =>
      first.journal.commit([next(1)]).catch((error: unknown) => {
        assert.ok(error instanceof JournalUnavailable && error.outcome !== "damaged", String(error));
        return null;
      });
    assert.deepEqual(await until("it commits again", commit), { lost: [], unwritable: [] });
    assert.equal((await second.journal.load("g-1"))?.revision, 2);
    await first.close();
    await second.close();
  }));

test("the server ends a transaction whose program stands still, so that it holds nobody up", () =>
  onPostgres(async (url) => {
    const store = await open(url);
    const { rows } = await store.database.transaction((db) =>
      sql<{ limit: string }>`SELECT current_setting('idle_in_transaction_session_timeout') AS limit`.execute(
        db,
      ),
    );
    assert.deepEqual(rows, [{ limit: "5s" }]);
    await store.close();
  }));

test("a home with a SQLite database is refused: what it holds is of another store", () =>
  onPostgres(async (url) => {
    const other = mkdtempSync(join(tmpdir(), "troupe-open-"));
    await openSqlite(join(other, "troupe.db")).close();
    await assert.rejects(open(url, other), { name: "StoreUnusable", message: /holds a SQLite database/ });
    writeFileSync(join(other, "troupe.db"), "");
    await (await open(url, other)).close();
    rmSync(other, { recursive: true });
  }));

test("a home with the files of a lost database is refused, unless told to go on without it", () =>
  onPostgres(async (url) => {
    const other = mkdtempSync(join(tmpdir(), "troupe-open-"));
    mkdirSync(join(other, "blobs"));
    writeFileSync(join(other, "blobs", "artifact"), "");
    const message = /is empty, but SVC_HOME \S+ holds blobs\/, which belong to another one/;
    await assert.rejects(open(url, other), { name: "StoreUnusable", message });
    const store = await openStore({
      home: other,
      databaseUrl: url,
      newDatabase: true,
      clock: systemClock,
      log,
    });
    await store.checkKey(["a"]);
    await store.close();
    await (await open(url, other)).close();
    rmSync(other, { recursive: true });
  }));

test("programs with another secret key are refused, and --new-key replaces the one that is lost", () =>
  onPostgres(async (url) => {
    const started = async (ids: readonly [string, ...string[]], newKey = false) => {
      const store = await openStore({ home, databaseUrl: url, newKey, clock: systemClock, log });
      const neededKey = await store.needsKey();
      const encrypts = await store.checkKey(ids).finally(() => store.close());
      return { neededKey, encrypts };
    };
    assert.deepEqual(await started(["a"]), { neededKey: false, encrypts: "a" });
    assert.deepEqual(await started(["b", "a"]), { neededKey: true, encrypts: "a" });
    await assert.rejects(started(["b"]), {
      name: "StoreUnusable",
      message: /another secret key than this program has\. Copy secret\.key/,
    });
    assert.equal((await started(["b", "a"], true)).encrypts, "b");
    await assert.rejects(started(["a"]), { name: "StoreUnusable" });
  }));

test("the size of the database is known, and stays so while the server cannot be asked", () =>
  onPostgres(async (url) => {
    const store = await open(url);
    const { database } = await store.sizes();
    assert.ok(database > 100_000);
    await inPostgres(url, END_CONNECTIONS);
    await store.close();
    assert.deepEqual(await store.sizes(), { database, wal: 0 });
  }));
