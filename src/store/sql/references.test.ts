// Which rows name what is on disk, on every kind of database.

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { job, run } from "../../../test/support/gateway-samples.ts";
import { changes } from "../../../test/support/journal-records.ts";
import { systemClock } from "../../app/clock.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { runsThere } from "./references.ts";

contractOnEach(
  "the runs of some ids",
  ({ database, journal }) => ({
    database,
    journal,
    records: sqlGatewayRecords(database, systemClock.soon),
  }),
  (test) => {
    test("are those of the runtime and of the gateway", async ({ database, journal, records }) => {
      await journal.commit([changes({ jobId: "g-1" })]);
      await records.write(async (writes) => {
        await writes.insertJob(job(1));
        await writes.insertRun(run(1, "job_0001"));
      });
      const { runId } = run(1, "job_0001");
      const found = await runsThere(database, ["none", runId, "run_g-1"]);
      assert.deepEqual([...found].sort(), ["run_g-1", runId].sort());
      assert.deepEqual(await runsThere(database, []), new Set());
    });
  },
);
