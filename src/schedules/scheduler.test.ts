// What the simulation (test/simulation/schedules.ts) comes to too seldom.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Timeline } from "../../test/simulation/timeline.ts";
import { job } from "../../test/support/gateway-samples.ts";
import type { GatewayWrites } from "../launch/records.ts";
import { DomainError } from "../lib/domain-error.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { Scheduler } from "./scheduler.ts";
import { Schedules } from "./schedules.ts";

const HOUR_MS = 3_600_000;
const jobId = job(1).jobId;

test("a clock that is put back during a look hides no schedule that another program makes", async () => {
  const timeline = new Timeline();
  const database = openSqlite(":memory:");
  let putBackMs = 0;
  const clock = {
    nowMs: () => timeline.nowMs - putBackMs,
    steadyMs: () => timeline.nowMs,
    after: (delayMs: number, run: () => void) => timeline.plan(delayMs, null, run),
    soon: (run: () => void) => void timeline.plan(0, null, run),
  };
  const records = sqlGatewayRecords(database, (run) => setImmediate(run));
  const refused: number[] = [];
  const starts = {
    prepare: async () => {
      refused.push(clock.nowMs());
      throw new DomainError("requirements_not_met", "Not here.");
    },
    isStarted: async () => false,
    accepted: () => {},
    cancel: async () => {},
    cancelled: () => {},
  };
  const scheduler = new Scheduler<GatewayWrites>({
    records: {
      ...records,
      dueAfter: async (nowMs) => {
        putBackMs = HOUR_MS;
        return records.dueAfter(nowMs);
      },
    },
    starts,
    closed: () => null,
    takeDuty: async () => true,
    onEnd: () => () => {},
    clock,
    log: { warn: () => {}, error: () => {} },
  });
  scheduler.start();
  for (let steps = 0; steps < 3; steps++) await timeline.step();
  assert.equal(putBackMs, HOUR_MS);
  const schedules = new Schedules<GatewayWrites>({
    records,
    starts,
    // Nothing is changed here.
    secrets: null as never,
    targetOf: async () => target,
    clock,
    newId: () => "1",
  });
  const target = {
    blueprintId: null,
    check: async <Given>(given: Given) => given,
    settle: async () => jobId,
    settled: () => {},
  };
  const atMs = clock.nowMs() + 60_000;
  await records.write((writes) => writes.insertJob(job(1)));
  const insert = await schedules.prepareCreate(target, {
    name: "once",
    rule: { kind: "delayed", atMs },
    inputs: {},
    configOverrides: null,
    overlap: "skip",
    missedPolicy: "run_once",
    catchupLimit: 1,
    untilMs: null,
    maxRuns: null,
    pauseAfterFailures: null,
  });
  await records.write(insert);
  while (clock.nowMs() < atMs + 1_000) await timeline.step();
  assert.deepEqual(refused, [atMs]);
  await scheduler.stop();
  await database.close();
});
