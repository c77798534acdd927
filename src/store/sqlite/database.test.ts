// Opening, migrating and sharing the SQLite file.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { after, test } from "node:test";
import { changes } from "../../../test/support/journal-records.ts";
import { newTally } from "../../engine/tally.ts";
import { ownTrace } from "../../engine/trace.ts";
import { programVersion } from "../../lib/version.ts";
import { openHome } from "../home.ts";
import { StoreUnusable } from "../sql/database.ts";
import { sqlJobRecords } from "../sql/jobs.ts";
import { sqlRetentionRecords } from "../sql/retention.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";
import { WriteGate } from "./write-gate.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-database-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

function tables(file: string): string[] {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all();
  db.close();
  return rows.map((row) => String(row.name));
}

test("migrating from empty makes the tables, and a second time changes nothing", async () => {
  const file = newFile();
  await openSqlite(file).close();
  const first = tables(file);
  assert.ok(first.includes("jobs") && first.includes("schema_migrations"));
  await openSqlite(file).close();
  assert.deepEqual(tables(file), first);
});

test("a log that begins again has its header synced before its frames", async () => {
  const file = newFile();
  for (const _start of ["the first", "the next"]) {
    const database = openSqlite(file);
    const setting = (name: string) =>
      Object.values(database.connection.prepare(`PRAGMA ${name}`).get() ?? {});
    // 1 is NORMAL: with less, SQLite syncs nothing by itself. Commits are synced by log-sync.ts.
    assert.deepEqual([setting("journal_mode"), setting("synchronous")], [["wal"], [1]]);
    await database.close();
  }
});

test("closing twice closes no descriptor that is another file's by then", async () => {
  const database = openSqlite(newFile());
  await database.close();
  // They get the lowest free numbers, which were the database's.
  const others = Array.from({ length: 8 }, () => openSync(import.meta.filename, "r"));
  await database.close();
  for (const other of others) closeSync(other);
});

test("the database file is readable by its owner only", async () => {
  const file = newFile();
  const database = openSqlite(file);
  for (const one of [file, `${file}-wal`]) assert.equal(statSync(one).mode & 0o777, 0o600, one);
  await database.close();
});

test("two programs that start at once on one file both find it migrated", async () => {
  const file = newFile();
  const module = JSON.stringify(new URL("./database.ts", import.meta.url).href);
  const script = `const { openSqlite } = await import(${module}); await openSqlite(${JSON.stringify(file)}).close();`;
  const children = [1, 2, 3].map(() =>
    spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "ignore", "pipe"] }),
  );
  const outcomes = await Promise.all(
    children.map(async (child) => {
      let output = "";
      child.stderr.on("data", (chunk) => {
        output += chunk;
      });
      const [code] = await once(child, "close");
      return { code, output };
    }),
  );
  // A starter may find the file locked by the one that migrates: it reports that, and breaks nothing.
  for (const { code, output } of outcomes)
    if (code !== 0) assert.match(output, /is locked by another program/);
  assert.ok(outcomes.some(({ code }) => code === 0));
  assert.ok(tables(file).includes("jobs"));
});

test("a database of the version before keeps what it has, and an open run its trace", async () => {
  const file = newFile();
  const before = ["0001-initial.sql", "0002-gateway.sql"];
  const old = new DatabaseSync(file);
  old.exec("CREATE TABLE schema_migrations (name TEXT PRIMARY KEY)");
  for (const name of before) {
    old.exec(readFileSync(new URL(`./migrations/${name}`, import.meta.url), "utf8"));
    old.prepare("INSERT INTO schema_migrations VALUES (?)").run(name);
  }
  const insert = (table: string, values: Readonly<Record<string, SQLInputValue>>) => {
    const columns = old.prepare(`PRAGMA table_info(${table})`).all();
    const required = columns.filter((column) => column.notnull === 1).map(({ name, type }) => [name, type]);
    const row = { ...Object.fromEntries(required.map(([name, type]) => [name, emptyOf(type)])), ...values };
    const holes = Object.keys(row).fill("?").join(", ");
    old
      .prepare(`INSERT INTO ${table} (${Object.keys(row).join(", ")}) VALUES (${holes})`)
      .run(...(Object.values(row) as SQLInputValue[]));
  };
  const emptyOf = (type: unknown) => (type === "INTEGER" ? 0 : "[]");
  for (const [id, terminal] of [["open", 0] as const, ["ended", 1] as const]) {
    insert("jobs", { job_id: id, run_id: `run_${id}`, definition_id: "job_1", terminal });
    insert("job_sources", { job_id: id });
    const trace_id = id === "open" ? "a".repeat(32) : "b".repeat(32);
    insert("runs", { run_id: `run_${id}`, runtime_job_id: id, job_id: "job_1", trace_id, terminal });
  }
  old.close();

  const database = openSqlite(file);
  const image = await new SqliteJournal(database).load("open");
  assert.deepEqual(image?.insert.trace, { traceId: "a".repeat(32), parentSpanId: null });
  assert.deepEqual(image?.progress.tally, newTally());
  const ended = await sqlJobRecords(database).find("ended");
  assert.deepEqual(ended?.trace, ownTrace("run_ended"));
  await database.close();
});

test("idempotency records and answers of older tokens belong to the one token principal", async () => {
  const file = newFile();
  const old = new DatabaseSync(file);
  old.exec("CREATE TABLE schema_migrations (name TEXT PRIMARY KEY)");
  for (const name of ["0001-initial.sql", "0002-gateway.sql", "0003-evidence.sql", "0004-blueprints.sql"]) {
    old.exec(readFileSync(new URL(`./migrations/${name}`, import.meta.url), "utf8"));
    old.prepare("INSERT INTO schema_migrations VALUES (?)").run(name);
  }
  const insert = old.prepare("INSERT INTO idempotency VALUES (?, 'k', 'h', 201, '{}', ?, 1)");
  insert.run("token_0123456789abcdef POST /jobs", "of a token");
  insert.run("anonymous POST /jobs", "of nobody");
  const answer = old.prepare(
    "INSERT INTO human_requests VALUES ('job', ?, ?, 'a', 1, 'p', '[]', NULL, 'answered', 1, NULL, ?)",
  );
  answer.run(1, "q1", '{"decision":"yes","principal":"token_0123456789abcdef"}');
  answer.run(2, "q2", '{"decision":"yes","principal":"anonymous"}');
  answer.run(3, "q3", null);
  old.close();

  await openSqlite(file).close();
  const now = new DatabaseSync(file, { readOnly: true });
  const rows = (query: string) =>
    now
      .prepare(query)
      .all()
      .map((row) => Object.values(row));
  assert.deepEqual(rows("SELECT scope, body FROM idempotency ORDER BY scope"), [
    ["anonymous POST /jobs", "of nobody"],
    ["token POST /jobs", "of a token"],
  ]);
  assert.deepEqual(rows("SELECT response_json ->> 'principal' FROM human_requests ORDER BY event_seq"), [
    ["token"],
    ["anonymous"],
    [null],
  ]);
  now.close();
});

test("of older outputs of one producer and name all but the newest become artifacts", async () => {
  const file = newFile();
  const old = new DatabaseSync(file);
  old.exec("CREATE TABLE schema_migrations (name TEXT PRIMARY KEY)");
  const before = readdirSync(new URL("./migrations/", import.meta.url)).filter((name) => name < "0008");
  for (const name of before.sort()) {
    old.exec(readFileSync(new URL(`./migrations/${name}`, import.meta.url), "utf8"));
    old.prepare("INSERT INTO schema_migrations VALUES (?)").run(name);
  }
  const insert = old.prepare(
    `INSERT INTO artifacts (run_id, artifact_id, job_id, agent_id, name, kind, is_primary, size, sha256, content_type, created_at)
     VALUES (?, ?, 'j-1', ?, ?, ?, 0, 1, '', 'text/plain', 0)`,
  );
  for (const row of [
    ["run_1", "art_1", "a", "page.html", "output"],
    ["run_1", "art_2", "a", "page.html", "output"],
    ["run_1", "art_3", "a", "other.html", "output"],
    ["run_1", "art_4", "b", "page.html", "output"],
    ["run_1", "art_5", "a", "page.html", "artifact"],
    ["run_1", "art_6", null, "page.html", "output"],
    ["run_1", "art_7", null, "page.html", "output"],
    ["run_2", "art_8", "a", "page.html", "output"],
  ])
    insert.run(...row);
  old.close();

  const database = openSqlite(file);
  const outputs = database.connection.prepare(
    "SELECT artifact_id FROM artifacts WHERE kind = 'output' ORDER BY artifact_id",
  );
  assert.deepEqual(
    outputs.all().map(({ artifact_id }) => artifact_id),
    ["art_2", "art_3", "art_4", "art_7", "art_8"],
  );
  await database.close();
});

test("a newer schema is used while it admits this program, and refused when it does not", async () => {
  const file = newFile();
  await openSqlite(file).close();
  using db = new DatabaseSync(file);
  db.exec("INSERT INTO schema_migrations (name) VALUES ('9999-from-the-future.sql')");
  await openSqlite(file).close();
  db.exec("UPDATE schema_admits SET oldest = '9999-from-the-future.sql', version = '7.1.0'");
  assert.throws(() => openSqlite(file), {
    name: "StoreUnusable",
    message: new RegExp(
      `for Troupe 7.1.0 and newer .*9999-from-the-future.* this is Troupe ${programVersion()}. Start version 7.1.0 or`,
    ),
  });
});

test("a file that is no database, or a damaged one, is refused with what to do", async () => {
  const text = newFile();
  writeFileSync(text, "this is no database, but it is long enough to look like one".repeat(100));
  assert.throws(() => openSqlite(text), {
    name: "StoreUnusable",
    message: /damaged or is no database.*backup/,
  });
  assert.throws(() => openSqlite(join(folder, "missing", "x.db")), StoreUnusable);
});

test("one program at a time has a home, and it is free again after the release", () => {
  const home = join(folder, "home");
  const first = openHome(home);
  assert.throws(() => openHome(home), { name: "StoreUnusable", message: /in use by another Troupe/ });
  first.release();
  openHome(home).release();
});

test("the gate runs one work at a time, in order, and continues after a failure", async () => {
  const gate = new WriteGate();
  const order: string[] = [];
  const slow = gate.run(async () => {
    order.push("slow begins");
    await new Promise((resolve) => setImmediate(resolve));
    order.push("slow ends");
    throw new Error("slow failed");
  });
  const fast = gate.run(() => {
    order.push("fast");
    return 7;
  });
  await assert.rejects(slow, /slow failed/);
  assert.equal(await fast, 7);
  assert.deepEqual(order, ["slow begins", "slow ends", "fast"]);
  // Free again: the next one runs in this very turn.
  void gate.run(() => order.push("at once"));
  assert.equal(order.at(-1), "at once");
});

test("journal commits and Kysely's transactions at the same moment do not meet", async () => {
  const database = openSqlite(newFile());
  const journal = new SqliteJournal(database);
  const records = sqlJobRecords(database);
  const retention = sqlRetentionRecords(database);
  const work = Array.from({ length: 60 }, (_, i) => {
    const job = changes({ jobId: `j-${i}` });
    const over = { ...job, progress: { ...job.progress, status: "completed" as const } };
    return i % 3 === 2 ? retention.removeOwn(5) : journal.commit([over]);
  });
  await Promise.all(work);
  const { rows: left } = await records.page({ includeTerminal: true, limit: 100, after: null });
  const deleted = (await Promise.all(work)).flatMap((answer) => ("lost" in answer ? [] : answer));
  assert.equal(left.length + deleted.length, 40);
  await database.close();
});
