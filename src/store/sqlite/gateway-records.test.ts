// The gateway's records on SQLite: what only SQLite can show.

import assert from "node:assert/strict";
import type { StatementSync } from "node:sqlite";
import { test } from "node:test";
import { deployment, instance } from "../../../test/support/deployment-samples.ts";
import { advance, idempotencyRecord, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { changes, progress } from "../../../test/support/journal-records.ts";
import { systemClock } from "../../app/clock.ts";
import type { GatewayRecords } from "../../launch/records.ts";
import { sqlBlueprintRecords } from "../sql/blueprints.ts";
import { sqlBundleRecords } from "../sql/bundles.ts";
import { sqlDeadLetterRecords } from "../sql/dead-letters.ts";
import { sqlGatewayRecords } from "../sql/gateway.ts";
import { sqlHumanRequestRecords } from "../sql/human-requests.ts";
import { sqlJobRecords } from "../sql/jobs.ts";
import { sqlOperationRecords } from "../sql/operations.ts";
import { sqlPortRecords } from "../sql/ports.ts";
import { sqlRetentionRecords } from "../sql/retention.ts";
import { openSqlite, type SqliteDatabase } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

async function withDatabase(
  use: (database: SqliteDatabase, records: GatewayRecords) => Promise<void>,
): Promise<void> {
  const database = openSqlite(":memory:");
  try {
    await use(database, sqlGatewayRecords(database, systemClock.soon));
  } finally {
    await database.close();
  }
}

test("on a full disk the writes of the group are rejected as unavailable, and the next group is written", () =>
  withDatabase(async ({ connection }, records) => {
    await records.write((writes) => writes.insertJob(job(1)));
    const { page_count: pages } = connection.prepare("PRAGMA page_count").get() as { page_count: number };
    connection.exec(`PRAGMA max_page_count = ${pages}`);
    const large = "x".repeat(200_000);
    const answers = await Promise.allSettled([
      records.write((writes) => writes.insertJob(job(2))),
      records.write((writes) => writes.saveIdempotency(idempotencyRecord({ body: large }), 0)),
      records.write((writes) => writes.insertJob(job(3))),
    ]);
    // SQLite undoes either the statement or the transaction: a write that resolved is there, one that rejected is not.
    assert.equal(answers[1]?.status, "rejected");
    for (const [n, answer] of [
      [2, answers[0]],
      [3, answers[2]],
    ] as const) {
      const isThere = (await records.job(`job_000${n}`)) !== null;
      assert.equal(isThere, answer?.status === "fulfilled");
    }
    for (const answer of answers) {
      if (answer.status === "fulfilled") continue;
      assert.equal((answer.reason as Error).name, "JournalUnavailable");
      assert.match((answer.reason as Error).message, /disk is full/);
    }
    assert.equal(await records.idempotency(idempotencyRecord().scope, idempotencyRecord().key), null);
    connection.exec("PRAGMA max_page_count = 1000000");
    await records.write((writes) => writes.saveIdempotency(idempotencyRecord({ body: large }), 0));
    assert.equal(
      (await records.idempotency(idempotencyRecord().scope, idempotencyRecord().key))?.body,
      large,
    );
  }));

test("a work that continues after SQLite has rolled back the transaction writes nothing", () =>
  withDatabase(async ({ connection }, records) => {
    const answers = await Promise.allSettled([
      records.write((writes) => writes.insertJob(job(1))),
      records.write(async () => {
        // As SQLite does it by itself when memory or disk run out.
        connection.exec("ROLLBACK");
        throw new Error("the cause");
      }),
      records.write((writes) => writes.insertJob(job(2))),
    ]);
    for (const answer of answers) {
      assert.equal(answer.status, "rejected");
      assert.match(String(answer.reason), /the cause/);
    }
    assert.deepEqual((await records.jobs({ includeTerminal: true, limit: 5, after: null })).rows, []);
    await records.write((writes) => writes.insertJob(job(1)));
  }));

test("a run's updates that change no status write no row of the gateway", () =>
  withDatabase(async (database, records) => {
    const journal = new SqliteJournal(database);
    const one = run(1, "job_0001");
    await records.write(async (writes) => {
      await writes.insertJob(job(1));
      await writes.insertRun(one);
    });
    await journal.commit([launch(one)]);
    database.connection.exec(
      "CREATE TRIGGER watched AFTER UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'written'); END",
    );
    await journal.commit([advance(one, 1, { updatedAtMs: 9, eventSeq: 2 })]);
    const { unwritable } = await journal.commit([advance(one, 2, { status: "paused" })]);
    assert.match(unwritable[0]?.reason ?? "", /written/);
  }));

/** Every statement that `use` makes SQLite prepare. */
async function statementsOf(
  { connection }: SqliteDatabase,
  use: () => Promise<unknown>,
): Promise<Map<string, StatementSync>> {
  const statements = new Map<string, StatementSync>();
  const prepare = connection.prepare.bind(connection);
  connection.prepare = (sql, ...rest) => {
    const statement = prepare(sql, ...rest);
    if (/^(select|update|delete|insert)/i.test(sql)) statements.set(sql, statement);
    return statement;
  };
  await use();
  connection.prepare = prepare;
  return statements;
}

async function readEverything(records: GatewayRecords, limit: number): Promise<void> {
  const page = { limit, after: limit === 5 ? null : "run_0001" };
  for (const jobId of [null, "job_0001"]) {
    for (const status of [null, "failed"] as const)
      await records.runs({ ...page, jobId, status: status && [status] });
  }
  for (const includeTerminal of [true, false]) {
    await records.jobs({ ...page, includeTerminal });
    await records.jobs({ ...page, includeTerminal, blueprintId: "digest" });
  }
  await records.job("job_0001");
  await records.run("run_0001");
  await records.latestRun("job_0001");
  await records.recentRuns("job_0001", limit);
  await records.completedDurations("job_0001", limit);
  await records.openRun("run_0001");
  for (const jobId of [null, "job_0001"]) await records.unsettledRuns({ ...page, jobId });
  await records.idempotency("s", "k");
  await records.bundles({ limit, after: null });
}

async function writeEverything(records: GatewayRecords): Promise<void> {
  await records.write(async (writes) => {
    await writes.insertJob(job(1));
    await writes.updateJob(job(1, { revision: 2 }), 1);
    await writes.insertRun(run(1, "job_0001"));
    await writes.job("job_0001");
    await writes.run("run_0001");
    await writes.openRuns("job_0001");
    await writes.setDesiredStates("job_0001", "paused", 1);
    await writes.setDesiredState("run_0001", "cancelled", 1);
    await writes.setWaiting("run_0001", { status: "paused", label: null, owner: null }, 1);
    await writes.setLabel("run_0001", "Copying", 1);
    await writes.endUnlaunched("run_0001", { status: "cancelled", failureJson: null }, 1);
    await writes.saveIdempotency(idempotencyRecord(), 0);
    await writes.bundle("b");
    await writes.deleteJob("job_0001", 2);
  });
  await records.purgeDeleted(5);
  await records.forgetIdempotency(1, 5);
}

/** What there is to remove, so that a removal comes to all of its statements. */
async function endSomething(database: SqliteDatabase, records: GatewayRecords): Promise<void> {
  await records.write(async (writes) => {
    await writes.insertJob(job(9));
    await writes.insertRun(run(9, "job_0009"));
  });
  await new SqliteJournal(database).commit([
    launch(run(9, "job_0009"), { progress: progress({ status: "completed", updatedAtMs: 1 }) }),
    changes({ jobId: "own", progress: progress({ status: "completed" }) }),
  ]);
}

async function retainEverything(database: SqliteDatabase): Promise<void> {
  const retention = sqlRetentionRecords(database);
  const end = { endedAtMs: 5, id: "g-0001" };
  await retention.endedPage(5, null);
  await retention.unlaunchedPage(5, 5, null);
  for (const without of [null, end]) {
    await retention.isBlobNamed("sha", without);
    await retention.isSnapshotNamed("f", without);
  }
  await retention.isRunThere("run_0001");
  await retention.removeEnded(end, 5);
  await retention.removeUnlaunched(5, 5);
  await retention.removeOwn(5);
  while (await retention.removeParts(() => true)) {
    // A statement at a time.
  }
  await retention.fileGarbage(5, null);
  await retention.forgetGarbage([{ kind: "run", name: "run_0001" }]);
}

/** Beside the catalog's own list, which is as long as the catalog. */
async function readBlueprints(database: SqliteDatabase, records: GatewayRecords): Promise<void> {
  const blueprints = sqlBlueprintRecords(database);
  await blueprints.prepared("digest");
  await blueprints.assets("digest");
  await blueprints.modelOwners("m");
  await blueprints.hasModelFile("m", "recipe", "digest");
  await blueprints.isPackageUsed("f", "digest");
  await blueprints.jobsOf("digest");
  const operations = sqlOperationRecords(database);
  for (const target of [null, "digest"]) {
    for (const status of [null, "failed"] as const)
      await operations.operations({ target, status, limit: 5, after: null });
  }
  await operations.operation("op_1");
  await operations.operationEvents("op_1", 0, 5);
  await operations.openOperations();
  const ports = sqlPortRecords(database);
  await ports.portsInUse();
  await ports.portsFreedSince(1);
  await ports.portsOf("run_0001");
  await records.write(async (writes) => {
    await writes.operations.open("digest");
    await writes.blueprints.settleJobs("digest", { kind: "failed" }, 1);
    await writes.ports.reserve("run_0001", "web_ui", [1]);
  });
}

async function readJobs(database: SqliteDatabase): Promise<void> {
  const records = sqlJobRecords(database);
  for (const includeTerminal of [true, false]) {
    await records.page({ includeTerminal, limit: 5, after: null });
  }
  await records.newestStatuses(5);
  await records.find("g-1");
  await records.findRun("run_1");
  await records.whole("g-1");
  // Also of an open job: then it reads mailboxes and tasks.
  await new SqliteJournal(database).commit([changes()]);
  await records.detail("g-1", 5);
  await records.agents("g-1", 0, 5);
  await records.standings("g-1", 0, 5);
  await records.manifest("g-1");
  await records.result("g-1");
  await records.texts("g-1");
  await records.events("g-1", 0);
  await records.eventsBefore("g-1", 5);
  await records.placeOfTime("g-1", 1);
  await records.artifactPage("run_1", 5, null);
  await records.outputPage("run_1", 5, null);
  await records.artifact("run_1", "a");
  await records.finalArtifact("run_1");
}

async function readSchedules(records: GatewayRecords): Promise<void> {
  for (const kind of [null, "cron"] as const)
    for (const status of [null, "active"] as const)
      for (const jobId of [null, "job_1"])
        await records.schedules({ kind, status, jobId, limit: 5, after: null });
  await records.schedule("schedule_1");
  await records.due(1, 5);
  await records.dueAfter(1);
  await records.openRuns("schedule_1", 5);
  await records.scheduledRuns("", 5);
  await records.write(async ({ schedules }) => {
    await schedules.scheduledRun("run_1");
    await schedules.forgetRun("run_1");
    await schedules.remove("schedule_1");
  });
}

async function readDeployments(records: GatewayRecords): Promise<void> {
  const { deployments } = records;
  for (const status of [null, "running"] as const)
    await deployments.deployments({ status, limit: 5, after: null });
  await deployments.deployment("deployment_1");
  await deployments.deploymentChanges("", 5);
  await deployments.instanceRuns("deployment_1");
  await deployments.outOfService();
  await deployments.deploymentEvents("deployment_1", 0, 5);
  await records.write(async ({ deployments: writes }) => {
    const one = deployment({});
    await writes.save({ ...one, instances: [instance(1)] }, one);
    await writes.save(one, { ...one, instances: [instance(1)] });
    await writes.addEvents("deployment_1", 1, ["{}"]);
    await writes.remove("deployment_1");
  });
}

/** Walked from one end, these show nothing but what is asked for; of ports there are no more than the settings have. */
const SHORT_INDEX =
  /USING (COVERING )?INDEX (job_definitions_(deleted|newest|newest_open)|jobs_newest|runs_open|jobs_removable|operations_open|run_ports_run|deployment_instances_unserved)$/;

test("no statement scans a table or sorts, whatever the filters", () =>
  withDatabase(async (database, records) => {
    await endSomething(database, records);
    const statements = await statementsOf(database, async () => {
      await readEverything(records, 5);
      await writeEverything(records);
      await retainEverything(database);
      await readBlueprints(database, records);
      await readSchedules(records);
      await readDeployments(records);
      await sqlBundleRecords(database).deleteUnused("b");
      await readJobs(database);
      new SqliteJournal(database);
    });
    assert.ok(statements.size > 30, `${statements.size} statements`);
    for (const sql of statements.keys()) {
      // How the tables are made up, read at the start; and an image's requests, of which there are only so many.
      if (sql.includes("sqlite_schema") || /FROM human_requests.*LIMIT \d/s.test(sql)) continue;
      for (const { detail } of database.connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()) {
        assert.doesNotMatch(String(detail), /TEMP B-TREE FOR (ORDER|GROUP) BY/, sql);
        // A page's own ids, and letters that were found by an index.
        if (/^SCAN (json_each VIRTUAL|open$)/.test(String(detail))) continue;
        if (/^SCAN (?!schema_migrations|CONSTANT ROW|\d+ CONSTANT ROWS|\d+-ROW VALUES)/.test(String(detail)))
          assert.match(String(detail), SHORT_INDEX, sql);
      }
    }
  }));

test("reads are planned once, whatever their arguments", () =>
  withDatabase(async (database, records) => {
    const statements = await statementsOf(database, async () => {
      for (const limit of [5, 6, 7]) await readEverything(records, limit);
    });
    assert.ok(statements.size >= 14, `${statements.size} statements`);
    for (const [sql, statement] of statements) {
      assert.equal((statement as unknown as { stat(name: "reprepare"): number }).stat("reprepare"), 0, sql);
    }
  }));

test("no read of requests to people or of dead letters scans a table or sorts, whatever the filters", async () => {
  const database = openSqlite(":memory:");
  const { connection } = database;
  const asked = new Set<string>();
  const prepare = connection.prepare.bind(connection);
  connection.prepare = (sql, ...rest) => {
    asked.add(sql);
    return prepare(sql, ...rest);
  };
  const requests = sqlHumanRequestRecords(database);
  const letters = sqlDeadLetterRecords(database);
  for (const status of [null, "pending"] as const) {
    await requests.humanRequests("g-1", { status, limit: 5, afterSeq: 0 });
  }
  for (const status of [null, "open"] as const) {
    await letters.deadLetters("g-1", { status, limit: 5, before: null });
  }
  await requests.humanRequest("g-1", "a");
  await letters.deadLetter("g-1", "a");
  await letters.newestOpenLetter("g-1");
  await letters.openLetters("g-1", { after: "", through: "b", limit: 5 });
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
