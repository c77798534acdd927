// The contract of work that several programs share (src/operations/takeover.ts): whose it is, who takes it over, and that
// what one of them ends is not begun by another.

import assert from "node:assert/strict";
import { contractOnEach, type OpenDatabase } from "../../../test/support/databases.ts";
import { advance, job, launch, operation, run } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlOperationRecords } from "./operations.ts";
import { sqlPortRecords } from "./ports.ts";
import { sqlWorkOwners } from "./work-owners.ts";

const JOB = "job_0001";
const all = { limit: 9, after: null };

async function shared({ database, journal }: OpenDatabase) {
  const records = sqlGatewayRecords(database, systemClock.soon);
  await records.write((writes) => writes.insertJob(job(1)));
  const idsOf = (runs: readonly { readonly runId: string }[]) => runs.map(({ runId }) => runId);
  return {
    database,
    journal,
    records,
    operations: sqlOperationRecords(database),
    work: sqlWorkOwners(database),
    /** A run that waits, taken on by `owner`. */
    async waits(n: number, owner: string | null) {
      const one = run(n, JOB, { owner });
      await records.write((writes) => writes.insertRun(one));
      return one;
    },
    /** One that `owner` works on. */
    works: (n: number, owner: string | null) =>
      records.write((writes) => writes.operations.insert(operation(n, { owner }), "{}")),
    waiting: async (owner: string) => idsOf(await records.waitingRunsOf(owner, all)),
    strayed: async (owner: string, beforeMs: number) =>
      idsOf(await records.strayedRunsOf(owner, beforeMs, all)),
    ownerOf: async (runId: string) => (await records.run(runId))?.owner,
  };
}

contractOnEach("shared work", shared, (test) => {
  test("its owners are those of runs that are not launched and of operations that have not ended", async (under) => {
    await under.waits(1, "a/1");
    await under.waits(2, "a/1");
    await under.waits(3, null);
    await under.journal.commit([launch(await under.waits(4, "launched"))]);
    await under.waits(5, "cancelled");
    await under.records.write((writes) =>
      writes.endUnlaunched("run_0005", { status: "cancelled", failureJson: null }, 9),
    );
    await under.works(1, "b/1");
    await under.works(2, "ended");
    await under.records.write(({ operations }) =>
      operations.save(operation(2, { owner: "ended", status: "failed", finishedAtMs: 9, eventSeq: 2 }), "{}"),
    );
    const owners = await under.work.owners();
    assert.deepEqual(owners.toSorted(), ["a/1", "b/1", null]);
  });

  test("of lost programs is given to another one, and of nobody else", async (under) => {
    await under.waits(1, "lost/1");
    await under.waits(2, "living/1");
    await under.waits(3, null);
    const launched = await under.waits(4, "lost/1");
    await under.journal.commit([launch(launched)]);
    await under.works(1, "lost/2");
    await under.works(2, "living/1");
    await under.work.takeOver(["lost/1", "lost/2", null], "b/1");
    assert.deepEqual(await under.waiting("b/1"), ["run_0001", "run_0003"]);
    assert.deepEqual(await under.waiting("living/1"), ["run_0002"]);
    assert.deepEqual(await under.waiting("lost/1"), []);
    assert.equal(await under.ownerOf("run_0004"), "lost/1");
    const owners = (await under.operations.openOperations()).map(({ owner }) => owner);
    assert.deepEqual(owners, ["b/1", "living/1"]);
  });

  test("that nobody has taken on stays so while only named programs are lost", async (under) => {
    await under.waits(1, null);
    await under.work.takeOver(["lost/1"], "b/1");
    assert.equal(await under.ownerOf("run_0001"), null);
  });

  test("waits page by page, oldest first; a run whose job is being prepared waits for that", async (under) => {
    const blueprint = { source: { kind: "blueprint", blueprintId: "d" }, bundleFingerprint: null } as const;
    await under.records.write(async (writes) => {
      await writes.insertJob(job(2, { ...blueprint, status: "preparing" }));
      await writes.insertRun(run(5, "job_0002", { owner: "a/1" }));
    });
    for (const n of [1, 2, 3]) await under.waits(n, "a/1");
    assert.deepEqual(await under.waiting("a/1"), ["run_0001", "run_0002", "run_0003"]);
    const next = await under.records.waitingRunsOf("a/1", { limit: 1, after: "run_0001" });
    assert.deepEqual(
      next.map(({ runId }) => runId),
      ["run_0002"],
    );
  });

  test("that a drained program leaves is its runs that are not launched, and nobody has them", async (under) => {
    await under.waits(1, "a/1");
    await under.journal.commit([launch(await under.waits(2, "a/1"))]);
    await under.waits(3, "b/1");
    await under.works(1, "a/1");
    await under.work.leaveRuns("a/1");
    const owners = ["run_0001", "run_0002", "run_0003"].map((runId) => under.ownerOf(runId));
    assert.deepEqual(await Promise.all(owners), [null, "a/1", "b/1"]);
    assert.deepEqual(
      (await under.operations.openOperations()).map(({ owner }) => owner),
      ["a/1"],
    );
  });

  test("of a job is adopted: its runs that are not launched, and no others", async (under) => {
    await under.waits(1, "a/1");
    await under.journal.commit([launch(await under.waits(2, "a/1"))]);
    await under.records.write(async (writes) => {
      await writes.insertJob(job(2));
      await writes.insertRun(run(3, "job_0002", { owner: "a/1" }));
      await writes.adoptRuns(JOB, "b/1");
    });
    assert.deepEqual(
      await Promise.all(["run_0001", "run_0002", "run_0003"].map((runId) => under.ownerOf(runId))),
      ["b/1", "a/1", "a/1"],
    );
  });

  test("a run that comes to wait anew is its who asked for that", async (under) => {
    await under.waits(1, "a/1");
    const waiting = { status: "pending", label: null, owner: "b/1" } as const;
    await under.records.write((writes) => writes.setWaiting("run_0001", waiting, 9));
    assert.deepEqual(await under.waiting("b/1"), ["run_0001"]);
  });

  test("launched runs that nobody has brought to what was asked of them are their job's owner's to find", async (under) => {
    const runs = await Promise.all([1, 2, 3].map((n) => under.waits(n, "lost/1")));
    const owners = ["b/1", "b/1", "c/1"];
    for (const [i, one] of runs.entries()) {
      await under.journal.commit([launch(one, { owner: owners[i]! })]);
    }
    await under.records.write(async (writes) => {
      await writes.setDesiredState("run_0002", "cancelled", 100_000);
      await writes.setDesiredState("run_0003", "paused", 100_000);
    });
    assert.deepEqual(await under.strayed("b/1", 100_001), ["run_0002"]);
    assert.deepEqual(await under.strayed("c/1", 100_001), ["run_0003"]);
    assert.deepEqual(await under.strayed("b/1", 100_000), [], "a request may be under way");
  });

  test("the runtime's job of a run that has ended is not begun by a program that does not know of the end (J5)", async (under) => {
    const [ended, open] = [await under.waits(1, "a/1"), await under.waits(2, "a/1")];
    await under.records.write((writes) =>
      writes.endUnlaunched(ended.runId, { status: "cancelled", failureJson: null }, 9),
    );
    const nobodys = launch(run(3, JOB));
    const answer = await under.journal.commit([launch(ended), launch(open), nobodys]);
    assert.deepEqual(answer, { lost: ["g-0001", "g-0003"], unwritable: [] });
    assert.equal(await under.journal.load("g-0001"), null);
    assert.equal((await under.records.run(ended.runId))?.status, "cancelled");
    assert.equal((await under.records.run(open.runId))?.launched, true);
  });

  test("a first part that ended its run is known when it is sent again (J3)", async (under) => {
    const one = await under.waits(1, "a/1");
    const first = launch(one);
    const ended = { ...first, progress: { ...first.progress, status: "completed" as const } };
    for (let n = 0; n < 2; n++) {
      assert.deepEqual(await under.journal.commit([ended]), { lost: [], unwritable: [] });
    }
  });

  test("of two programs that launch a run, the second is told that it has lost it, and the run ends once", async (under) => {
    const one = await under.waits(1, "a/1");
    const written = { lost: [], unwritable: [] };
    assert.deepEqual(await under.journal.commit([launch(one, { owner: "b/1" })]), written);
    const second = await under.journal.commit([launch(one, { owner: "a/1" })]);
    assert.deepEqual(second, { lost: ["g-0001"], unwritable: [] });
    const end = (owner: string) => advance(one, 1, { status: "completed" }, { owner });
    assert.deepEqual(await under.journal.commit([end("a/1")]), { lost: ["g-0001"], unwritable: [] });
    assert.deepEqual(await under.journal.commit([end("b/1")]), written);
    assert.equal((await under.records.job(JOB))?.activeRuns, 0);
  });

  test("ports are a node's: another node gives the same ones, and a run that was taken over has its own there", async ({
    database,
    journal,
    records,
  }) => {
    const nodes = Object.fromEntries(
      ["a", "b"].map((node) => [
        node,
        {
          records: sqlGatewayRecords(database, systemClock.soon, node),
          ports: sqlPortRecords(database, node),
        },
      ]),
    );
    const reserve = (node: string, n: number) =>
      nodes[node]!.records.write(async (writes) => {
        await writes.insertRun(run(n, JOB, { owner: `${node}/1` }));
        return writes.ports.reserve(run(n, JOB).runId, "web_ui", [9_001, 9_002]);
      });
    assert.equal(await reserve("a", 1), 9_001);
    assert.equal(await reserve("b", 2), 9_001);
    assert.deepEqual(await nodes.a!.ports.portsOf("run_0001"), new Map([["web_ui", 9_001]]));
    assert.deepEqual(await nodes.b!.ports.portsOf("run_0001"), new Map());
    assert.equal(await reserve("a", 3), 9_002);
    assert.deepEqual(await nodes.b!.ports.portsInUse(), new Set([9_001]));
    assert.deepEqual(await nodes.b!.ports.portsInUseAnywhere(), new Set([9_001, 9_002]));
    // The second run of node a is launched, and its job is taken over by node b.
    await journal.commit([launch(run(3, JOB), { owner: "b/1" })]);
    assert.deepEqual(await nodes.b!.ports.portsInUse(), new Set([9_001, 9_002]));
    assert.equal(await reserve("b", 4), null);
    await journal.commit([
      advance(run(3, JOB), 1, { status: "completed", updatedAtMs: 50_000 }, { owner: "b/1" }),
    ]);
    assert.deepEqual(await nodes.b!.ports.portsInUse(), new Set([9_001]));
    assert.deepEqual(await nodes.b!.ports.portsInUseAnywhere(), new Set([9_001]));
    assert.deepEqual(await nodes.a!.ports.portsFreedSince(1), new Set([9_002]));
    assert.equal(await records.write((writes) => writes.run("run_0004")).then((one) => one?.launched), false);
  });
});
