// The contract of JobHeads (src/cluster/places.ts), on every kind of database.

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { job, operation, run } from "../../../test/support/gateway-samples.ts";
import { changes, progress } from "../../../test/support/journal-records.ts";
import { systemClock } from "../../app/clock.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlJobHeads } from "./heads.ts";

contractOnEach(
  "the heads of histories",
  ({ database, journal }) => ({
    heads: sqlJobHeads(database),
    journal,
    records: sqlGatewayRecords(database, systemClock.soon),
  }),
  (test) => {
    test("a job has its owner, its last event, and its end", async ({ heads, journal }) => {
      await journal.commit([
        changes({ jobId: "open", owner: "node_a/1", progress: progress({ eventSeq: 7 }) }),
        changes({ jobId: "over", owner: "node_a/1", progress: progress({ status: "failed", eventSeq: 9 }) }),
      ]);
      assert.deepEqual(
        await heads.heads(["open", "over", "none"]),
        new Map([
          ["open", { owner: "node_a/1", seq: 7, isEnd: false }],
          ["over", { owner: "node_a/1", seq: 9, isEnd: true }],
        ]),
      );
      assert.deepEqual(await heads.heads([]), new Map());
      assert.equal(await heads.ownerOf("open"), "node_a/1");
      assert.equal(await heads.ownerOf("over"), null);
      assert.equal(await heads.ownerOf("none"), null);
    });

    test("a run that ended before its launch is over with its one event, and one that waits has none", async ({
      heads,
      records,
    }) => {
      await records.write(async (writes) => {
        await writes.insertJob(job(1));
        for (const n of [1, 2]) assert.equal(await writes.insertRun(run(n, "job_0001")), true);
        await writes.endUnlaunched(run(1, "job_0001").runId, { status: "cancelled", failureJson: null }, 9);
      });
      const [over, waiting] = [run(1, "job_0001").runtimeJobId, run(2, "job_0001").runtimeJobId];
      assert.deepEqual(
        await heads.heads([over, waiting]),
        new Map([[over, { owner: null, seq: 1, isEnd: true }]]),
      );
      assert.equal(await heads.runOf(over), run(1, "job_0001").runId);
      assert.equal(await heads.runOf("none"), null);
    });

    test("an operation has its last event, and nobody who streams it", async ({ heads, records }) => {
      const asked = operation(1, { eventSeq: 1 });
      await records.write((writes) => writes.operations.insert(asked, "{}"));
      const head = { owner: null, seq: 1, isEnd: false };
      assert.deepEqual(await heads.heads([asked.operationId]), new Map([[asked.operationId, head]]));
    });
  },
);
