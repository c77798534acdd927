// What is PostgreSQL's own: its schema's versions, connections that are lost, and what its texts cannot hold.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { changes, message, next } from "../../../test/support/journal-records.ts";
import { END_CONNECTIONS, inPostgres, onPostgres } from "../../../test/support/postgres.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import { programVersion } from "../../lib/version.ts";
import type { Database } from "../sql/database.ts";
import { sqlJobRecords } from "../sql/jobs.ts";
import { openPostgres } from "./database.ts";
import { PostgresJournal } from "./journal.ts";
import { PostgresNodes } from "./nodes.ts";

test("programs that start at the same time migrate an empty database once", () =>
  onPostgres(async (url) => {
    const opened = await Promise.all([openPostgres(url), openPostgres(url), openPostgres(url)]);
    for (const { kysely } of opened) {
      const { length } = await kysely.selectFrom("jobs").selectAll().execute();
      assert.equal(length, 0);
    }
    await Promise.all(opened.map((database) => database.close()));
  }));

test("a newer schema is used while it admits this program, and refused when it does not", () =>
  onPostgres(async (url) => {
    await (await openPostgres(url)).close();
    await inPostgres(url, "INSERT INTO schema_migrations VALUES ('9001-later.sql')");
    await (await openPostgres(url)).close();
    await inPostgres(url, "UPDATE schema_admits SET oldest = '9001-later.sql', version = '7.1.0'");
    await assert.rejects(openPostgres(url), {
      name: "StoreUnusable",
      message: new RegExp(
        `for Troupe 7.1.0 and newer .*9001-later.* this is Troupe ${programVersion()}. Start version 7.1.0 or`,
      ),
    });
    await inPostgres(
      url,
      "UPDATE schema_admits SET oldest = ''; DELETE FROM schema_migrations WHERE name LIKE '9%'",
    );
  }));

test("a program goes on reading and writing when a newer one adds columns to its tables", () =>
  onPostgres(async (url) => {
    const database = await openPostgres(url);
    const nodes = new PostgresNodes(database, 10_000, () => null);
    const kept = () => database.kysely.selectFrom("garbage").selectAll().execute();
    const keptThen = () => database.transaction((db) => db.selectFrom("garbage").selectAll().execute());
    const present = () => nodes.present();
    const uses = [kept, keptThen, present];
    try {
      for (const column of ["later", "latest"]) {
        // So often that the statements are prepared, on several connections.
        for (let n = 0; n < 4; n++) for (const use of uses) await Promise.all([use(), use(), use()]);
        await inPostgres(
          url,
          `ALTER TABLE garbage ADD COLUMN ${column} TEXT; ALTER TABLE nodes ADD COLUMN ${column} TEXT`,
        );
        // A transaction that meets it has to begin again.
        if (column === "latest") await assert.rejects(keptThen(), { name: "JournalUnavailable" });
        for (const use of uses) assert.deepEqual(await Promise.all([use(), use(), use()]), [[], [], []]);
      }
    } finally {
      await inPostgres(
        url,
        ["garbage", "nodes"]
          .map((table) => `ALTER TABLE ${table} DROP COLUMN IF EXISTS later, DROP COLUMN IF EXISTS latest;`)
          .join(""),
      );
      await nodes.close();
      await database.close();
    }
  }));

test("a server that cannot be reached is named, without user and password", async () => {
  const url = "postgres://me:hunter2@127.0.0.1:1/troupe";
  await assert.rejects(openPostgres(url), (error: Error) => {
    assert.equal(error.name, "StoreUnusable");
    assert.match(error.message, /The database 127\.0\.0\.1:1\/troupe cannot be used \(.*ECONNREFUSED/);
    assert.doesNotMatch(error.message, /me|hunter2/);
    return true;
  });
});

test("of jobs that are loaded together a damaged one is refused alone", () =>
  onPostgres(async (url) => {
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    await journal.commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1", messages: [message(1, 0)] })]);
    await inPostgres(url, "UPDATE messages SET message_json = '{' WHERE job_id = 'b-1'");
    const [good, damaged] = await Promise.allSettled([journal.load("a-1"), journal.load("b-1")]);
    assert.equal(good.status, "fulfilled");
    assert.ok(damaged.status === "rejected" && damaged.reason instanceof SyntaxError);
    await journal.close();
    await database.close();
  }));

test("a job is loaded while the journal waits for the end of a commit", () =>
  onPostgres(async (url) => {
    // A load that waited behind it would end with it.
    const database = await openPostgres(`${url}&options=-c%20lock_timeout%3D5s`);
    const journal = new PostgresJournal(database);
    await journal.commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1" })]);
    let waiting = Promise.resolve<unknown>(null);
    await inPostgres(url, "BEGIN; SELECT FROM jobs WHERE job_id = 'a-1' FOR UPDATE", async () => {
      waiting = journal.commit([next(1, { jobId: "a-1" })]);
      const load = await Promise.race([journal.load("b-1"), waiting]);
      assert.deepEqual(load, await journal.load("b-1"));
    });
    await waiting;
    await journal.close();
    await database.close();
  }));

test("after all connections were ended reads, writes and commits go on", () =>
  onPostgres(async (url) => {
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    const records = sqlJobRecords(database);
    await journal.commit([changes()]);
    await inPostgres(url, END_CONNECTIONS);
    const attempts = async <T>(ask: () => Promise<T>): Promise<T> => {
      try {
        return await ask();
      } catch (error) {
        // The first to use a connection may be the one to notice that it is gone.
        assert.ok(error instanceof JournalUnavailable);
        return ask();
      }
    };
    assert.deepEqual(await attempts(() => journal.commit([next(1)])), { lost: [], unwritable: [] });
    assert.equal((await attempts(() => records.find("g-1")))?.jobId, "g-1");
    await attempts(() => database.transaction((db) => db.selectFrom("jobs").selectAll().execute()));
    await journal.close();
    await database.close();
  }));

test("a commit whose answer was lost has an unknown outcome, and is found applied when it is sent again", () =>
  onPostgres(async (url) => {
    await using proxy = await proxyTo(url);
    const database = await openPostgres(proxy.url);
    const journal = new PostgresJournal(database);
    await journal.commit([changes()]);
    proxy.cutAtNextCommit();
    const part = next(1, { eventLines: ['{"n":2}'] });
    await assert.rejects(journal.commit([part]), { name: "JournalUnavailable", outcome: "unknown" });
    assert.equal((await journal.load("g-1"))?.revision, 2);
    assert.deepEqual(await journal.commit([part]), { lost: [], unwritable: [] });
    assert.equal((await journal.load("g-1"))?.revision, 2);
    await journal.close();
    await database.close();
  }));

test("jobs that were taken over by a claim whose answer was lost come with the next one", () =>
  onPostgres(async (url) => {
    await using proxy = await proxyTo(url);
    const database = await openPostgres(proxy.url);
    const journal = new PostgresJournal(database);
    await journal.commit([changes({ owner: "dead/1" })]);
    proxy.cutAtNextCommit();
    await assert.rejects(journal.claim("me/1", 10), { name: "JournalUnavailable", outcome: "unknown" });
    const epochs = [(await journal.load("g-1"))?.epoch];
    const claims = [await journal.claim("me/1", 10), await journal.claim("me/1", 10)];
    epochs.push((await journal.load("g-1"))?.epoch);
    await journal.close();
    await database.close();
    assert.deepEqual(claims, [["g-1"], []]);
    assert.deepEqual(epochs, [2, 2]);
  }));

test("a statement whose answer was lost before the commit was sent has not been written", () =>
  onPostgres(async (url) => {
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    await journal.commit([changes()]);
    await inPostgres(
      url,
      `CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
       CREATE TRIGGER cuts AFTER UPDATE ON jobs EXECUTE FUNCTION cut()`,
    );
    const part = next(1, { eventLines: ['{"n":2}'] });
    await assert.rejects(journal.commit([part]), { name: "JournalUnavailable", outcome: "not_written" });
    await inPostgres(url, "DROP FUNCTION cut CASCADE");
    assert.equal((await journal.load("g-1"))?.revision, 1);
    await journal.close();
    await database.close();
  }));

/** A way to the server that can end a connection when a COMMIT was made, and before its answer comes. */
async function proxyTo(url: string) {
  const folder = await mkdtemp(join(tmpdir(), "troupe-pg-proxy-"));
  const target = join(new URL(url).searchParams.get("host")!, ".s.PGSQL.5432");
  let isCutting = false;
  const sent: Buffer[] = [];
  const server = createServer((client) => {
    const upstream = connect(target);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    client.on("data", (data: Buffer) => {
      sent.push(data);
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      if (!isCutting || !data.includes("COMMIT\0")) client.write(data);
      else {
        isCutting = false;
        end();
      }
    });
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  });
  await new Promise<void>((resolve) => server.listen(join(folder, ".s.PGSQL.5432"), resolve));
  const through = new URL(url);
  through.searchParams.set("host", folder);
  return {
    url: through.href,
    /** What all connections have sent, as Latin-1. */
    sent: () => Buffer.concat(sent).toString("latin1"),
    cutAtNextCommit: () => {
      isCutting = true;
    },
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true });
    },
  };
}

test("what a program has read in a transaction stays true for it, also when another one writes", () =>
  onPostgres(async (url) => {
    const programs = await Promise.all([openPostgres(url), openPostgres(url)]);
    const takeNext = (database: Database) =>
      database.transaction(async (db) => {
        const rows = await db.selectFrom("run_ports").select("port").execute();
        await db
          .insertInto("run_ports")
          .values({ node: "", port: rows.length, run_id: "run_1", label: "" })
          .execute();
        return rows.length;
      });
    const taken = await Promise.all(range(20).map((i) => takeNext(programs[i % 2]!)));
    assert.deepEqual(
      taken.toSorted((a, b) => a - b),
      range(20),
    );
    await Promise.all(programs.map((database) => database.close()));
  }));

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Parse messages with a name: "P", four bytes of length, the name. */
const NAMED = /P\0[\s\S]{3}(?:s\d+|[a-z]+_[a-z_]+)\0/;

test("behind a pooler nothing is left on a connection: no statement is prepared, and no start has options", () =>
  onPostgres(async (url) => {
    for (const isPooled of [false, true]) {
      await using proxy = await proxyTo(url);
      const database = await openPostgres(proxy.url, { isPooled });
      const journal = new PostgresJournal(database);
      const jobId = `g-${isPooled}`;
      const { insert } = changes();
      await journal.commit([changes({ jobId, insert: { ...insert!, runId: jobId } })]);
      for (let i = 1; i < 5; i++) {
        await journal.commit([next(i, { jobId })]);
        assert.equal((await sqlJobRecords(database).find(jobId))?.jobId, jobId);
      }
      await database.transaction((db) => db.selectFrom("jobs").selectAll().execute());
      await journal.close();
      await database.close();
      const sent = proxy.sent();
      assert.equal(NAMED.test(sent), !isPooled);
      assert.ok(!sent.includes("\0options\0"), "a pooler may refuse it");
      assert.equal(
        sent.split("SET LOCAL synchronous_commit = on").length - 1,
        6,
        "each transaction is on disk",
      );
    }
  }));

test("databases that cannot hold what is stored are refused", () =>
  onPostgres(async (url) => {
    const latin = `latin_${new URL(url).pathname.slice(1)}`;
    await inPostgres(url, `DROP DATABASE IF EXISTS ${latin}`);
    await inPostgres(url, `CREATE DATABASE ${latin} ENCODING 'LATIN1' TEMPLATE template0`);
    const at = (name: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;
    await assert.rejects(openPostgres(at(latin)), {
      name: "StoreUnusable",
      message: /encoding LATIN1; Troupe needs UTF8/,
    });
    await inPostgres(url, `DROP DATABASE ${latin}`);
    await assert.rejects(openPostgres(at("nowhere")), { message: /does not exist. Make it with `createdb`/ });
  }));

test("a NUL in a text becomes the replacement character, which PostgreSQL can hold", () =>
  onPostgres(async (url) => {
    const database = await openPostgres(url);
    const journal = new PostgresJournal(database);
    const { insert } = changes();
    await journal.commit([changes({ insert: { ...insert!, jobName: "a\0b" } })]);
    assert.equal((await sqlJobRecords(database).find("g-1"))?.jobName, "a\ufffdb");
    await journal.close();
    await database.close();
  }));
