// What the simulation (test/simulation/schedules.ts) comes to too seldom.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Timeline } from "../../test/simulation/timeline.ts";
import { job, schedule } from "../../test/support/gateway-samples.ts";
import type { GatewayRecords, GatewayWrites } from "../launch/records.ts";
import { DomainError } from "../lib/domain-error.ts";
import { ScheduleCounts } from "../observability/metrics/schedule-counts.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { openSqlite, type SqliteDatabase } from "../store/sqlite/database.ts";
import { Scheduler } from "./scheduler.ts";

const HOUR_MS = 3_600_000;

let timeline: Timeline;
let database: SqliteDatabase;
let records: GatewayRecords;
let counts: ScheduleCounts;
let scheduler: Scheduler<GatewayWrites>;
let putBackMs: number;
let closed: string | null;
/** Called when the next due time is read. */
let onRead: () => void;
/** When runs were asked for. */
let asked: number[];

beforeEach(async () => {
  counts = new ScheduleCounts();
  timeline = new Timeline();
  database = openSqlite(":memory:");
  records = sqlGatewayRecords(database, (run) => setImmediate(run));
  [putBackMs, closed, onRead, asked] = [0, null, () => {}, []];
  await records.write((writes) => writes.insertJob(job(1)));
  const clock = {
    nowMs,
    steadyMs: () => timeline.nowMs,
    after: (delayMs: number, run: () => void) => timeline.plan(delayMs, null, run),
    soon: (run: () => void) => void timeline.plan(0, null, run),
  };
  scheduler = new Scheduler<GatewayWrites>({
    records: {
      ...records,
      dueAfter: async (ms) => {
        onRead();
        return records.dueAfter(ms);
      },
    },
    starts: {
      prepare: async () => {
        asked.push(nowMs());
        throw new DomainError("requirements_not_met", "Not here.");
      },
      isStarted: async () => false,
      accepted: () => {},
      cancel: async () => {},
      cancelled: () => {},
    },
    closed: () => closed,
    meter: counts,
    takeDuty: async () => true,
    onEnd: () => () => {},
    clock,
    log: { warn: () => {}, error: () => {} },
  });
});
afterEach(async () => {
  await scheduler.stop();
  await database.close();
});

const nowMs = () => timeline.nowMs - putBackMs;

/** As another program does it. */
const insertDueAt = (atMs: number) =>
  records.write(({ schedules }) =>
    schedules.insert(schedule(1, { rule: { kind: "delayed", atMs }, dueAtMs: atMs, nextRunAtMs: atMs })),
  );

test("a clock that is put back during a look hides no schedule that another program makes", async () => {
  onRead = () => {
    putBackMs = HOUR_MS;
  };
  scheduler.start();
  while (putBackMs === 0) await timeline.step();
  const atMs = nowMs() + 60_000;
  await insertDueAt(atMs);
  while (asked.length === 0) await timeline.step();
  assert.deepEqual(asked, [atMs]);
});

test("a node that is drained asks for no run until it works again", async () => {
  const atMs = nowMs() + 10_000;
  await insertDueAt(atMs);
  scheduler.start();
  await timeline.step();
  closed = "It is being drained.";
  scheduler.changed(schedule(1, { nextRunAtMs: 0 }));
  while (nowMs() < atMs + 60_000) await timeline.step();
  assert.deepEqual(asked, []);
  closed = null;
  while (asked.length === 0) await timeline.step();
  assert.ok(nowMs() <= atMs + 100_000);
});

test("times that nobody came to are counted, and so is a start that is refused, without a delay", async () => {
  const rule = { kind: "cron", expressions: ["* * * * *"], timezone: "UTC", jitterSeconds: 0 } as const;
  const dueAtMs = Math.floor(nowMs() / 60_000) * 60_000 - 3 * 60_000;
  await records.write(({ schedules }) =>
    schedules.insert(schedule(1, { rule, dueAtMs, nextRunAtMs: dueAtMs })),
  );
  scheduler.start();
  while (asked.length === 0 || counts.dispatches.failed === 0) await timeline.step();
  const { missed, failed } = counts.dispatches;
  assert.deepEqual([missed, failed, counts.delaySeconds.snapshot().count], [3, 1, 0]);
});
