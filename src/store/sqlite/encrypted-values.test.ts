// Finding the encrypted values of a database, and writing them anew: on real SQLite, over rows of several tables.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { missingCommits } from "./commit-counter.ts";
import { openSqlite, type SqliteDatabase } from "./database.ts";
import { holdsEncrypted, rewriteEncrypted } from "./encrypted-values.ts";
import { rowChecksum } from "./row-checksum.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-encrypted-"));
after(() => rmSync(root, { recursive: true, force: true }));

const encrypted = (text: string) => `{"$sealed":"${text}"}`;
const anew = (text: string) => text.replace(/^old/, "new");

function addMessage({ connection }: SqliteDatabase, seq: number, json: string, checksum?: number | null) {
  const sum = checksum === undefined ? rowChecksum(["g", 0, seq, json]) : checksum;
  connection.prepare("INSERT INTO messages VALUES ('g', 0, ?, ?, ?)").run(seq, json, sum);
}

function messagesOf({ connection }: SqliteDatabase) {
  const rows = connection
    .prepare("SELECT seq, message_json AS json, checksum FROM messages ORDER BY seq")
    .all();
  return rows as unknown as readonly { seq: number; json: string; checksum: number | null }[];
}

test("encrypted values are found in every column of text, also those that a text holds as JSON", () => {
  const rows = [
    `INSERT INTO items VALUES ('g', 0, 1, '[1]' || char(10) || '${encrypted("x")}', NULL)`,
    `INSERT INTO operation_events VALUES ('op', 1, '${JSON.stringify(encrypted("x"))}')`,
  ];
  for (const row of rows) {
    const database = openSqlite(":memory:");
    assert.equal(holdsEncrypted(database.connection), false);
    database.connection.exec(row);
    assert.equal(holdsEncrypted(database.connection), true);
  }
});

test("all are written anew, page by page, with their rows' checksums and counted commits; nothing else changes", async () => {
  const file = join(root, "troupe.db");
  const database = openSqlite(file);
  const filler = "x".repeat(10_000);
  const jsonOf = (which: string, seq: number) =>
    `{ "a": 1.0, "s": ${encrypted(`${which}-${seq}`)}, "t": ${JSON.stringify(encrypted(which))}, "f": "${filler}", "$sealed": "old" }`;
  for (let seq = 1; seq <= 300; seq++)
    addMessage(database, seq, jsonOf("old", seq), seq === 7 ? null : undefined);
  addMessage(database, 301, "{}");
  database.connection.exec(
    `INSERT INTO items VALUES ('g', 0, 1, '${encrypted("old")}' || char(10) || '${encrypted("old")}', NULL)`,
  );
  const commits = () =>
    database.connection.prepare("SELECT commits FROM commit_count").get()!.commits as number;
  const before = commits();
  assert.deepEqual(await rewriteEncrypted(database, anew), { damagedRows: 0 });
  assert.ok(commits() - before >= 3, "the 3 MB take several transactions");
  for (const { seq, json, checksum } of messagesOf(database)) {
    assert.equal(json, seq === 301 ? "{}" : jsonOf("new", seq));
    assert.ok(checksum === null || checksum === rowChecksum(["g", 0, seq, json]), String(seq));
  }
  assert.equal(
    database.connection.prepare("SELECT lines FROM items").get()?.lines,
    `${encrypted("new")}\n${encrypted("new")}`,
  );
  const through = commits();
  await rewriteEncrypted(database, anew);
  assert.equal(commits(), through, "the second time there is nothing to do");
  assert.equal(missingCommits(file), null);
  await database.close();
  await openSqlite(file).close();
});

test("a row that has changed since it was written is left as it is, and counted", async () => {
  const database = openSqlite(":memory:");
  addMessage(database, 1, encrypted("old-1"), 12345);
  addMessage(database, 2, encrypted("old-2"));
  assert.deepEqual(await rewriteEncrypted(database, anew), { damagedRows: 1 });
  assert.deepEqual(
    messagesOf(database).map(({ json }) => json),
    [encrypted("old-1"), encrypted("new-2")],
  );
});
