// The runs of a list as changes leave them.

import assert from "node:assert/strict";
import { test } from "node:test";

const { withChanges } = await import(new URL("./list.js", import.meta.url).href);

const run = (id: string, status = "running", more: object = {}) => ({
  run_id: id,
  status,
  trigger: { kind: "api" },
  job_id: "job_1",
  inputs: "kept",
  ...more,
});
function changed(id: string, status: string, more: object = {}) {
  const { run_id: _, inputs: __, ...changes } = run(id, status, more);
  return { topic: "runs", id, changes };
}
const all = { query: {}, isWhole: false };
const shown = [run("run_3"), run("run_2")];

test("a run that is shown changes in its place, and keeps what changes do not tell", () => {
  const { items, isIncomplete } = withChanges(shown, [changed("run_2", "completed")], all);
  assert.deepEqual(items, [run("run_3"), run("run_2", "completed")]);
  assert.equal(items[0], shown[0]);
  assert.equal(isIncomplete, false);
});

test("an older run than those that are shown changes nothing; a newer one is added, and to a whole list every one", () => {
  const older = withChanges(shown, [changed("run_1", "failed")], all);
  assert.equal(older.items, shown);
  assert.equal(older.isIncomplete, false);
  const news = [changed("run_5", "pending"), changed("run_4", "pending"), changed("run_5", "running")];
  const { items } = withChanges(shown, [...news, { topic: "runs", id: "run_4", changes: null }], all);
  assert.deepEqual(items, [{ run_id: "run_5", ...changed("run_5", "running").changes }, ...shown]);
  const whole = withChanges(shown, [changed("run_1", "failed")], { query: {}, isWhole: true });
  assert.equal((whole.items.at(-1) as { readonly run_id: string }).run_id, "run_1");
  const asked = { query: { q: "x" }, isWhole: false };
  assert.deepEqual(withChanges(shown, [changed("run_4", "pending")], asked), {
    items: shown,
    isIncomplete: true,
  });
});

test("a run that passes the filters no more, and one that is gone, leave the list, which is read again", () => {
  const filtered = {
    query: { status: "running,paused", job_id: "job_1", q: "x", since: "" },
    isWhole: false,
  };
  const left = withChanges(shown, [changed("run_3", "completed")], filtered);
  assert.deepEqual(left, { items: [run("run_2")], isIncomplete: true });
  const gone = withChanges(shown, [{ topic: "runs", id: "run_2", changes: null }], all);
  assert.deepEqual(gone, { items: [run("run_3")], isIncomplete: true });
  const others = [changed("run_9", "running", { job_id: "job_2" }), changed("run_8", "failed")];
  assert.equal(withChanges(shown, others, filtered).isIncomplete, false);
  assert.equal(withChanges(shown, [{ topic: "human", id: "run_3", changes: null }], all).items, shown);
});
