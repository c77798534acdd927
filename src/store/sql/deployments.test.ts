// The contract of deployments (src/deployments/records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { deployment, instance } from "../../../test/support/deployment-samples.ts";
import { job, run } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import type { Deployment } from "../../deployments/records.ts";
import { sqlGatewayRecords } from "./gateway.ts";

/** Everything that may be null is something. */
const full = deployment({
  deploymentId: "deployment_2",
  status: "failed",
  stable: { version: 1, count: 3 },
  isRollingBack: true,
  isPromoted: true,
  lastFailure: { atMs: 5, version: 1, reason: "no" },
  started: 3,
  eventSeq: 7,
});
const instances = [
  instance(1, { phase: "serving", health: "passing", node: "a", servesSinceMs: 5 }),
  instance(2, { phase: "draining", stopAtMs: 9 }),
  instance(3),
];

contractOnEach(
  "the records of deployments",
  async ({ database }) => {
    const records = sqlGatewayRecords(database, systemClock.soon);
    const insert = (one: Deployment) => records.write(({ deployments }) => deployments.insert(one));
    return { records, insert };
  },
  (test) => {
    test("a deployment comes back as it was written and saved, with its instances, until it is removed", async ({
      records,
      insert,
    }) => {
      const { deployments } = records;
      await insert(full);
      assert.deepEqual(await deployments.deployment("deployment_2"), full);
      const more = { ...full, instances, changes: 2 };
      await records.write(({ deployments: writes }) => writes.save(more, full));
      assert.deepEqual(await deployments.deployment("deployment_2"), more);
      const [first, second] = instances;
      const healthy = { ...first!, health: "critical" as const };
      const fewer = { ...more, instances: [healthy, second!], changes: 3 };
      await records.write(async ({ deployments: writes }) => {
        await writes.save(fewer, more);
        assert.deepEqual(await writes.deployment("deployment_2"), fewer);
      });
      assert.deepEqual(await deployments.deployment("deployment_2"), fewer);
      await records.write(({ deployments: writes }) => writes.remove("deployment_2"));
      assert.equal(await deployments.deployment("deployment_2"), null);
    });

    test("lists are newest first, by status, a page at a time, without deleted ones", async ({
      records: { deployments },
      insert,
    }) => {
      for (let n = 1; n <= 4; n++)
        await insert(
          deployment({
            deploymentId: `deployment_${n}`,
            isDeleted: n === 3,
            status: n === 2 ? "failed" : "running",
          }),
        );
      const any = { status: null, limit: 10, after: null };
      const ids = async (page: Partial<Parameters<typeof deployments.deployments>[0]>) =>
        (await deployments.deployments({ ...any, ...page })).rows
          .map(({ deploymentId }) => deploymentId.slice(-1))
          .join("");
      assert.equal(await ids({}), "421");
      assert.equal(await ids({ limit: 1, after: "deployment_4" }), "2");
      assert.equal(await ids({ status: "failed" }), "2");
      assert.deepEqual(
        (await deployments.deploymentChanges("deployment_1", 2)).map(({ deploymentId }) =>
          deploymentId.slice(-1),
        ),
        ["2", "3"],
      );
    });

    test("services of instances are out of service until these serve, and again when they are drained", async ({
      records,
      insert,
    }) => {
      await insert(full);
      await records.write(({ deployments }) => deployments.save({ ...full, instances }, full));
      assert.deepEqual(await records.deployments.outOfService(), new Set(["run_0002", "run_0003"]));
    });

    test("runs of instances are open until they end or are deleted", async ({ records, insert }) => {
      await insert(full);
      await records.write(async (writes) => {
        await writes.insertJob(job(1));
        await writes.insertRun(run(1, "job_0001"));
        await writes.insertRun(run(2, "job_0001"));
        await writes.endUnlaunched("run_0002", { status: "failed", failureJson: "{}" }, 9);
        await writes.deployments.save({ ...full, instances }, full);
      });
      const found = (await records.deployments.instanceRuns("deployment_2")).toSorted((a, b) =>
        a.runId < b.runId ? -1 : 1,
      );
      assert.deepEqual(
        found.map(({ status, hasEnded, failureJson }) => [status, hasEnded, failureJson]),
        [
          ["pending", false, null],
          ["failed", true, "{}"],
          [null, true, null],
        ],
      );
    });

    test("the newest thousand events are kept, in order", async ({ records, insert }) => {
      await insert(full);
      const lines = Array.from({ length: 1_003 }, (_, i) => `line ${i + 1}`);
      await records.write(async ({ deployments }) => {
        await deployments.addEvents("deployment_2", 1, lines.slice(0, 1_000));
        await deployments.addEvents("deployment_2", 1_001, lines.slice(1_000));
      });
      const { deployments } = records;
      assert.deepEqual(await deployments.deploymentEvents("deployment_2", 0, 2), {
        firstSeq: 4,
        lines: ["line 4", "line 5"],
      });
      assert.deepEqual(await deployments.deploymentEvents("deployment_2", 1_002, 9), {
        firstSeq: 1_003,
        lines: ["line 1003"],
      });
      assert.deepEqual(await deployments.deploymentEvents("deployment_2", 1_003, 9), {
        firstSeq: 1_004,
        lines: [],
      });
    });
  },
);
