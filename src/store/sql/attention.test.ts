// The contract of what needs people over all runs: questions (src/runs/human-answers.ts) and dead letters
// (src/runs/dead-letters.ts).

import assert from "node:assert/strict";
import { test as nodeTest } from "node:test";
import { contractOnEach } from "../../../test/support/databases.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { humanRequest } from "../../../test/support/journal-records.ts";
import { systemClock } from "../../app/clock.ts";
import type { DeadLetterRecord } from "../../engine/journal.ts";
import { openSqlite } from "../sqlite/database.ts";
import type { Database } from "./database.ts";
import { sqlDeadLetterRecords } from "./dead-letters.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlHumanRequestRecords } from "./human-requests.ts";

const any = { runId: null, jobId: null, limit: 9 } as const;
const pending = { ...any, status: "pending", after: null } as const;
const open = { ...any, status: "open", reason: null, before: null } as const;
const response = {
  decision: "yes",
  comment: null,
  dataJson: null,
  principal: "anonymous",
  respondedAtMs: 9,
};
const asked = (n: number, createdAtMs: number) => humanRequest(n, { createdAtMs });
const answered = (n: number, createdAtMs: number) =>
  humanRequest(n, { createdAtMs, status: "answered", response });
const letter = (n: number, given: Partial<DeadLetterRecord> = {}): DeadLetterRecord => ({
  deadLetterId: `dl_${n}`,
  agentId: "a",
  reason: "ttl_expired",
  attempts: n,
  message: { message_id: `m${n}` } as never,
  createdAtMs: 100 + n,
  ...given,
});

const readers = (database: Database) => ({
  requests: sqlHumanRequestRecords(database),
  letters: sqlDeadLetterRecords(database),
});

contractOnEach(
  "the records of what needs people, over all runs",
  ({ database, journal }) => ({
    journal,
    gateway: sqlGatewayRecords(database, systemClock.soon),
    ...readers(database),
    async scene() {
      const records = sqlGatewayRecords(database, systemClock.soon);
      await records.write(async (writes) => {
        for (const n of [1, 2]) await writes.insertJob(job(n));
        for (const [n, of] of [1, 1, 2].entries()) await writes.insertRun(run(n + 1, `job_000${of}`));
      });
      return [run(1, "job_0001"), run(2, "job_0001"), run(3, "job_0002")] as const;
    },
  }),
  (test) => {
    test("questions that can be answered come oldest first, whatever their runs, a page at a time", async (under) => {
      const [first, second, third] = await under.scene();
      const { journal, requests } = under;
      await journal.commit([
        launch(first, { humanRequests: [asked(1, 50), answered(2, 10)] }),
        launch(second, { humanRequests: [asked(1, 20)] }),
        launch(third, { humanRequests: [asked(1, 50), asked(2, 50)] }),
      ]);
      for (const one of [first, second, third])
        await journal.commit([advance(one, 1, { humanPending: 2, updatedAtMs: 60 })]);
      const told = async (page: Parameters<typeof requests.requestsOfRuns>[0]) =>
        (await requests.requestsOfRuns(page)).rows.map(
          ({ runId, request }) => `${runId} ${request.requestId}`,
        );
      const all = ["run_0002 ask-1", "run_0001 ask-1", "run_0003 ask-1", "run_0003 ask-2"];
      assert.deepEqual(await told(pending), all);
      const walked: string[] = [];
      for (let after: Parameters<typeof requests.requestsOfRuns>[0]["after"] = null; ; ) {
        const { rows } = await requests.requestsOfRuns({ ...pending, limit: 1, after });
        const [row] = rows;
        if (row === undefined) break;
        walked.push(`${row.runId} ${row.request.requestId}`);
        const { createdAtMs, eventSeq } = row.request;
        after = { createdAtMs, runId: row.runId, eventSeq };
      }
      assert.deepEqual(walked, all);
      assert.deepEqual(await told({ ...pending, runId: "run_0003" }), all.slice(2));
      assert.deepEqual(await told({ ...pending, jobId: "job_0001" }), all.slice(0, 2));
      assert.deepEqual(await told({ ...pending, status: "answered" }), ["run_0001 ask-2"]);
      assert.deepEqual(await told({ ...pending, status: "timed_out" }), []);
      assert.deepEqual(await told({ ...pending, runId: "run_0009" }), []);

      // A run that has ended takes no answers; its answered questions stay.
      await journal.commit([advance(first, 2, { status: "cancelled", humanPending: 1, updatedAtMs: 70 })]);
      assert.deepEqual(await told(pending), [all[0], ...all.slice(2)]);
      assert.deepEqual(await told({ ...pending, status: "answered" }), ["run_0001 ask-2"]);
      await under.gateway.write((writes) => writes.deleteJob("job_0001", 1));
      assert.deepEqual(await told(pending), all.slice(2));
      assert.deepEqual(await told({ ...pending, status: "answered" }), []);
    });

    test("letters come newest first, whatever their runs, a page at a time", async (under) => {
      const [first, second, third] = await under.scene();
      const { journal, letters } = under;
      await journal.commit([
        launch(first, { deadLetters: [letter(1), letter(4, { reason: "target_gone" })] }),
        launch(second, { deadLetters: [letter(2)] }),
        launch(third, { deadLetters: [letter(3), letter(5)] }),
      ]);
      await journal.commit([
        advance(
          third,
          1,
          {},
          { deadLettersRetried: [{ deadLetterId: "dl_3", retriedAtMs: 7, changeJson: null }] },
        ),
      ]);
      const told = async (page: Parameters<typeof letters.lettersOfRuns>[0]) =>
        (await letters.lettersOfRuns(page)).rows.map((row) => `${row.runId} ${row.letter.deadLetterId}`);
      const all = ["run_0003 dl_5", "run_0001 dl_4", "run_0002 dl_2", "run_0001 dl_1"];
      assert.deepEqual(await told(open), all);
      assert.deepEqual(await told({ ...open, limit: 2 }), all.slice(0, 2));
      assert.deepEqual(await told({ ...open, before: "dl_4" }), all.slice(2));
      assert.deepEqual(await told({ ...open, status: "retried" }), ["run_0003 dl_3"]);
      assert.deepEqual(await told({ ...open, reason: "target_gone" }), [all[1]]);
      assert.deepEqual(await told({ ...open, runId: "run_0001" }), [all[1], all[3]]);
      assert.deepEqual(await told({ ...open, jobId: "job_0001" }), all.slice(1));
      await under.gateway.write((writes) => writes.deleteJob("job_0001", 1));
      assert.deepEqual(await told(open), all.slice(0, 1));
    });
  },
);

nodeTest("lists over all runs read by indexes that leave out what has ended", async () => {
  const database = openSqlite(":memory:");
  const { connection } = database;
  const { requests, letters } = readers(database);
  const prepare = connection.prepare.bind(connection);
  const plans: string[] = [];
  connection.prepare = (sql, ...rest) => {
    const plan = prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    plans.push(plan.map(({ detail }) => String(detail)).join("\n"));
    return prepare(sql, ...rest);
  };
  await requests.requestsOfRuns(pending);
  await requests.requestsOfRuns({ ...pending, status: "answered" });
  await letters.lettersOfRuns(open);
  await letters.lettersOfRuns({ ...open, reason: "target_gone" });
  await requests.requestsOfRuns({ ...pending, runId: "run_0001" });
  await letters.lettersOfRuns({ ...open, runId: "run_0001" });
  connection.prepare = prepare;
  const [asking = "", closed = "", ...rest] = plans;
  assert.match(asking, /SEARCH j USING INDEX jobs_asking /);
  assert.match(closed, /SEARCH h USING INDEX human_requests_closed \(status=\? AND created_at>\?\)/);
  for (const plan of rest.slice(0, 2)) assert.match(plan, /SEARCH l USING INDEX dead_letters_all /);
  for (const plan of plans) assert.doesNotMatch(plan, /^SCAN/m, plan);
  await database.close();
});
