import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Job } from "./job/state.ts";
import { JobMap } from "./job-map.ts";

const job = (jobId: string, more = {}) => ({ jobId, ...more }) as unknown as Job;
const idsOf = (jobs: Iterable<Job>) => Array.from(jobs, ({ jobId }) => jobId);

test("jobs come in the order in which they were added, also those that are added and deleted meanwhile", () => {
  const jobs = new JobMap();
  for (const jobId of ["a", "b", "c"]) jobs.add(job(jobId));
  const seen: string[] = [];
  for (const { jobId } of jobs) {
    seen.push(jobId);
    jobs.delete(jobId);
    if (jobId === "a") {
      jobs.delete("b");
      jobs.add(job("d"));
    }
    if (seen.length < 4) jobs.add(job(jobId));
  }
  assert.deepEqual(seen, ["a", "c", "d", "a", "c", "d"]);
  assert.equal(jobs.size, 0);
});

test("a job that is added again takes the place of the one with its id, and one that is unknown is not there", () => {
  const jobs = new JobMap();
  const [first, second] = [job("a"), job("a")];
  jobs.add(first);
  jobs.add(job("b"));
  jobs.add(second);
  jobs.delete("c");
  assert.deepEqual(idsOf(jobs), ["a", "b"]);
  assert.equal(jobs.get("a"), second);
  assert.equal(jobs.get("c"), undefined);
  assert.deepEqual([jobs.has("b"), jobs.has("c"), jobs.size], [true, false, 2]);
});

test("collections of young objects free deleted jobs, however long the map has been there", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;
  const heapBytes = () => process.memoryUsage().heapUsed;
  const jobs = new JobMap();
  jobs.add(job("old"));
  // From here on its table is old.
  collect();
  collect();
  const before = heapBytes();
  for (let round = 0; round < 50; round++) {
    const ids = Array.from({ length: 32 }, (_, n) => `${round}-${n}`);
    for (const jobId of ids) jobs.add(job(jobId, { ballast: new Array(1_000).fill(round) }));
    for (const jobId of ids) jobs.delete(jobId);
    collect({ type: "minor" });
  }
  // All of them have 13 MB.
  assert.ok(heapBytes() - before < 2_000_000, `${heapBytes() - before} bytes are kept`);
});
