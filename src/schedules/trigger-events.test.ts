// Events whose requests overlap: what has changed between the check of an event and its transaction.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { job, run, schedule } from "../../test/support/gateway-samples.ts";
import { systemClock } from "../app/clock.ts";
import type { GatewayRecords, GatewayWrites } from "../launch/records.ts";
import { DomainError } from "../lib/domain-error.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import type { EventRule, Schedule } from "./records.ts";
import type { RunStarts } from "./run-starts.ts";
import { TriggerEvents } from "./trigger-events.ts";

const rule: EventRule = {
  kind: "event",
  type: "a",
  filters: [],
  debounceSeconds: null,
  throttleSeconds: null,
  batch: null,
};
const listening = schedule(1, { rule, overlap: "allow", dueAtMs: null, nextRunAtMs: null });
const event = { eventId: "e1", type: "a", source: null, payloadJson: "1", depth: 0 };

let records: GatewayRecords;
let events: TriggerEvents<GatewayWrites>;
/** What a run is refused with at its insertion. */
let refusal: Error | null;
/** Why runs of a schedule cannot be checked, by its id. */
let uncheckable: Map<string, Error>;
beforeEach(async () => {
  records = sqlGatewayRecords(openSqlite(":memory:"), systemClock.soon);
  refusal = null;
  uncheckable = new Map();
  let runs = 0;
  const starts: RunStarts<GatewayWrites> = {
    prepare: async ({ scheduleId }) => {
      const error = uncheckable.get(scheduleId);
      if (error !== undefined) throw error;
      const made = run(++runs, "job_0001");
      return async (writes) => {
        await writes.insertRun(made);
        if (refusal !== null) throw refusal;
        return made;
      };
    },
    isStarted: async () => false,
    accepted: () => {},
    cancel: async () => {},
    cancelled: () => {},
  };
  events = new TriggerEvents({ records, starts, clock: systemClock, newId: () => "1" });
  await records.write(async (writes) => {
    await writes.insertJob(job(1));
    await writes.schedules.insert(listening);
  });
});

const change = (given: Partial<Schedule>) =>
  records.write(({ schedules }) => schedules.save({ ...listening, ...given }));
const runs = async () =>
  (await records.runs({ jobId: null, status: null, limit: 9, after: null })).rows.length;

test("two requests with one event_id that were checked at the same moment make one event and one run", async () => {
  const checked = [await events.prepare(event), await events.prepare(event)];
  const [first, second] = [await records.write(checked[0]!), await records.write(checked[1]!)];
  assert.deepEqual(second.event, first.event);
  assert.deepEqual([first.written.length, second.written.length, await runs()], [1, 0, 1]);
});

test("a run that was checked for an older definition is not started: the event waits for one", async () => {
  const insert = await events.prepare(event);
  await change({ revision: 2, inputs: { topic: "wasps" } });
  const { event: told } = await records.write(insert);
  assert.deepEqual(
    told.matches.map(({ skipped, isWaiting }) => [skipped, isWaiting]),
    [["queued", true]],
  );
  const after = await records.schedule(listening.scheduleId);
  assert.deepEqual([after?.waitingEvents, after?.nextRunAtMs, await runs()], [1, 0, 0]);
});

test("a schedule that was paused, made or deleted meanwhile is taken as it is then", async () => {
  const [toPaused, toNew, toNone] = [
    await events.prepare({ ...event, eventId: "e1" }),
    await events.prepare({ ...event, eventId: "e2" }),
    await events.prepare({ ...event, eventId: "e3" }),
  ];
  await change({ status: "paused" });
  assert.deepEqual((await records.write(toPaused)).event.matches[0]?.skipped, "paused");
  await change({});
  await records.write(({ schedules }) => schedules.insert({ ...listening, scheduleId: "schedule_2" }));
  const skips = (await records.write(toNew)).event.matches.map(({ skipped }) => skipped);
  assert.deepEqual(skips, [null, "queued"]);
  for (const id of ["schedule_1", "schedule_2"]) await records.write(({ schedules }) => schedules.remove(id));
  assert.deepEqual((await records.write(toNone)).event.matches, []);
});

test("a run that is refused at the last moment leaves its refusal alone, and any other error nothing", async () => {
  const [refused, broken] = [await events.prepare(event), await events.prepare({ ...event, eventId: "e2" })];
  refusal = new DomainError("no_free_port", "No port is free.");
  const { event: told } = await records.write(refused);
  assert.deepEqual(
    told.matches.map(({ skipped, runId, reason }) => [skipped, runId, reason]),
    [["refused", null, "No port is free."]],
  );
  refusal = new Error("broken");
  await assert.rejects(records.write(broken), /broken/);
  assert.deepEqual([await records.events.event("e2"), await runs()], [null, 0]);
});

for (const error of [new Error("Its secrets cannot be read."), new DomainError("unavailable", "Drained.")])
  test(`of a schedule whose run cannot be checked (${error.name}) the event waits, and others start theirs`, async () => {
    await records.write(({ schedules }) => schedules.insert({ ...listening, scheduleId: "schedule_2" }));
    uncheckable.set("schedule_1", error);
    const { event: told } = await records.write(await events.prepare(event));
    assert.deepEqual(
      told.matches.map(({ skipped, isWaiting }) => [skipped, isWaiting]),
      [
        ["queued", true],
        [null, false],
      ],
    );
  });

const containing = (value: number) => [{ path: "/payload", op: "contains", value: { of: [value] } } as const];

test("while many filters look through a long payload, everything else has its turn", async () => {
  await records.write(async ({ schedules }) => {
    for (let n = 2; n <= 20; n++) {
      const scheduleId = `schedule_${n}`;
      await schedules.insert({ ...listening, scheduleId, rule: { ...rule, filters: containing(-1) } });
    }
  });
  const payload = Array.from({ length: 20_000 }, (_, n) => ({ of: [n] }));
  let [turns, isOver] = [0, false];
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await events.prepare({ ...event, payloadJson: JSON.stringify(payload) });
  isOver = true;
  assert.ok(turns >= 10, `${turns} turns`);
});

test("filters are looked at once for each definition of a schedule, and not again in the transaction", async () => {
  const judged = await events.prepare({ ...event, payloadJson: '[{"of":[1]}]' });
  await change({ rule: { ...rule, filters: containing(2) } });
  assert.equal((await records.write(judged)).event.matches.length, 1, "the revision is the same");
  const again = await events.prepare({ ...event, eventId: "e2", payloadJson: '[{"of":[1]}]' });
  await change({ rule: { ...rule, filters: containing(1) }, revision: 2 });
  assert.equal((await records.write(again)).event.matches.length, 1, "it is another one");
});
