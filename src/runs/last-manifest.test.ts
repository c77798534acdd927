import assert from "node:assert/strict";
import { test } from "node:test";
import { LastManifest } from "./last-manifest.ts";

function manifests(texts: Readonly<Record<string, string>>) {
  const read: string[] = [];
  const manifest = async (jobId: string) => {
    read.push(jobId);
    return texts[jobId] ?? null;
  };
  return { records: { manifest }, read };
}

test("a job's manifest is read once while it is the last one, and made into something once for all jobs with the same", async () => {
  const { records, read } = manifests({ a: "same", b: "same", c: "other" });
  const made: string[] = [];
  const views = new LastManifest(async (text) => {
    made.push(text);
    return `view of ${text}`;
  });
  const seen: (string | null)[] = [];
  for (const jobId of ["a", "a", "b", "b", "c", "a", "gone"]) seen.push(await views.of(records, jobId));
  assert.deepEqual(seen, [
    ...new Array<string>(4).fill("view of same"),
    "view of other",
    "view of same",
    null,
  ]);
  assert.deepEqual(read, ["a", "b", "c", "a", "gone"]);
  assert.deepEqual(made, ["same", "other", "same"]);
});

test("jobs of two stores with one id are two jobs", async () => {
  const views = new LastManifest(async (text) => text);
  assert.equal(await views.of(manifests({ a: "one" }).records, "a"), "one");
  assert.equal(await views.of(manifests({ a: "two" }).records, "a"), "two");
});
