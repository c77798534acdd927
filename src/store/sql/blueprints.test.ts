// The contract of what is kept of blueprints (src/blueprints/records.ts).

import assert from "node:assert/strict";
import { type ContractTest, contractOnEach, type OpenDatabase } from "../../../test/support/databases.ts";
import { job, run } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import type { BlueprintAsset, PreparedBlueprint } from "../../blueprints/records.ts";
import type { JobDefinition } from "../../launch/records.ts";
import { sqlBlueprintRecords } from "./blueprints.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlRetentionRecords } from "./retention.ts";

type BlueprintsUnderTest = ReturnType<typeof blueprintsOn>;

const blueprintsOn = ({ database }: OpenDatabase) => ({
  gateway: sqlGatewayRecords(database, systemClock.soon),
  blueprints: sqlBlueprintRecords(database),
  /** Whether retention counts the snapshot as named. */
  isSnapshotNamed: (fingerprint: string) => sqlRetentionRecords(database).isSnapshotNamed(fingerprint, null),
});

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

contractOnEach("the records of blueprints", blueprintsOn, (test) => {
  blueprintTests(test);
  jobTests(test);
});

function blueprintTests(test: ContractTest<BlueprintsUnderTest>): void {
  test("prepared blueprints and assets come back as they were written, and can be deleted", async ({
    gateway,
    blueprints,
  }) => {
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

  test("a package is used by every record that references it, and retention keeps those of blueprints", async (under) => {
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

function jobTests(test: ContractTest<BlueprintsUnderTest>): void {
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

  test("waiting jobs become ready with their package, or fail their preparation", async ({ gateway }) => {
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
