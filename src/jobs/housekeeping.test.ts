// Housekeeping: what it removes, when it comes back, and that it ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { graph, router } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import { Housekeeping } from "./housekeeping.ts";
import type { GatewayRecords } from "./records.ts";
import { startCore, type TestCore } from "./test-core.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

function housekeeper({ records, definitions, clock }: TestCore, warned: string[] = []): Housekeeping {
  const log = { warn: (_: unknown, message: string) => void warned.push(message), error: () => {} };
  return new Housekeeping({ records, definitions, clock, log, idempotencyMs: DAY_MS });
}

async function promise(core: TestCore, key: string): Promise<void> {
  const record = { scope: "s", key, requestHash: "h", status: 200, headersJson: "{}", body: "" };
  await core.records.write((writes) =>
    writes.saveIdempotency({ ...record, createdAtMs: core.clock.nowMs() }),
  );
}

test("promised answers go when they have expired, and not before", async () => {
  await using core = await startCore();
  const keeper = housekeeper(core);
  await promise(core, "old");
  core.clock.aheadMs = DAY_MS - 10_000;
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

test("what deleted jobs have left is removed at the start", async () => {
  await using core = await startCore();
  const job = await core.job(graph("quick", [router("in")]));
  await core.records.write((writes) => writes.deleteJob(job.jobId, 1));
  const keeper = housekeeper(core);
  keeper.start();
  const rows = core.database.connection.prepare("SELECT count(*) AS n FROM job_definitions");
  await until("the rows to be removed", () => rows.get()?.n === 0);
  await keeper.stop();
});

test("a round that takes long is not joined by another one, and stopping waits for it", async () => {
  await using core = await startCore();
  const gate = Promise.withResolvers<number>();
  const reached = Promise.withResolvers<void>();
  const records: GatewayRecords = Object.create(core.records, {
    forgetIdempotency: {
      value: () => {
        reached.resolve();
        return gate.promise;
      },
    },
  });
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

test("a round that fails is told, and the next one comes", async () => {
  await using core = await startCore();
  const warned: string[] = [];
  const records: GatewayRecords = Object.create(core.records, {
    forgetIdempotency: { value: () => Promise.reject(new Error("no")) },
  });
  const keeper = housekeeper({ ...core, records: records as TestCore["records"] }, warned);
  keeper.start();
  await until("the next round's timer", () => core.clock.timers === 1);
  assert.deepEqual(warned, ["expired idempotency records could not be removed yet"]);
  await keeper.stop();
  assert.equal(core.clock.timers, 0);
});
