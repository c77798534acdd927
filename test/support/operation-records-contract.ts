// The contract of operations and of what is kept of blueprints as a suite: every implementation passes it
// (src/operations/records.ts, O1 to O3; src/blueprints/records.ts).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BlueprintAsset, BlueprintRecords, PreparedBlueprint } from "../../src/blueprints/records.ts";
import type { GatewayRecords, JobDefinition } from "../../src/launch/records.ts";
import type { Operation, OperationRecords } from "../../src/operations/records.ts";
import { job, run } from "./gateway-samples.ts";

export interface OperationsUnderTest {
  readonly gateway: GatewayRecords;
  readonly operations: OperationRecords;
  readonly blueprints: BlueprintRecords;
  /** Whether retention counts the snapshot as named. */
  isSnapshotNamed(fingerprint: string): Promise<boolean>;
  close(): Promise<void>;
}

export function operation(n: number, changes: Partial<Operation> = {}): Operation {
  return {
    operationId: `op_000${n}`,
    kind: "blueprint_addition",
    target: `target-${n}`,
    status: "running",
    percent: 10 * n,
    label: "Copying",
    step: "package",
    steps: [{ name: "package", label: "Copying", status: "running" }],
    request: { force: true },
    result: null,
    error: null,
    eventSeq: 1,
    createdAtMs: n,
    updatedAtMs: n,
    finishedAtMs: null,
    ...changes,
  };
}

const ends: Partial<Operation> = { status: "completed", step: null, result: { a: 1 }, finishedAtMs: 100 };

const prepared = (blueprintId: string, changes: Partial<PreparedBlueprint> = {}): PreparedBlueprint => ({
  blueprintId,
  state: "added",
  fingerprint: "f".repeat(64),
  sizeBytes: 12,
  operationId: "op_0001",
  addedAtMs: 5,
  updatedAtMs: 6,
  error: { code: "internal", detail: "no", retryable: true },
  ...changes,
});

const asset = (changes: Partial<BlueprintAsset> = {}): BlueprintAsset => ({
  blueprintId: "digest",
  kind: "model",
  assetId: "tiny",
  recipe: "r1",
  ready: true,
  bytes: 4_000_000_000,
  createdAtMs: 7,
  ...changes,
});

export function operationRecordsContract(name: string, open: () => Promise<OperationsUnderTest>): void {
  const test = (sentence: string, body: (under: OperationsUnderTest) => Promise<void>) =>
    it(sentence, async () => {
      const under = await open();
      try {
        await body(under);
      } finally {
        await under.close();
      }
    });
  describe(`${name} as the records of operations`, () => operationTests(test));
  describe(`${name} as the records of blueprints`, () => {
    blueprintTests(test);
    jobTests(test);
  });
}

type ContractTest = (sentence: string, body: (under: OperationsUnderTest) => Promise<void>) => void;

function operationTests(test: ContractTest): void {
  test("an operation comes back as it was written, with its events in order", async ({
    gateway,
    operations,
  }) => {
    const first = operation(1);
    const failed = operation(1, {
      status: "failed",
      eventSeq: 2,
      error: { code: "disk_full", detail: "full", retryable: true },
      finishedAtMs: 9,
    });
    await gateway.write((writes) => writes.operations.insert(first, '{"id":1}'));
    assert.deepEqual(await operations.operation("op_0001"), first);
    assert.deepEqual(await operations.openOperations(), [first]);
    await gateway.write((writes) => writes.operations.save(failed, '{"id":2}'));
    assert.deepEqual(await operations.operation("op_0001"), failed);
    assert.deepEqual(await operations.openOperations(), []);
    assert.equal(await operations.operation("op_0002"), null);
    const events = (after: number, limit: number) => operations.operationEvents("op_0001", after, limit);
    assert.deepEqual(await events(0, 10), { firstSeq: 1, lines: ['{"id":1}', '{"id":2}'] });
    assert.deepEqual(await events(1, 10), { firstSeq: 2, lines: ['{"id":2}'] });
    assert.deepEqual(await events(0, 1), { firstSeq: 1, lines: ['{"id":1}'] });
    assert.deepEqual(await events(2, 10), { firstSeq: 3, lines: [] });
  });

  test("what is remembered without an event changes the record alone", async ({ gateway, operations }) => {
    await gateway.write((writes) => writes.operations.insert(operation(1), "{}"));
    await gateway.write((writes) => writes.operations.save(operation(1, { result: { plan: [] } }), null));
    assert.deepEqual((await operations.operation("op_0001"))?.result, { plan: [] });
    assert.equal((await operations.operationEvents("op_0001", 0, 10)).lines.length, 1);
  });

  test("one that has ended is never changed again (O2)", async ({ gateway, operations }) => {
    const over = operation(1, { ...ends, eventSeq: 2 });
    await gateway.write((writes) => writes.operations.insert(operation(1), "{}"));
    await gateway.write((writes) => writes.operations.save(over, "{}"));
    const late = operation(1, { label: "late", eventSeq: 3 });
    await assert.rejects(
      gateway.write((writes) => writes.operations.save(late, "{}")),
      /has ended/,
    );
    assert.deepEqual(await operations.operation("op_0001"), over);
    assert.equal((await operations.operationEvents("op_0001", 0, 10)).lines.length, 2);
  });

  test("a number that an event has is not given to another one (O3)", async ({ gateway, operations }) => {
    await gateway.write((writes) => writes.operations.insert(operation(1), "{}"));
    await assert.rejects(gateway.write((writes) => writes.operations.save(operation(1), "{}")));
    assert.equal((await operations.operation("op_0001"))?.eventSeq, 1);
  });

  test("the one that is open of a target is found, inside the transaction too", async ({ gateway }) => {
    await gateway.write(async ({ operations }) => {
      assert.equal(await operations.open("target-1"), null);
      await operations.insert(operation(1), "{}");
      assert.equal((await operations.open("target-1"))?.operationId, "op_0001");
      assert.equal(await operations.open("target-2"), null);
      await operations.save(operation(1, { ...ends, eventSeq: 2 }), "{}");
      assert.equal(await operations.open("target-1"), null);
    });
  });

  test("pages go newest first, by target, by status, and by both", async ({ gateway, operations }) => {
    await gateway.write(async (writes) => {
      for (let n = 1; n <= 6; n++) {
        const changes = { target: n % 2 === 0 ? "even" : "odd", ...(n <= 3 && ends) };
        await writes.operations.insert(operation(n, changes), "{}");
      }
    });
    const ids = async (
      target: string | null,
      status: Operation["status"] | null,
      after: string | null = null,
    ) =>
      (await operations.operations({ target, status, limit: 2, after })).rows.map((one) => one.operationId);
    assert.deepEqual(await ids(null, null), ["op_0006", "op_0005"]);
    assert.deepEqual(await ids(null, null, "op_0002"), ["op_0001"]);
    assert.deepEqual(await ids("even", null), ["op_0006", "op_0004"]);
    assert.deepEqual(await ids("even", null, "op_0004"), ["op_0002"]);
    assert.deepEqual(await ids(null, "completed"), ["op_0003", "op_0002"]);
    assert.deepEqual(await ids("odd", "completed", "op_0003"), ["op_0001"]);
    assert.deepEqual(await ids("even", "failed"), []);
    assert.deepEqual(
      (await operations.openOperations()).map((one) => one.operationId),
      ["op_0004", "op_0005", "op_0006"],
    );
  });

  test("those that ended long ago are forgotten with their events, the oldest first", async ({
    gateway,
    operations,
  }) => {
    await gateway.write(async (writes) => {
      for (const n of [1, 2, 3]) {
        await writes.operations.insert(operation(n, { ...ends, finishedAtMs: n * 10 }), "{}");
      }
      await writes.operations.insert(operation(4), "{}");
    });
    assert.equal(await operations.forgetOperations(25, 1), 1);
    assert.equal(await operations.operation("op_0001"), null);
    assert.deepEqual((await operations.operationEvents("op_0001", 0, 10)).lines, []);
    assert.equal(await operations.forgetOperations(25, 10), 1);
    assert.equal(await operations.forgetOperations(25, 10), 0);
    assert.notEqual(await operations.operation("op_0003"), null);
    assert.notEqual(await operations.operation("op_0004"), null);
  });
}

function blueprintTests(test: ContractTest): void {
  test("what was prepared comes back as it was written, and goes", async ({ gateway, blueprints }) => {
    const one = prepared("digest");
    const changed = prepared("digest", { state: "failed", fingerprint: null, addedAtMs: null, error: null });
    await gateway.write(async (writes) => {
      assert.equal(await writes.blueprints.prepared("digest"), null);
      await writes.blueprints.save(prepared("other"));
      await writes.blueprints.save(one);
      assert.deepEqual(await writes.blueprints.prepared("digest"), one);
    });
    assert.deepEqual(await blueprints.prepared("digest"), one);
    assert.deepEqual(await blueprints.allPrepared(), [one, prepared("other")]);
    await gateway.write((writes) => writes.blueprints.save(changed));
    assert.deepEqual(await blueprints.prepared("digest"), changed);
    await gateway.write((writes) => writes.blueprints.delete("digest"));
    assert.equal(await blueprints.prepared("digest"), null);
  });

  test("assets belong to their blueprint; a model's owners are those that have it whole", async ({
    gateway,
    blueprints,
  }) => {
    const resource = asset({ kind: "resource", assetId: "index" });
    const half = asset({ blueprintId: "half", ready: false });
    const other = asset({ blueprintId: "other" });
    await gateway.write(async (writes) => {
      for (const one of [asset({ recipe: "r0" }), asset(), resource, half, other])
        await writes.blueprints.saveAsset(one);
    });
    assert.deepEqual(await blueprints.assets("digest"), [resource, asset()]);
    assert.deepEqual(await blueprints.modelOwners("tiny"), ["digest", "other"]);
    assert.equal(await blueprints.hasModelFile("tiny", "r1", "digest"), true);
    assert.equal(await blueprints.hasModelFile("tiny", "r2", "digest"), false);
    await gateway.write((writes) => writes.blueprints.deleteAsset(other));
    assert.equal(await blueprints.hasModelFile("tiny", "r1", "digest"), false);
    assert.deepEqual(await blueprints.assets("digest"), [resource, asset()]);
  });

  test("a package is used by whatever else has its name, and retention leaves what a blueprint has", async (under) => {
    const { gateway, blueprints } = under;
    const mine = "a".repeat(64);
    await gateway.write((writes) => writes.blueprints.save(prepared("digest", { fingerprint: mine })));
    assert.equal(await under.isSnapshotNamed(mine), true);
    assert.equal(await blueprints.isPackageUsed(mine, "digest"), false);
    assert.equal(await blueprints.isPackageUsed(mine, "other"), true);
    await gateway.write((writes) => writes.insertJob(job(1, { bundleFingerprint: mine })));
    assert.equal(await blueprints.isPackageUsed(mine, "digest"), true);
    await gateway.write((writes) => writes.blueprints.delete("digest"));
    assert.equal(await under.isSnapshotNamed("b".repeat(64)), false);
  });
}

const ofDigest = (n: number, status: JobDefinition["status"], blueprintId = "digest"): JobDefinition =>
  job(n, {
    source: { kind: "blueprint", blueprintId },
    status,
    ...(status !== "ready" && { bundleFingerprint: null }),
  });

function jobTests(test: ContractTest): void {
  test("jobs of a blueprint and their open runs are counted, those that are deleted are not", async (under) => {
    const { gateway, blueprints } = under;
    await gateway.write(async (writes) => {
      for (const n of [1, 2]) await writes.insertJob(ofDigest(n, "ready"));
      await writes.insertJob(ofDigest(3, "ready", "other"));
      await writes.insertRun(run(1, "job_0001"));
      await writes.insertRun(run(2, "job_0001"));
      await writes.insertRun(run(3, "job_0003"));
      await writes.deleteJob("job_0002", 1);
      assert.equal(await writes.blueprints.openRunsOf("digest"), 2);
    });
    assert.equal(await blueprints.jobsOf("digest"), 1);
    assert.equal(await blueprints.openRunsOf("digest"), 2);
    assert.equal(await blueprints.openRunsOf("nobody"), 0);
    assert.equal(await blueprints.jobsOf("nobody"), 0);
  });

  test("the jobs that waited become ready with their package, or are told that they cannot be", async ({
    gateway,
  }) => {
    await gateway.write(async (writes) => {
      await writes.insertJob(ofDigest(1, "preparing"));
      await writes.insertJob(ofDigest(2, "ready"));
      await writes.insertJob(ofDigest(3, "preparing", "other"));
      await writes.insertJob(ofDigest(4, "failed_preparation"));
    });
    const fail = () =>
      gateway.write((writes) => writes.blueprints.settleJobs("digest", { kind: "failed" }, 50));
    assert.deepEqual(await fail(), ["job_0001"]);
    assert.equal((await gateway.job("job_0001"))?.status, "failed_preparation");
    assert.equal((await gateway.job("job_0001"))?.revision, 2);
    const fingerprint = "c".repeat(64);
    const outcome = { kind: "ready", fingerprint, graphId: "new", extensions: ["x"] } as const;
    const settled = await gateway.write((writes) => writes.blueprints.settleJobs("digest", outcome, 60));
    assert.deepEqual([...settled].sort(), ["job_0001", "job_0004"]);
    const one = await gateway.job("job_0001");
    assert.deepEqual(
      [one?.status, one?.bundleFingerprint, one?.graphId, one?.extensions, one?.revision, one?.updatedAtMs],
      ["ready", fingerprint, "new", ["x"], 3, 60],
    );
    assert.deepEqual(await gateway.job("job_0002"), {
      ...ofDigest(2, "ready"),
      latestRun: null,
      activeRuns: 0,
    });
    assert.equal((await gateway.job("job_0003"))?.status, "preparing");
  });
}
