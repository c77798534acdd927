// The contract of what workers ask people (src/runs/human-answers.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { changes, humanRequest } from "../../../test/support/journal-records.ts";
import { sqlHumanRequestRecords } from "./human-requests.ts";

const MIB = 1024 * 1024;
const all = { status: null, limit: 200 } as const;

contractOnEach(
  "the records of requests to people",
  ({ database, journal }) => ({
    journal,
    records: sqlHumanRequestRecords(database),
    /** As retention does it: its own row first. */
    removeJob: (jobId: string) =>
      database.transaction((db) => db.deleteFrom("jobs").where("job_id", "=", jobId).execute()),
  }),
  (test) => {
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

    test("requests of a removed job are not found", async ({ journal, records, removeJob }) => {
      await journal.commit([changes({ humanRequests: [humanRequest(1)] })]);
      await removeJob("g-1");
      assert.deepEqual((await records.humanRequests("g-1", { ...all, afterSeq: 0 })).rows, []);
      assert.equal(await records.humanRequest("g-1", "ask-1"), null);
    });
  },
);
