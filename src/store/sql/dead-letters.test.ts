// The contract of dead letters (src/runs/dead-letters.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { changes, next } from "../../../test/support/journal-records.ts";
import type { DeadLetterRecord } from "../../engine/journal.ts";
import type { Page } from "../../lib/page.ts";
import { sqlDeadLetterRecords } from "./dead-letters.ts";

const letter = (n: number, given: Partial<DeadLetterRecord> = {}): DeadLetterRecord => ({
  deadLetterId: `dl_${n}`,
  agentId: n === 2 ? null : "a",
  reason: "ttl_expired",
  attempts: n,
  message: { message_id: `m${n}` } as never,
  createdAtMs: 100 + n,
  ...given,
});

const MIB = 1024 * 1024;
const all = { status: null, limit: 200 } as const;

contractOnEach(
  "the records of dead letters",
  ({ database, journal }) => ({
    journal,
    records: sqlDeadLetterRecords(database),
    /** As retention does it: its own row first. */
    removeJob: (jobId: string) =>
      database.transaction((db) => db.deleteFrom("jobs").where("job_id", "=", jobId).execute()),
  }),
  (test) => {
    const ids = ({ rows }: Page<{ readonly deadLetterId: string }>) => rows.map((one) => one.deadLetterId);
    const some = [letter(1), letter(2), letter(3), letter(4)];

    test("letters are listed newest first, a page at a time, of one job alone", async ({
      journal,
      records,
    }) => {
      await journal.commit([
        changes({ deadLetters: [letter(3), letter(1), letter(2)] }),
        changes({ jobId: "g-2", deadLetters: [letter(4)] }),
      ]);
      const newest = await records.deadLetters("g-1", { ...all, limit: 2, before: null });
      assert.deepEqual(ids(newest), ["dl_3", "dl_2"]);
      const rest = await records.deadLetters("g-1", { ...all, limit: 2, before: "dl_2" });
      assert.deepEqual(rest.rows, [
        {
          deadLetterId: "dl_1",
          agentId: "a",
          reason: "ttl_expired",
          attempts: 1,
          status: "open",
          createdAtMs: 101,
          retriedAtMs: null,
          messageJson: '{"message_id":"m1"}',
          changeJson: null,
        },
      ]);
      assert.deepEqual(await records.deadLetters("nobody", { ...all, before: null }), {
        rows: [],
        isCut: false,
      });
    });

    test("a letter that was sent again has its time, and is listed as retried", async ({
      journal,
      records,
    }) => {
      const changeJson = '{"principal":"token","body":[7]}';
      await journal.commit([changes({ deadLetters: some })]);
      await journal.commit([
        next(1, { deadLettersRetried: [{ deadLetterId: "dl_2", retriedAtMs: 7, changeJson }] }),
      ]);
      const found = await records.deadLetter("g-1", "dl_2");
      assert.deepEqual([found?.status, found?.retriedAtMs, found?.agentId], ["retried", 7, null]);
      assert.equal(found?.changeJson, changeJson);
      const list = (status: "open" | "retried") =>
        records.deadLetters("g-1", { status, limit: 9, before: null }).then(ids);
      assert.deepEqual(await list("open"), ["dl_4", "dl_3", "dl_1"]);
      assert.deepEqual(await list("retried"), ["dl_2"]);
    });

    test("a letter is found by its id, in its own job", async ({ journal, records }) => {
      await journal.commit([
        changes({ deadLetters: [letter(1)] }),
        changes({ jobId: "g-2", deadLetters: [letter(2)] }),
      ]);
      assert.equal((await records.deadLetter("g-1", "dl_1"))?.messageJson, '{"message_id":"m1"}');
      assert.equal(await records.deadLetter("g-1", "dl_2"), null);
    });

    test("a page of letters ends before its texts are too long", async ({ journal, records }) => {
      const message = { body: "x".repeat(3 * MIB) } as never;
      await journal.commit([changes({ deadLetters: [1, 2, 3].map((n) => letter(n, { message })) })]);
      const page = await records.deadLetters("g-1", { ...all, before: null });
      assert.deepEqual([ids(page), page.isCut], [["dl_3", "dl_2"], true]);
      assert.deepEqual(ids(await records.deadLetters("g-1", { ...all, before: "dl_2" })), ["dl_1"]);
    });

    test("open letters are worked on oldest first, between two ids, without those that were sent again", async (under) => {
      const { journal, records } = under;
      await journal.commit([changes({ deadLetters: some })]);
      const work = async (after: string, limit = 9) =>
        (await records.openLetters("g-1", { after, through: "dl_3", limit })).map((one) => one.deadLetterId);
      assert.deepEqual(await work(""), ["dl_1", "dl_2", "dl_3"]);
      assert.deepEqual(await work("", 2), ["dl_1", "dl_2"]);
      await journal.commit([
        next(1, { deadLettersRetried: [{ deadLetterId: "dl_2", retriedAtMs: 7, changeJson: null }] }),
      ]);
      assert.deepEqual(await work(""), ["dl_1", "dl_3"]);
      assert.deepEqual(await work("dl_1"), ["dl_3"]);
      assert.equal(await records.newestOpenLetter("g-1"), "dl_4");
      await journal.commit([
        next(2, { deadLettersRetried: [{ deadLetterId: "dl_4", retriedAtMs: 7, changeJson: null }] }),
      ]);
      assert.equal(await records.newestOpenLetter("g-1"), "dl_3");
      assert.equal(await records.newestOpenLetter("nobody"), null);
    });

    test("a pass of work is bounded in size, and has at least one letter", async ({ journal, records }) => {
      const message = { body: "x".repeat(200 * 1024) } as never;
      await journal.commit([changes({ deadLetters: [1, 2, 3].map((n) => letter(n, { message })) })]);
      const taken = await records.openLetters("g-1", { after: "", through: "dl_9", limit: 100 });
      assert.deepEqual(
        taken.map((one) => one.deadLetterId),
        ["dl_1"],
      );
    });

    test("the letters of a removed job are not found", async ({ journal, records, removeJob }) => {
      await journal.commit([changes({ deadLetters: some })]);
      await removeJob("g-1");
      assert.deepEqual((await records.deadLetters("g-1", { ...all, before: null })).rows, []);
      assert.equal(await records.deadLetter("g-1", "dl_1"), null);
      assert.equal(await records.newestOpenLetter("g-1"), null);
      assert.deepEqual(await records.openLetters("g-1", { after: "", through: "dl_9", limit: 9 }), []);
    });
  },
);
