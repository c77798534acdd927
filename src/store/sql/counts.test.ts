// Counts for summaries.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ContractTest, contractOnEach } from "../../../test/support/databases.ts";
import { job, run } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import { openSqlite } from "../sqlite/database.ts";
import type { Database } from "./database.ts";
import { sqlRecordCounter } from "./definitions.ts";
import { sqlGatewayRecords } from "./gateway.ts";

const none = { pending: 0, queued: 0, running: 0, paused: 0, completed: 0, failed: 0, cancelled: 0 };

contractOnEach("what counts jobs and runs", ({ database }) => database, contract);

function contract(test: ContractTest<Database>): void {
  test("an empty database counts nothing", async (database) => {
    assert.deepEqual(await sqlRecordCounter(database).count(10), { jobs: 0, jobsOpen: 0, runs: none });
  });

  test("jobs and runs are counted by status; deleted jobs and ended runs do not count as open", async (database) => {
    const records = sqlGatewayRecords(database, systemClock.soon);
    await records.write(async (writes) => {
      for (const n of [1, 2, 3]) await writes.insertJob(job(n));
      for (const n of [1, 2, 3, 4]) await writes.insertRun(run(n, job(1).jobId));
      await writes.setWaiting(run(2, job(1).jobId).runId, { status: "paused", label: null, owner: null }, 5);
      await writes.endUnlaunched(run(4, job(1).jobId).runId, { status: "cancelled", failureJson: null }, 6);
      await writes.deleteJob(job(3).jobId, 1);
    });
    assert.deepEqual(await sqlRecordCounter(database).count(10), {
      jobs: 2,
      // The latest run of the first job has ended; the second has none.
      jobsOpen: 1,
      runs: { ...none, pending: 2, paused: 1, cancelled: 1 },
    });
  });

  test("runs that have ended in a part of the time are counted by how, its end left out, up to the maximum", async (database) => {
    const records = sqlGatewayRecords(database, systemClock.soon);
    const counter = sqlRecordCounter(database);
    await records.write(async (writes) => {
      await writes.insertJob(job(1));
      for (const [i, at] of [99, 100, 150, 199, 200].entries()) {
        const { runId } = run(i + 1, job(1).jobId);
        await writes.insertRun(run(i + 1, job(1).jobId));
        const status = at === 150 ? "failed" : "cancelled";
        await writes.endUnlaunched(runId, { status, failureJson: null }, at);
      }
    });
    assert.deepEqual(await counter.countEnds(100, 200, 10), { completed: 0, failed: 1, cancelled: 2 });
    assert.deepEqual(await counter.countEnds(0, 300, 3), { completed: 0, failed: 1, cancelled: 3 });
    assert.deepEqual(await counter.countEnds(201, 300, 3), { completed: 0, failed: 0, cancelled: 0 });
  });

  test("a count stops at its maximum", async (database) => {
    const records = sqlGatewayRecords(database, systemClock.soon);
    await records.write(async (writes) => {
      for (const n of [1, 2, 3]) await writes.insertJob(job(n));
      for (const n of [1, 2, 3]) await writes.insertRun(run(n, job(1).jobId));
    });
    const counts = await sqlRecordCounter(database).count(2);
    assert.deepEqual(counts, { jobs: 2, jobsOpen: 2, runs: { ...none, pending: 2 } });
  });
}

test("counting reads indexes, and no table", async () => {
  const database = openSqlite(":memory:");
  const plans: string[] = [];
  const explained = {
    ...database,
    async read<Row>(sql: string, parameters: readonly unknown[]): Promise<readonly Row[]> {
      const plan = database.connection.prepare(`EXPLAIN QUERY PLAN ${sql}`);
      plans.push(...plan.all(...(parameters as number[])).map(({ detail }) => String(detail)));
      return database.read<Row>(sql, parameters);
    },
  };
  await sqlRecordCounter(explained).count(10);
  await sqlRecordCounter(explained).countEnds(0, 10, 10);
  const reads = plans.filter((detail) => /\b(job_definitions|runs)\b/.test(detail));
  assert.equal(reads.length, 12);
  for (const detail of reads)
    assert.match(detail, /USING (COVERING )?INDEX (job_definitions_newest|runs_status|runs_ends)/);
  await database.close();
});
