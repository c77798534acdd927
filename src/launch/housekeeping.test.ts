// Housekeeping: what it removes, when it comes back, and that it ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startCore, type TestCore } from "../../test/support/core.ts";
import { operation } from "../../test/support/gateway-samples.ts";
import { graph, router } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import { sqlOperationRecords } from "../store/sql/operations.ts";
import { Housekeeping } from "./housekeeping.ts";
import type { GatewayRecords } from "./records.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

const RETENTION_DAYS = 30;

function housekeeper(
  { database, records, definitions, clock }: TestCore,
  {
    warned = [],
    retentionDays = RETENTION_DAYS,
    duty = { isOwn: true, rounds: 0, sweeps: 0 },
  }: {
    warned?: string[];
    retentionDays?: number;
    duty?: { isOwn: boolean; rounds: number; sweeps: number };
  } = {},
): Housekeeping {
  const log = { warn: (_: unknown, message: string) => void warned.push(message), error: () => {} };
  const operations = sqlOperationRecords(database);
  const parts = { records, definitions, clock, log, operations };
  return new Housekeeping({
    ...parts,
    idempotencyMs: DAY_MS,
    retentionDays,
    forgetNodes: async () => void duty.rounds++,
    takeDuty: async () => duty.isOwn,
    sweepHome: async () => void duty.sweeps++,
  });
}

async function promise(core: TestCore, key: string): Promise<void> {
  const record = { scope: "s", key, requestHash: "h", status: 200, headersJson: "{}", body: "" };
  await core.records.write((writes) =>
    writes.saveIdempotency({ ...record, createdAtMs: core.clock.nowMs() }, 0),
  );
}

test("stored idempotency responses are removed when they have expired, and not before", async () => {
  await using core = await startCore();
  const keeper = housekeeper(core);
  await promise(core, "old");
  core.clock.aheadMs = DAY_MS / 2;
  await promise(core, "young");
  keeper.start();
  await until("the end of a round", () => core.clock.timers === 1);
  assert.notEqual(await core.records.idempotency("s", "old"), null);
  core.clock.aheadMs = DAY_MS + 60_000;
  core.clock.fire();
  await until("the end of a round", () => core.clock.timers === 1);
  assert.equal(await core.records.idempotency("s", "old"), null);
  assert.notEqual(await core.records.idempotency("s", "young"), null);
  await keeper.stop();
});

test("what deleted jobs have left is removed at start", async () => {
  await using core = await startCore();
  const job = await core.job(graph("quick", [router("in")]));
  await core.records.write((writes) => writes.deleteJob(job.jobId, 1));
  const keeper = housekeeper(core);
  keeper.start();
  const rows = core.database.connection.prepare("SELECT count(*) AS n FROM job_definitions");
  await until("the rows to be removed", () => rows.get()?.n === 0);
  await keeper.stop();
});

test("rounds do not overlap, and stopping waits for the current one", async () => {
  await using core = await startCore();
  const gate = Promise.withResolvers<number>();
  const reached = Promise.withResolvers<void>();
  const records: GatewayRecords = {
    ...core.records,
    forgetIdempotency() {
      reached.resolve();
      return gate.promise;
    },
  };
  const keeper = housekeeper({ ...core, records: records as TestCore["records"] });
  keeper.start();
  await reached.promise;
  assert.equal(core.clock.timers, 0);
  let isStopped = false;
  const stopped = keeper.stop().then(() => {
    isStopped = true;
  });
  await core.definitions.stop();
  await promise(core, "k");
  assert.equal(isStopped, false);
  gate.resolve(0);
  await stopped;
  assert.equal(core.clock.timers, 0, "and none is to come");
});

test("a round that fails is logged, and the next one starts as usual", async () => {
  await using core = await startCore();
  const warned: string[] = [];
  const records: GatewayRecords = {
    ...core.records,
    forgetIdempotency: () => Promise.reject(new Error("no")),
  };
  const keeper = housekeeper({ ...core, records: records as TestCore["records"] }, { warned });
  keeper.start();
  await until("the next round's timer", () => core.clock.timers === 1);
  assert.deepEqual(warned, [
    "expired idempotency records, old operations and events could not all be removed yet",
  ]);
  await keeper.stop();
  assert.equal(core.clock.timers, 0);
});

test("old operations are removed with their events, unless everything is kept", async () => {
  await using core = await startCore();
  const operations = sqlOperationRecords(core.database);
  const finishedAtMs = core.clock.nowMs();
  await core.records.write(async (writes) => {
    await writes.operations.insert(operation(1, { status: "completed", finishedAtMs }), "{}");
    await writes.operations.insert(operation(2), "{}");
  });
  const round = async (retentionDays: number) => {
    const keeper = housekeeper(core, { retentionDays });
    keeper.start();
    await until("the end of a round", () => core.clock.timers === 1);
    await keeper.stop();
    return (await operations.operations({ target: null, status: null, limit: 5, after: null })).rows.length;
  };
  core.clock.aheadMs = (RETENTION_DAYS - 1) * DAY_MS;
  assert.equal(await round(RETENTION_DAYS), 2);
  core.clock.aheadMs = (RETENTION_DAYS + 1) * DAY_MS;
  assert.equal(await round(0), 2);
  assert.equal(await round(RETENTION_DAYS), 1);
});

test("while another program does it, only what is in this one's home is removed", async () => {
  await using core = await startCore();
  const duty = { isOwn: false, rounds: 0, sweeps: 0 };
  const keeper = housekeeper(core, { duty });
  await promise(core, "old");
  core.clock.aheadMs = DAY_MS + 60_000;
  keeper.start();
  await until("the end of a round", () => core.clock.timers === 1);
  assert.notEqual(await core.records.idempotency("s", "old"), null);
  assert.deepEqual([duty.rounds, duty.sweeps], [0, 1]);
  duty.isOwn = true;
  core.clock.fire();
  await until("the end of a round", () => core.clock.timers === 1);
  assert.equal(await core.records.idempotency("s", "old"), null);
  assert.deepEqual([duty.rounds, duty.sweeps], [1, 2]);
  await keeper.stop();
});
