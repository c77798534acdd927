// The part of the gateway's contract that is about removal: what deleted jobs leave, and what others must leave alone.

import assert from "node:assert/strict";
import {
  type ContractTest,
  type GatewayUnderTest,
  gatewayContract,
  withJobs,
  withoutParts,
  withRuns,
} from "../../../test/support/gateway-records.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { agent, artifact, changes, progress } from "../../../test/support/journal-records.ts";

/** Two jobs with two ended runs each; what they made is in the journal. */
async function scene(under: GatewayUnderTest): Promise<void> {
  await withJobs(under, job(1), job(2));
  const over = { progress: progress({ status: "completed" }), agents: [agent(0)] };
  for (const n of [1, 2, 3, 4]) {
    const one = run(n, n <= 2 ? "job_0001" : "job_0002");
    await withRuns(under, one);
    await under.journal.commit([launch(one, { ...over, artifacts: [artifact(`sha-${n}`)] })]);
  }
}

gatewayContract("the gateway's records, of removal", contract);

function contract(test: ContractTest): void {
  test("nothing is purged while nothing is deleted", async (under) => {
    await scene(under);
    assert.equal(await under.records.purgeDeleted(10), false);
    assert.notEqual(await under.records.run("run_0001"), null);
  });

  test("the runs of a deleted job are removed a few at a time, and their files are recorded as garbage", async (under) => {
    const { records, runtime } = under;
    await scene(under);
    await records.write((writes) => writes.deleteJob("job_0001", 1));
    assert.equal(await records.purgeDeleted(1), true);
    const left = await Promise.all(["g-0001", "g-0002"].map((id) => runtime.find(id)));
    assert.equal(left.filter((one) => one !== null).length, 1);
    const again = await under.reopen();
    while (await again.records.purgeDeleted(1)) {
      // Until nothing is left.
    }
    for (const id of ["g-0001", "g-0002"]) {
      assert.equal(await again.runtime.find(id), null);
      assert.deepEqual((await again.runtime.events(id, 0)).lines, []);
    }
    assert.deepEqual(await again.runtime.artifactPage("run_0001", 100, null), []);
    await withoutParts(again);
    const garbage = await again.retention.fileGarbage(10, null);
    assert.deepEqual(
      garbage.map(({ kind, name }) => `${kind} ${name}`),
      ["blob sha-1", "blob sha-2", "run run_0001", "run run_0002"],
    );
    // Its ids are free again: nothing of it is left.
    await withJobs(again, job(1));
    await withRuns(again, run(1, "job_0001"));
    assert.equal((await again.records.job("job_0001"))?.activeRuns, 1);
    assert.equal((await again.runtime.artifactPage("run_0003", 100, null)).length, 1);
  });

  test("an open run of a deleted job is left until it has ended", async (under) => {
    const { records, journal, runtime } = under;
    const open = run(1, "job_0001");
    await withJobs(under, job(1));
    await withRuns(under, open);
    await journal.commit([launch(open)]);
    await records.write((writes) => writes.deleteJob("job_0001", 1));
    assert.equal(await records.purgeDeleted(10), false);
    assert.deepEqual(await journal.commit([advance(open, 1, { status: "cancelled" })]), {
      lost: [],
      unwritable: [],
    });
    assert.equal(await records.purgeDeleted(10), true);
    assert.equal(await runtime.find("g-0001"), null);
    assert.equal(await records.purgeDeleted(10), false);
  });

  test("a deleted job that never ran is purged, and once", async (under) => {
    const { records } = under;
    await withJobs(under, job(1), job(2));
    await records.write((writes) => writes.deleteJob("job_0001", 1));
    assert.deepEqual([await records.purgeDeleted(10), await records.purgeDeleted(10)], [true, false]);
    assert.notEqual(await records.job("job_0002"), null);
  });

  test("a run that was never launched is purged with its job", async (under) => {
    const { records } = under;
    await withJobs(under, job(1));
    await withRuns(under, run(1, "job_0001"));
    await records.write(async (writes) => {
      await writes.endUnlaunched("run_0001", { status: "cancelled", failureJson: null }, 1);
      await writes.deleteJob("job_0001", 1);
    });
    assert.equal(await records.purgeDeleted(10), true);
    assert.equal(await records.purgeDeleted(10), false);
  });

  test("the runtime's own cleanup leaves alone what belongs to a run of the gateway", async (under) => {
    await scene(under);
    await under.journal.commit([
      changes({ jobId: "bare", progress: progress({ status: "completed" }) }),
      changes({ jobId: "bare-open" }),
    ]);
    assert.deepEqual(await under.retention.removeOwn(10), ["bare"]);
    assert.deepEqual(await under.retention.removeOwn(10), []);
    assert.notEqual(await under.runtime.find("g-0001"), null);
    assert.equal((await under.records.run("run_0001"))?.progress.eventCount, 1);
  });
}
