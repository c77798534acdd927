// The contract of schedules (src/schedules/records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { job, run, schedule } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import type { Webhook } from "../../schedules/records.ts";
import { sqlGatewayRecords } from "./gateway.ts";

const any = { kind: null, status: null, jobId: null, after: null, limit: 10 };

/** Everything that may be null is something. */
const full = schedule(7, {
  blueprintId: "digest",
  rule: { kind: "delayed", atMs: 1_790_000_000_000 },
  configOverrides: { language: "en" },
  overlap: "queue_one",
  missedPolicy: "run_all",
  untilMs: 1_790_000_000_001,
  maxRuns: 3,
  pauseAfterFailures: 2,
  status: "paused",
  statusReason: "2 failures in a row",
  queuedDueAtMs: 5,
  lastDispatch: { dueAtMs: 4, dispatchedAtMs: 5, runId: "run_1", outcome: "failed", reason: "no" },
  failuresInARow: 2,
  dispatched: 3,
  skipped: 4,
  missed: 5,
  failed: 6,
  revision: 8,
  version: 9,
});

const webhook: Webhook = {
  scheme: "stripe",
  toleranceSeconds: 60,
  tokenHash: "hash",
  token: { $sealed: "t" },
  secret: { $sealed: "s" },
};

contractOnEach(
  "the records of schedules",
  async ({ database }) => {
    const records = sqlGatewayRecords(database, systemClock.soon);
    await records.write((writes) => writes.insertJob(job(1)));
    return records;
  },
  (test) => {
    test("a schedule comes back as it was written and saved, until it is removed", async (records) => {
      for (const one of [schedule(1), full]) {
        await records.write(({ schedules }) => schedules.insert(one));
        assert.deepEqual(await records.schedule(one.scheduleId), one);
      }
      const changed = { ...full, scheduleId: "schedule_1", version: 10 };
      await records.write(async ({ schedules }) => {
        await schedules.save(changed);
        assert.deepEqual(await schedules.schedule("schedule_1"), changed);
      });
      assert.deepEqual(await records.schedule("schedule_1"), changed);
      await records.write(({ schedules }) => schedules.remove("schedule_1"));
      assert.equal(await records.schedule("schedule_1"), null);
      assert.deepEqual(await records.schedule("schedule_7"), full);
    });

    test("is found by the hash of its webhook's token, which no other has, while it has one", async (records) => {
      const hooked = schedule(3, { webhook });
      await records.write(async ({ schedules }) => {
        await schedules.insert(schedule(1));
        await schedules.insert(hooked);
      });
      assert.deepEqual(await records.scheduleOfWebhook("hash"), hooked);
      assert.equal(await records.scheduleOfWebhook("other"), null);
      await assert.rejects(records.write(({ schedules }) => schedules.insert(schedule(4, { webhook }))));
      await records.write(({ schedules }) => schedules.save({ ...hooked, webhook: null }));
      assert.equal(await records.scheduleOfWebhook("hash"), null);
    });

    test("lists are newest first, by kind, status and job, a page at a time", async (records) => {
      await records.write(async ({ schedules }) => {
        for (let n = 1; n <= 4; n++)
          await schedules.insert(schedule(n, n === 2 ? { jobId: "job_0002" } : {}));
        await schedules.insert(full);
      });
      const ids = async (page: Partial<typeof any> | { kind: "cron" } | { status: "paused" }) =>
        (await records.schedules({ ...any, ...page })).rows
          .map(({ scheduleId }) => scheduleId.slice(-1))
          .join("");
      assert.equal(await ids({}), "74321");
      assert.equal(await ids({ limit: 2, after: "schedule_4" as never }), "32");
      assert.equal(await ids({ kind: "cron" }), "4321");
      assert.equal(await ids({ status: "paused" }), "7");
      assert.equal(await ids({ jobId: "job_0002" as never }), "2");
    });

    test("active schedules with something to do are found, the longest overdue first, and when the next has", async (records) => {
      await records.write(async ({ schedules }) => {
        for (const n of [3, 1, 2, 5]) await schedules.insert(schedule(n));
        await schedules.insert(schedule(4, { status: "paused" }));
        await schedules.insert(schedule(6, { nextRunAtMs: null }));
      });
      assert.deepEqual(await records.due(3_000, 10), ["schedule_1", "schedule_2", "schedule_3"]);
      assert.deepEqual(await records.due(3_000, 2), ["schedule_1", "schedule_2"]);
      assert.deepEqual(await Promise.all([999, 1_000, 3_000, 5_000].map((ms) => records.dueAfter(ms))), [
        1_000,
        2_000,
        5_000,
        null,
      ]);
    });

    test("a schedule's runs are open until they end or are deleted, and noted until they are forgotten", async (records) => {
      await records.write(async (writes) => {
        await writes.schedules.insert(schedule(1));
        for (const n of [1, 2, 3]) {
          const one = run(n, "job_0001");
          if (n < 3) await writes.insertRun(one);
          await writes.schedules.noteRun({ ...one, scheduleId: "schedule_1" });
        }
      });
      const noted = (n: number, hasEnded: boolean, hasFailed: boolean) => ({
        runId: `run_000${n}`,
        scheduleId: "schedule_1",
        runtimeJobId: `g-000${n}`,
        hasEnded,
        hasFailed,
      });
      assert.deepEqual(await records.openRuns("schedule_1", 9), ["run_0001", "run_0002"]);
      assert.deepEqual(await records.openRuns("schedule_1", 1), ["run_0001"]);
      await records.write(async (writes) => {
        await writes.endUnlaunched("run_0002", { status: "failed", failureJson: null }, 9);
        assert.deepEqual(await writes.schedules.openRuns("schedule_1", 9), ["run_0001"]);
        assert.deepEqual(await writes.schedules.scheduledRun("run_0002"), noted(2, true, true));
        await writes.schedules.forgetRun("run_0002");
        assert.equal(await writes.schedules.scheduledRun("run_0002"), null);
      });
      assert.deepEqual(await records.scheduledRuns("", 10), [noted(1, false, false), noted(3, true, false)]);
      assert.deepEqual(await records.scheduledRuns("run_0001", 1), [noted(3, true, false)]);
      await records.write(({ schedules }) => schedules.remove("schedule_1"));
      assert.deepEqual(await records.scheduledRuns("", 10), []);
    });
  },
);
