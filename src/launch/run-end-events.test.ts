// The ends of runs as events, where two programs tell of them, and where the store fails.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Timeline } from "../../test/simulation/timeline.ts";
import { job, run, schedule } from "../../test/support/gateway-samples.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import { DomainError } from "../lib/domain-error.ts";
import { type Emitted, TriggerEvents } from "../schedules/trigger-events.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import type { GatewayRecords, GatewayWrites } from "./records.ts";
import { RunEndEvents } from "./run-end-events.ts";

let timeline: Timeline;
let records: GatewayRecords;
let emitted: Emitted[];
/** How often writes fail from now on. */
let failures: number;
let ids = 0;
/** Called with each read of the ends that are to be told. */
let onRead: () => Promise<void>;
beforeEach(async () => {
  timeline = new Timeline();
  records = sqlGatewayRecords(openSqlite(":memory:"), (done) => setImmediate(done));
  [emitted, failures, onRead] = [[], 0, async () => {}];
  await records.write((writes) => writes.insertJob(job(1)));
});

function teller(): { readonly ends: RunEndEvents; ended(): void } {
  const clock = {
    nowMs: () => timeline.nowMs,
    steadyMs: () => timeline.nowMs,
    after: (delayMs: number, done: () => void) => timeline.plan(delayMs, null, done),
    soon: (done: () => void) => void timeline.plan(0, null, done),
  };
  const refused = async () => {
    throw new DomainError("unavailable", "Nobody listens.");
  };
  let listener = () => {};
  const triggerEvents = new TriggerEvents<GatewayWrites>({
    records,
    starts: {
      prepare: refused,
      isStarted: async () => false,
      accepted: () => {},
      cancel: async () => {},
      cancelled: () => {},
    },
    clock,
    newId: () => `${ids++}`,
  });
  const ends = new RunEndEvents({
    records: {
      async untoldEnds(limit) {
        const ends = await records.untoldEnds(limit);
        if (ends.length > 0) await onRead();
        return ends;
      },
      write: async (work) => {
        if (failures-- > 0) throw new JournalUnavailable("The disk is full.");
        return records.write(work);
      },
    },
    triggerEvents,
    emitted: (one) => emitted.push(one),
    onEnd: (ended) => {
      listener = ended;
      return () => {};
    },
    clock,
    log: { warn: () => {}, error: () => {} },
  });
  return { ends, ended: () => listener() };
}

const endRun = (n: number, status: "failed" | "cancelled" = "failed") =>
  records.write(async (writes) => {
    await writes.insertRun(run(n, "job_0001"));
    await writes.endUnlaunched(`run_000${n}`, { status, failureJson: null }, 9);
  });
const told = async () => {
  const { rows } = await records.events.events({ type: null, source: null, limit: 9, afterSeq: null });
  return rows.map(({ payloadJson }) => (JSON.parse(payloadJson) as { run_id: string }).run_id).toSorted();
};
/** Until every end was told, or is not to be. */
const settled = async () => {
  for (let turns = 0; (await records.untoldEnds(1)).length > 0; turns++) {
    assert.ok(turns < 10_000, "an end is not told");
    await timeline.step();
    await new Promise((resolve) => setImmediate(resolve));
  }
};

test("what ended while nobody looked is told at the start, and a cancelled run never", async () => {
  await endRun(1);
  await endRun(2, "cancelled");
  const { ends, ended } = teller();
  ends.start();
  await settled();
  await endRun(3);
  ended();
  await settled();
  await ends.stop();
  assert.deepEqual(await told(), ["run_0001", "run_0003"]);
});

const listening = (type: string) =>
  records.write(({ schedules }) =>
    schedules.insert(
      schedule(1, {
        rule: { kind: "event", type, filters: [], debounceSeconds: null, throttleSeconds: null, batch: null },
      }),
    ),
  );

for (const isHeard of [false, true])
  test(`of two programs that see one end, one tells of it, ${isHeard ? "to a schedule" : "when nobody listens"}`, async () => {
    if (isHeard) await listening("run.failed");
    const [first, second] = [teller(), teller()];
    for (const { ends } of [first, second]) ends.start();
    for (const n of [1, 2, 3]) await endRun(n);
    const both = Promise.withResolvers<void>();
    let reads = 0;
    onRead = async () => {
      if (++reads === 2) both.resolve();
      await both.promise;
    };
    first.ended();
    second.ended();
    await settled();
    for (const { ends } of [first, second]) await ends.stop();
    assert.deepEqual(await told(), ["run_0001", "run_0002", "run_0003"]);
    assert.deepEqual(
      emitted.map(({ event }) => event.matches.length),
      isHeard ? [1, 1, 1] : [],
    );
  });

test("an end that could not be written is told later, without another one", async () => {
  const { ends, ended } = teller();
  ends.start();
  await endRun(1);
  failures = 2;
  ended();
  await settled();
  await ends.stop();
  assert.deepEqual(await told(), ["run_0001"]);
});
