// Group commit: how many share one, in which order, and who gets a turn in between.

import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../app/clock.ts";
import { openSqlite, type SqliteDatabase } from "../sqlite/database.ts";
import { CommitGroup } from "./commit-group.ts";
import type { Database } from "./database.ts";

interface Scene {
  readonly database: SqliteDatabase;
  /** The same, with its transactions counted. */
  readonly counted: Database;
  readonly group: CommitGroup;
  /** Transactions so far. */
  transactions(): number;
}

async function withGroup(use: (scene: Scene) => Promise<void>): Promise<void> {
  const database = openSqlite(":memory:");
  database.connection.exec("CREATE TABLE notes (id INTEGER PRIMARY KEY)");
  let count = 0;
  const counted: Database = {
    ...database,
    transaction(work) {
      count++;
      return database.transaction(work);
    },
  };
  try {
    await use({
      database,
      counted,
      group: new CommitGroup(counted, systemClock.soon),
      transactions: () => count,
    });
  } finally {
    await database.close();
  }
}

const nothing = async () => {};

test("works asked for at one moment share a transaction, 256 at most", () =>
  withGroup(async ({ group, transactions }) => {
    await Promise.all(Array.from({ length: 256 }, () => group.run(nothing)));
    assert.equal(transactions(), 1);
    await Promise.all(Array.from({ length: 257 }, () => group.run(nothing)));
    assert.equal(transactions(), 3);
  }));

test("a group is closed after the current requests were handled; until then others join", () =>
  withGroup(async ({ database, counted, transactions }) => {
    const soon: (() => void)[] = [];
    const group = new CommitGroup(counted, (run) => void soon.push(run));
    const first = group.run(nothing);
    await new Promise((resolve) => setImmediate(resolve));
    const second = group.run(nothing);
    assert.deepEqual([soon.length, transactions(), database.connection.isTransaction], [1, 0, false]);
    soon[0]?.();
    await Promise.all([first, second]);
    assert.deepEqual([soon.length, transactions()], [1, 1]);
  }));

test("works asked for while a group commits wait, and share the next one", () =>
  withGroup(async ({ group, transactions }) => {
    const later: Promise<void>[] = [];
    await group.run(async () => {
      for (let i = 0; i < 5; i++) later.push(group.run(nothing));
    });
    await Promise.all(later);
    assert.equal(transactions(), 2);
  }));

test("a work resolves after the commit, and not before", () =>
  withGroup(async ({ group, database }) => {
    await group.run(nothing);
    assert.equal(database.connection.isTransaction, false);
    const [first] = await Promise.all([
      group.run(nothing).then(() => database.connection.isTransaction),
      group.run(nothing),
    ]);
    assert.equal(first, false);
  }));

test("a work's throw is undone alone, whatever it is that it throws", () =>
  withGroup(async ({ group, database }) => {
    const insert = (id: number) => () => database.connection.exec(`INSERT INTO notes VALUES (${id})`);
    const answers = await Promise.allSettled([
      group.run(async () => insert(1)()),
      group.run(async () => {
        insert(2)();
        throw undefined;
      }),
      group.run(() => {
        insert(3)();
        throw new TypeError("synchronous");
      }),
      group.run(async () => insert(1)()),
      group.run(async () => insert(4)()),
    ]);
    assert.deepEqual(
      answers.map((answer) => (answer.status === "fulfilled" ? "done" : answer.reason?.name)),
      ["done", undefined, "TypeError", "Error", "done"],
    );
    const rows = database.connection.prepare("SELECT id FROM notes ORDER BY id").all();
    assert.deepEqual(
      rows.map((row) => row.id),
      [1, 4],
    );
  }));

test("a transaction that cannot begin rejects its works, and the next ones are served", () =>
  withGroup(async ({ group, database, transactions }) => {
    database.connection.exec("BEGIN");
    await assert.rejects(group.run(nothing), /within a transaction/);
    database.connection.exec("COMMIT");
    await group.run(nothing);
    assert.equal(transactions(), 2);
  }));

test("who waits for the database gets it between two groups", () =>
  withGroup(async ({ group, database }) => {
    const order: string[] = [];
    const first = group.run(async () => {
      void database.gate.run(() => void order.push("journal"));
      void group.run(async () => void order.push("second group"));
      order.push("first group");
    });
    await first;
    await group.run(nothing);
    assert.deepEqual(order, ["first group", "journal", "second group"]);
  }));
