import assert from "node:assert/strict";
import { test } from "node:test";
import { checkedId, idKind } from "./ids.ts";

test("an id of another thing is refused with the name of what it is", () => {
  assert.equal(checkedId("run_1", "run"), "run_1");
  const wrong: readonly (readonly [string, "run" | "job" | "bundle", RegExp])[] = [
    ["job_1", "run", /job_1 is the id of a job, and this takes that of a run\. `troupe runs` lists them/],
    ["run_1", "job", /is the id of a run/],
    ["schedule_1", "job", /is the id of a schedule/],
    ["job_1", "bundle", /is the id of a job/],
  ];
  for (const [id, kind, message] of wrong) {
    assert.throws(() => checkedId(id, kind), { name: "UsageError", message });
  }
});

test("what would lead to another route is no id", () => {
  for (const id of ["", ".", "..", "a/b", "run_1?x", "run 1", "run_\x1b[31m", "r".repeat(129)]) {
    assert.throws(() => checkedId(id, "run"), { name: "UsageError", message: /is not the id of a run/ });
  }
});

test("ids of the runtime are not taken for the gateway's, whatever their graph is called", () => {
  assert.equal(idKind("run_01m7yt36yn29bc70ytx4j8wdvf"), "run");
  assert.equal(idKind("job_01m7yt36y8drk6w3h2fwsjc8v5"), "job");
  for (const id of ["digest-01m7yt36", "run_x-01m7yt36", "job_-1", "bundle_0a", "run_"]) {
    assert.equal(idKind(id), "runtime", id);
  }
});
