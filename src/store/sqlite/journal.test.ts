import assert from "node:assert/strict";
import { test } from "node:test";
import { scheduler } from "node:timers/promises";
import { type JournalUnderTest, journalContract } from "../../../test/support/journal-contract.ts";
import {
  agent,
  changes,
  humanRequest,
  message,
  next,
  progress,
  task,
} from "../../../test/support/journal-records.ts";
import { MemoryJournal } from "../../../test/support/memory-journal.ts";
import { limits } from "../../engine/limits.ts";
import { sqlJobRecords } from "../sql/jobs.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

journalContract("the simulation's memory", async () => {
  const memory = new MemoryJournal();
  const under: JournalUnderTest = {
    journal: memory,
    reopen: async () => under,
    events: async (jobId) => memory.jobs.get(jobId)?.events ?? [],
    close: async () => {},
  };
  return under;
});

test("an image holds all requests that are open, and of the closed ones the latest", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const response = { decision: "yes", comment: null, dataJson: null, principal: "ada", respondedAtMs: 9 };
  const closed = Array.from({ length: limits.humanClosedKeptMax + 5 }, (_, n) =>
    humanRequest(n + 2, { status: "answered", response }),
  );
  await journal.commit([changes({ humanRequests: [humanRequest(1), ...closed] })]);
  const found = (await journal.load("g-1"))?.humanRequests.map(({ eventSeq }) => eventSeq) ?? [];
  assert.equal(found.length, 1 + limits.humanClosedKeptMax);
  assert.deepEqual(found.slice(0, 2), [1, 7]);
  assert.equal(found.at(-1), closed.length + 1);
  await database.close();
});

test("how deep mailboxes are is counted with the messages, and read without them", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const records = sqlJobRecords(database);
  const depths = async () => [...((await records.detail("g-1", 0))?.mailboxDepths ?? [])];
  await journal.commit([changes({ messages: [message(1, 0), message(2, 0), message(3, 1), message(4, 2)] })]);
  await journal.commit([
    next(1, {
      consumed: [
        { agentIndex: 0, throughSeq: 1 },
        { agentIndex: 1, throughSeq: 3 },
      ],
      messages: [message(5, 0), message(6, 0)],
    }),
  ]);
  const counted = [
    [0, 3],
    [2, 1],
  ];
  assert.deepEqual(await depths(), counted);
  database.connection.exec("SAVEPOINT before; DELETE FROM messages");
  assert.deepEqual(await depths(), counted);
  database.connection.exec("ROLLBACK TO before; RELEASE before");
  await journal.commit([next(2, { progress: progress({ status: "completed" }) })]);
  assert.equal(database.connection.prepare("SELECT 1 FROM mailboxes").get(), undefined);
  await database.close();
});

/** Turns of the event loop while `work` is under way. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  return turns;
}

test("a large batch is written in slices, between which everything else has its turn, and seen whole", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const records = sqlJobRecords(database);
  const numbers = Array.from({ length: 4_000 }, (_, n) => n);
  const first = changes({
    agents: numbers.map((n) => agent(n)),
    messages: numbers.map((n) => message(n + 1, n % 2)),
    items: [{ agentIndex: 1, firstSeq: 1, bodiesJson: ["1"] }],
    tasks: numbers.map((n) => task(n)),
    eventLines: numbers.map((n) => JSON.stringify({ n, text: "x".repeat(200) })),
  });
  let seen: Promise<unknown> = Promise.resolve();
  const turns = await turnsDuring(() => {
    const committed = journal.commit([changes({ jobId: "other" }), first]);
    seen = records.detail("g-1", 1);
    return committed;
  });
  assert.ok(turns > 20, `${turns} turns`);
  const whole = {
    mailboxDepths: new Map([
      [0, 2_000],
      [1, 2_000],
    ]),
    recentEvents: [first.eventLines.at(-1)],
  };
  assert.partialDeepStrictEqual(await seen, whole);
  const image = await journal.load("g-1");
  assert.deepEqual(image?.agents, first.agents);
  assert.deepEqual(image?.tasks, first.tasks);
  assert.equal(image?.messages.length, 4_000);
  const end = next(1, { progress: progress({ status: "cancelled" }) });
  assert.ok((await turnsDuring(() => journal.commit([end]))) > 10, "what waited goes in slices too");
  for (const table of ["messages", "mailboxes", "items", "tasks"]) {
    assert.equal(database.connection.prepare(`SELECT 1 FROM ${table}`).get(), undefined, table);
  }
  await database.close();
});

test("a large batch is begun in a turn of its own, and continued in one after a large manifest", async (t) => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const eventLines = Array.from({ length: 4_000 }, (_, n) => JSON.stringify({ n }));
  const pauses = t.mock.method(scheduler, "yield");
  const jobsAtPause: unknown[] = [];
  pauses.mock.mockImplementation(async () => {
    jobsAtPause.push(database.connection.prepare("SELECT count(*) AS jobs FROM jobs").get()?.jobs);
  });
  await journal.commit([changes({ eventLines })]);
  assert.equal(jobsAtPause[0], 0);
  const withSmall = pauses.mock.callCount();
  const manifestJson = JSON.stringify({ text: "x".repeat(300_000) });
  const other = changes({ jobId: "other", eventLines });
  await journal.commit([{ ...other, insert: { ...other.insert!, manifestJson } }]);
  assert.equal(pauses.mock.callCount() - withSmall, withSmall + 1);
  await database.close();
});

test("messages that a large batch has consumed are removed in slices, and no others", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const records = sqlJobRecords(database);
  const messages = Array.from({ length: 9_000 }, (_, n) => message(n + 1, n % 2));
  await journal.commit([changes({ messages })]);
  // Large by its events; nothing else of it takes more than a few slices.
  const eventLines = Array.from({ length: 4_000 }, (_, n) => JSON.stringify({ n }));
  const turnsOf = (revision: number, throughSeq: number) => {
    const consumed = [{ agentIndex: 1, throughSeq }];
    const firstEventSeq = 2 + (revision - 1) * eventLines.length;
    return turnsDuring(() => journal.commit([next(revision, { consumed, eventLines, firstEventSeq })]));
  };
  const turnsForFew = await turnsOf(1, 10);
  const turnsForMany = await turnsOf(2, 8_000);
  assert.ok(turnsForMany >= turnsForFew + 10, `${turnsForFew} and ${turnsForMany} turns`);
  const left = (await journal.load("g-1"))!.messages.map(({ seq }) => seq).sort((a, b) => a - b);
  assert.deepEqual(
    left,
    messages.filter(({ seq, to }) => to === 0 || seq > 8_000).map(({ seq }) => seq),
  );
  const { mailboxDepths } = (await records.detail("g-1", 1))!;
  assert.deepEqual(
    mailboxDepths,
    new Map([
      [0, 4_500],
      [1, 500],
    ]),
  );
  await database.close();
});

test("what each of many agents has consumed is removed in slices", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const numbers = Array.from({ length: 6_000 }, (_, n) => n);
  await journal.commit([changes({ messages: numbers.map((n) => message(n + 1, n)) })]);
  const consumed = numbers.map((n) => ({ agentIndex: n, throughSeq: n + 1 }));
  const turns = await turnsDuring(() => journal.commit([next(1, { consumed })]));
  assert.ok(turns >= 20, `${turns} turns`);
  assert.deepEqual((await journal.load("g-1"))?.messages, []);
  await database.close();
});

test("a large batch that fails in the middle changes nothing but the jobs that can be written", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const messages = Array.from({ length: 2_000 }, (_, n) => message(n + 1, 0));
  const twice = changes({ jobId: "bad", messages: [...messages, messages[0]!] });
  const answer = await journal.commit([changes({ messages }), twice]);
  assert.deepEqual(
    answer.unwritable.map(({ jobId }) => jobId),
    ["bad"],
  );
  assert.equal(await journal.load("bad"), null);
  assert.equal((await journal.load("g-1"))?.messages.length, 2_000);
  await database.close();
});

test("of a large batch nothing is written of a job that another owner has, and all of the others", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  await journal.commit([changes({})]);
  await journal.claim("another owner", 1);
  const messages = Array.from({ length: 2_000 }, (_, n) => message(n + 1, 0));
  const answer = await journal.commit([next(1, { messages }), changes({ jobId: "new", messages })]);
  assert.deepEqual(answer, { lost: ["g-1"], unwritable: [] });
  assert.equal((await journal.load("g-1"))?.messages.length, 0);
  assert.equal((await journal.load("new"))?.messages.length, 2_000);
  await database.close();
});

test("recovery detects a row that has changed since it was stored", async () => {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const unusual = agent(0, { lastError: "nul \u0000 and half a pair \ud800", unroutedJson: '"ä"' });
  const parts = {
    agents: [unusual, agent(1)],
    messages: [message(1, 0)],
    items: [{ agentIndex: 1, firstSeq: 1, bodiesJson: ['{"a":1}'] }],
    tasks: [task(1)],
  };
  await journal.commit([changes(parts)]);
  await journal.commit([
    next(1, { agents: [agent(1, { processedMessages: 9 })], tasks: [{ ...task(1), attempt: 2 }] }),
  ]);
  assert.notEqual(await journal.load("g-1"), null);
  for (const [table, column] of [
    ["jobs", "root_agents_json"],
    ["jobs", "last_event_json"],
    ["job_sources", "manifest_json"],
    ["agents", "state_json"],
    ["messages", "message_json"],
    ["items", "lines"],
    ["tasks", "message_json"],
  ]) {
    database.connection.exec(`SAVEPOINT before; UPDATE ${table} SET ${column} = ${column} || ' '`);
    await assert.rejects(journal.load("g-1"), new RegExp(`table ${table} has changed since it was written`));
    database.connection.exec("ROLLBACK TO before; RELEASE before");
  }
  database.connection.exec("UPDATE agents SET checksum = NULL, done = 1");
  assert.equal((await journal.load("g-1"))?.agents[0]?.done, true, "a row from before there were checksums");
  await database.close();
});

test("a job whose counts are damaged is listed with the others", async () => {
  const database = openSqlite(":memory:");
  await new SqliteJournal(database).commit([changes({ jobId: "a-1" }), changes({ jobId: "b-1" })]);
  database.connection.exec("UPDATE jobs SET tally_json = '{' WHERE job_id = 'a-1'");
  const request = { includeTerminal: true, limit: 9, after: null };
  const { rows: jobs } = await sqlJobRecords(database).page(request);
  assert.deepEqual(
    jobs.map(({ jobId, tally }) => [jobId, tally.logs]),
    [
      ["b-1", 2],
      ["a-1", 0],
    ],
  );
  await database.close();
});
