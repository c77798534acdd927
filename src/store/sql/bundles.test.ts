import assert from "node:assert/strict";
import { type ContractTest, contractOnEach } from "../../../test/support/databases.ts";
import type { BundleRecord, BundleRecords } from "../../bundles/records.ts";
import { sqlBundleRecords } from "./bundles.ts";

const record = (bundleId: string, changes: Partial<BundleRecord> = {}): BundleRecord => ({
  bundleId,
  fingerprint: "f".repeat(64),
  graphId: "g",
  name: "n",
  source: { kind: "folder", path: "/srv/b" },
  sizeBytes: 3_000_000_000,
  createdAtMs: 1,
  updatedAtMs: 1,
  ...changes,
});

contractOnEach("the records of bundles", ({ database }) => sqlBundleRecords(database), contract);

function contract(test: ContractTest<BundleRecords>): void {
  test("a record comes back as it was saved", async (records) => {
    await records.save(record("a"));
    await records.save(record("b", { source: { kind: "zip" } }));
    assert.deepEqual(await records.get("a"), record("a"));
    assert.deepEqual(await records.get("b"), record("b", { source: { kind: "zip" } }));
    assert.equal(await records.get("c"), null);
  });

  test("saving again replaces the record, and its time of creation stays", async (records) => {
    await records.save(record("a"));
    await records.save(record("b"));
    const changes = {
      fingerprint: "0".repeat(64),
      name: "m",
      source: { kind: "zip" } as const,
      updatedAtMs: 9,
    };
    await records.save(record("a", { ...changes, createdAtMs: 9 }));
    assert.deepEqual(await records.get("a"), record("a", { ...changes, createdAtMs: 1 }));
    assert.deepEqual(await records.get("b"), record("b"));
  });

  test("a walk through the pages meets every record once, in the order of the ids", async (records) => {
    const ids = ["b", "a", "D", "c", "10", "9"];
    for (const id of ids) await records.save(record(id));
    const met: string[] = [];
    for (let after: string | null = null; ; ) {
      const page: readonly BundleRecord[] = await records.list({ limit: 2, after });
      met.push(...page.map((one) => one.bundleId));
      after = page.at(-1)?.bundleId ?? null;
      if (after === null) break;
      assert.ok(page.length <= 2);
    }
    assert.deepEqual(met, [...ids].sort());
  });
}
