// The contract of trigger events (src/schedules/event-records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { schedule } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import type { GatewayRecords } from "../../launch/records.ts";
import type { EventContent, EventMatch } from "../../schedules/event-records.ts";
import type { EventRule } from "../../schedules/records.ts";
import { sqlGatewayRecords } from "./gateway.ts";

const event = (n: number, given: Partial<EventContent> = {}): EventContent => ({
  eventId: `event_${n}`,
  type: "file.arrived",
  source: null,
  payloadJson: `{"n":${n}}`,
  receivedAtMs: n * 1_000,
  depth: 0,
  ...given,
});
const match = (seq: number, given: Partial<EventMatch> = {}): EventMatch => ({
  seq,
  scheduleId: "schedule_1",
  skipped: null,
  runId: `run_${seq}`,
  reason: null,
  isWaiting: false,
  ...given,
});
const waits = { skipped: "queued", runId: null, isWaiting: true } as const;
const rule = (given: Partial<EventRule> = {}): EventRule => ({
  kind: "event",
  type: "file.arrived",
  filters: [{ path: "/payload/n", op: "gt", value: 1 }],
  debounceSeconds: null,
  throttleSeconds: null,
  batch: { max: 3, seconds: 4 },
  ...given,
});

const insert = (records: GatewayRecords, ...given: readonly EventContent[]) =>
  records.write(async ({ events }) => {
    for (const one of given) await events.insertEvent(one);
  });
const all = { type: null, source: null, limit: 100, afterSeq: null };

contractOnEach(
  "the records of trigger events",
  async ({ database }) => sqlGatewayRecords(database, systemClock.soon),
  (test) => {
    test("an event comes back with what schedules have made of it, in the transaction and behind it", async (records) => {
      const first = event(1, { source: "warehouse" });
      const stored = {
        ...first,
        seq: 1,
        matches: [match(1), match(1, { scheduleId: "schedule_2", ...waits })],
      };
      await records.write(async ({ events }) => {
        assert.deepEqual(await events.insertEvent(first), { ...first, seq: 1 });
        for (const one of stored.matches.toReversed()) await events.insertMatch(one);
        assert.deepEqual(await events.event("event_1"), stored);
      });
      assert.deepEqual(await records.events.event("event_1"), stored);
      assert.equal(await records.events.event("event_2"), null);
    });

    test("an event_id is taken once", async (records) => {
      await insert(records, event(1));
      await assert.rejects(insert(records, event(1)));
      assert.equal((await records.events.events(all)).rows.length, 1);
    });

    test("lists are newest first, by type and source, a page at a time, each event with its matches", async (records) => {
      await insert(
        records,
        ...[1, 2, 3, 4, 5, 6].map((n) => event(n, { type: n % 2 ? "a" : "b", source: n > 3 ? "s" : null })),
      );
      await records.write(({ events }) => events.insertMatch(match(5)));
      const seqs = async (page: object) =>
        (await records.events.events({ ...all, ...page })).rows.map(({ seq }) => seq).join("");
      assert.equal(await seqs({}), "654321");
      assert.equal(await seqs({ limit: 2, afterSeq: 5 }), "43");
      assert.equal(await seqs({ type: "a" }), "531");
      assert.equal(await seqs({ source: "s" }), "654");
      assert.equal(await seqs({ source: "s", type: "b", afterSeq: 6 }), "4");
      const { rows } = await records.events.events({ ...all, limit: 2 });
      assert.deepEqual(
        rows.map(({ matches }) => matches),
        [[], [match(5)]],
      );
    });

    test("a page has fewer events when schedules have made too much of them, and each event has all of it", async (records) => {
      await insert(records, ...[1, 2, 3].map((n) => event(n)));
      await records.write(async ({ events }) => {
        for (let n = 0; n < 2_500; n++)
          await Promise.all([1, 2, 3].map((seq) => events.insertMatch(match(seq, { scheduleId: `s${n}` }))));
      });
      const pageAfter = async (afterSeq: number | null) => {
        const { rows, isCut } = await records.events.events({ ...all, afterSeq });
        return [...rows.map(({ seq, matches }) => [seq, matches.length]), isCut];
      };
      assert.deepEqual(await pageAfter(null), [[3, 2_500], [2, 2_500], true]);
      assert.deepEqual(await pageAfter(2), [[1, 2_500], false]);
    });

    test("active and paused schedules of a type listen, with their rules, as they are in the transaction", async (records) => {
      await records.write(async ({ schedules, events }) => {
        for (const [n, given] of [
          [3, { rule: rule() }],
          [1, { rule: rule(), status: "paused" }],
          [2, { rule: rule({ type: "other" }) }],
          [4, { rule: rule(), status: "completed" }],
          [5, {}],
        ] as const)
          await schedules.insert(schedule(n, given));
        assert.equal((await events.listeners("file.arrived")).length, 2);
        assert.equal(await events.countListeners("file.arrived"), 2);
        assert.equal(await events.countListeners("none"), 0);
      });
      assert.deepEqual(await records.events.listeners("file.arrived"), [
        { scheduleId: "schedule_1", rule: rule(), revision: 1 },
        { scheduleId: "schedule_3", rule: rule(), revision: 1 },
      ]);
      await records.write(({ schedules }) => schedules.save(schedule(3, { rule: rule({ type: "other" }) })));
      assert.equal((await records.events.listeners("other")).length, 2);
    });

    test("waiting events are found oldest first, until they have a run or a reason", async (records) => {
      await insert(records, ...[1, 2, 3, 4].map((n) => event(n)));
      await records.write(async ({ events }) => {
        for (const seq of [3, 1, 2]) await events.insertMatch(match(seq, waits));
        await events.insertMatch(match(4));
        await events.insertMatch(match(4, { scheduleId: "schedule_2", ...waits }));
        assert.deepEqual(await events.waitingSeqs("schedule_1", 2), [1, 2]);
      });
      for (const maximum of [2, 9])
        assert.equal(await records.events.countWaiting(maximum), Math.min(4, maximum));
      assert.deepEqual(await records.events.waitingEvents("schedule_1", 2), [
        { ...event(1), seq: 1 },
        { ...event(2), seq: 2 },
      ]);
      await records.write(async ({ events }) => {
        await events.settleWaiting("schedule_1", 2, { runId: "run_9", reason: null });
        assert.deepEqual(await events.waitingSeqs("schedule_1", 9), [3]);
        await events.settleWaiting("schedule_1", 9, { runId: null, reason: "no" });
        assert.deepEqual(await events.waitingSeqs("schedule_2", 9), [4]);
      });
      const found = (await records.events.events(all)).rows.map(({ matches }) => matches[0]);
      assert.deepEqual(found.toReversed(), [
        match(1, { ...waits, isWaiting: false, runId: "run_9" }),
        match(2, { ...waits, isWaiting: false, runId: "run_9" }),
        match(3, { ...waits, isWaiting: false, reason: "no" }),
        match(4),
      ]);
      assert.deepEqual(await records.events.waitingEvents("schedule_1", 9), []);
    });

    test("what a run was started for is as deep as the deepest of its events, while they are known", async (records) => {
      await insert(records, event(1, { depth: 3 }), event(2, { depth: 5 }), event(3, { depth: 9 }));
      await records.write(async ({ events }) => {
        for (const seq of [1, 2, 3]) await events.insertMatch(match(seq, seq < 3 ? { runId: "run_1" } : {}));
      });
      assert.deepEqual(await Promise.all(["run_1", "run_3", "run_2"].map(records.events.depthOf)), [
        5,
        9,
        null,
      ]);
    });

    test("of waiting events with long payloads fewer are read at once, but always one", async (records) => {
      const payloadJson = JSON.stringify("x".repeat(3 * 1024 * 1024));
      await insert(records, ...[1, 2, 3].map((n) => event(n, { payloadJson })));
      await records.write(async ({ events }) => {
        for (const seq of [1, 2, 3]) await events.insertMatch(match(seq, waits));
      });
      const found = await records.events.waitingEvents("schedule_1", 9);
      assert.ok(found.length >= 1 && found.length < 3, String(found.length));
    });

    test("old events go oldest first, and those that are too many, but waiting ones stay", async (records) => {
      await insert(records, ...[1, 2, 3, 4, 5, 6].map((n) => event(n)));
      await records.write(({ events }) => events.insertMatch(match(2, waits)));
      await records.write(({ events }) => events.insertMatch(match(1)));
      const left = async () => (await records.events.events(all)).rows.map(({ seq }) => seq).join("");
      assert.equal(await records.events.forgetEvents(1_000, 100, 10), 0);
      assert.equal(await records.events.forgetEvents(4_000, 100, 1), 1);
      assert.equal(await records.events.forgetEvents(4_000, 100, 10), 1);
      assert.equal(await left(), "6542");
      assert.equal(await records.events.forgetEvents(0, 1, 10), 2);
      assert.equal(await left(), "62");
      await insert(records, event(7));
      assert.equal((await records.events.event("event_7"))?.seq, 7);
    });
  },
);
