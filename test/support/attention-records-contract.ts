// The contract of the records of what a person may have to see to (src/runs/attention-records.ts) as a suite.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DeadLetterRecord, Journal } from "../../src/engine/journal.ts";
import type { AttentionRecords } from "../../src/runs/attention-records.ts";
import type { Portion } from "../../src/runs/portion.ts";
import { changes, humanRequest, next } from "./journal-contract.ts";

/** Records under test with the journal that fills them. */
export interface AttentionUnderTest {
  readonly journal: Journal;
  readonly records: AttentionRecords;
  /** Removes a job as retention does: its own row first. */
  removeJob(jobId: string): Promise<void>;
  close(): Promise<void>;
}

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

export function attentionRecordsContract(name: string, open: () => Promise<AttentionUnderTest>): void {
  const test = (sentence: string, body: (under: AttentionUnderTest) => Promise<void>) =>
    it(sentence, async () => {
      const under = await open();
      try {
        await body(under);
      } finally {
        await under.close();
      }
    });
  describe(`${name} as the records of what needs attention`, () => {
    humanContract(test);
    lettersContract(test);
  });
}

type Test = (sentence: string, body: (under: AttentionUnderTest) => Promise<void>) => void;

function humanContract(test: Test): void {
  const response = {
    decision: "yes",
    comment: "fine",
    dataJson: '{"n":[1]}',
    principal: "anonymous",
    respondedAtMs: 9,
  };
  const answered = humanRequest(2, { status: "answered", response });

  test("requests are listed in the order in which they were asked, a page at a time, of one job alone", async (under) => {
    const { journal, records } = under;
    await journal.commit([
      changes({ humanRequests: [humanRequest(3), answered, humanRequest(1, { taskSeq: null })] }),
      changes({ jobId: "g-2", humanRequests: [humanRequest(7)] }),
    ]);
    const first = await records.humanRequests("g-1", { ...all, limit: 2, afterSeq: 0 });
    assert.deepEqual(first, { rows: [humanRequest(1, { taskSeq: null }), answered], isCut: false });
    const rest = await records.humanRequests("g-1", { ...all, limit: 2, afterSeq: 2 });
    assert.deepEqual(rest.rows, [humanRequest(3)]);
  });

  test("requests are listed by status", async ({ journal, records }) => {
    await journal.commit([changes({ humanRequests: [humanRequest(1), answered, humanRequest(3)] })]);
    const seqs = async (status: "pending" | "answered" | "timed_out", afterSeq = 0) =>
      (await records.humanRequests("g-1", { status, limit: 9, afterSeq })).rows.map((one) => one.eventSeq);
    assert.deepEqual(await seqs("pending"), [1, 3]);
    assert.deepEqual(await seqs("pending", 1), [3]);
    assert.deepEqual(await seqs("answered"), [2]);
    assert.deepEqual(await seqs("timed_out"), []);
  });

  test("a request is found by its id, in its own job", async ({ journal, records }) => {
    await journal.commit([
      changes({ humanRequests: [humanRequest(1)] }),
      changes({ jobId: "g-2", humanRequests: [{ ...answered, requestId: "ask-1" }] }),
    ]);
    assert.deepEqual(await records.humanRequest("g-1", "ask-1"), humanRequest(1));
    assert.equal((await records.humanRequest("g-2", "ask-1"))?.status, "answered");
    assert.equal(await records.humanRequest("g-1", "ask-2"), null);
  });

  test("a page of requests ends before its texts are too long", async ({ journal, records }) => {
    const large = { ...response, dataJson: `"${"x".repeat(3 * MIB)}"` };
    const asked = [1, 2, 3].map((n) => humanRequest(n, { status: "answered", response: large }));
    await journal.commit([changes({ humanRequests: asked })]);
    const page = await records.humanRequests("g-1", { ...all, afterSeq: 0 });
    assert.deepEqual([page.rows.length, page.isCut], [2, true]);
    const rest = await records.humanRequests("g-1", { ...all, afterSeq: 2 });
    assert.deepEqual([rest.rows.length, rest.isCut], [1, false]);
  });

  test("what a removed job asked is not found", async ({ journal, records, removeJob }) => {
    await journal.commit([changes({ humanRequests: [humanRequest(1)] })]);
    await removeJob("g-1");
    assert.deepEqual((await records.humanRequests("g-1", { ...all, afterSeq: 0 })).rows, []);
    assert.equal(await records.humanRequest("g-1", "ask-1"), null);
  });
}

function lettersContract(test: Test): void {
  const ids = ({ rows }: Portion<{ readonly deadLetterId: string }>) => rows.map((one) => one.deadLetterId);
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
      },
    ]);
    assert.deepEqual(await records.deadLetters("nobody", { ...all, before: null }), {
      rows: [],
      isCut: false,
    });
  });

  test("a letter that was sent again says when, and is listed as such", async ({ journal, records }) => {
    await journal.commit([changes({ deadLetters: some })]);
    await journal.commit([next(1, { deadLettersRetried: [{ deadLetterId: "dl_2", retriedAtMs: 7 }] })]);
    const found = await records.deadLetter("g-1", "dl_2");
    assert.deepEqual([found?.status, found?.retriedAtMs, found?.agentId], ["retried", 7, null]);
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
    await journal.commit([next(1, { deadLettersRetried: [{ deadLetterId: "dl_2", retriedAtMs: 7 }] })]);
    assert.deepEqual(await work(""), ["dl_1", "dl_3"]);
    assert.deepEqual(await work("dl_1"), ["dl_3"]);
    assert.equal(await records.newestOpenLetter("g-1"), "dl_4");
    await journal.commit([next(2, { deadLettersRetried: [{ deadLetterId: "dl_4", retriedAtMs: 7 }] })]);
    assert.equal(await records.newestOpenLetter("g-1"), "dl_3");
    assert.equal(await records.newestOpenLetter("nobody"), null);
  });

  test("what is taken up at once is small, and at least one letter", async ({ journal, records }) => {
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
}
