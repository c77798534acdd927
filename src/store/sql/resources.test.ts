// The contract of stored limits (src/resources/records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { noLimits } from "../../resources/limits.ts";
import { sqlResourceRecords } from "./resources.ts";

/** Everything that may be null is something. */
const full = {
  limits: {
    cpuPercent: 12.5,
    memoryPercent: 25,
    memoryBytes: 2 ** 40,
    diskPercent: 99,
    diskBytes: 2 ** 45,
    gpuIndices: [0, 3],
  },
  revision: 2,
};

contractOnEach(
  "the stored limits of resources",
  (open) => open,
  (test) => {
    test("there is no limit at first, and what is set is there after a restart", async (open) => {
      const records = sqlResourceRecords(open.database);
      const none = { limits: noLimits, revision: 1 };
      assert.deepEqual(await records.limits(), none);
      assert.deepEqual(
        await records.changeLimits((before) => {
          assert.deepEqual(before, none);
          return full;
        }),
        full,
      );
      const { database } = await open.reopen();
      assert.deepEqual(await sqlResourceRecords(database).limits(), full);
    });

    test("changes that are made together go one after the other", async ({ database }) => {
      const records = sqlResourceRecords(database);
      const raise = () =>
        records.changeLimits(({ limits, revision }) => ({ limits, revision: revision + 1 }));
      await Promise.all(Array.from({ length: 20 }, raise));
      assert.equal((await records.limits()).revision, 21);
    });

    test("a change that is refused, or none, changes nothing", async ({ database }) => {
      const records = sqlResourceRecords(database);
      await records.changeLimits(() => full);
      const refused = records.changeLimits(() => {
        throw new RangeError("no");
      });
      await assert.rejects(refused, RangeError);
      assert.deepEqual(await records.changeLimits((before) => before), full);
      assert.deepEqual(await records.limits(), full);
    });
  },
);
