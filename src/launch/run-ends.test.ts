// Runs that end before the runtime has them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startCore } from "../../test/support/core.ts";
import { graph, router } from "../../test/support/graphs.ts";
import { historyOfUnlaunched } from "./run-ends.ts";

const quick = graph("quick", [router("in")]);

test("a run that is cancelled while it waits is asked for and ended in one write: no restart finds half of it", async () => {
  await using core = await startCore();
  const { runId, jobId } = await core.accept((await core.job(quick)).jobId);
  const seen: (readonly [string, string] | undefined)[] = [];
  const look = core.database.connection.prepare("SELECT desired_state, status FROM runs WHERE run_id = ?");
  const write = core.records.write.bind(core.records);
  let writes = 0;
  core.records.write = (work) => {
    writes++;
    return write(work);
  };
  await core.runs.control(runId, "cancelled");
  const row = look.get(runId);
  seen.push([String(row?.desired_state), String(row?.status)]);
  assert.deepEqual(seen, [["cancelled", "cancelled"]]);
  assert.equal(writes, 1);
  assert.equal((await core.records.job(jobId))?.activeRuns, 0);
});

test("subscribers get the run's terminal event, which is its whole history", async () => {
  await using core = await startCore();
  const run = await core.accept((await core.job(quick)).jobId);
  const told: string[] = [];
  core.feed.subscribe(run.runtimeJobId, ({ lines }) => void told.push(...lines));
  const accepted = await core.find(run.runId);
  await core.ends.failed(accepted, core.ends.makeFailure(accepted, "manifest.invalid", "It is wrong."));
  const ended = await core.find(run.runId);
  const history = historyOfUnlaunched(ended);
  assert.deepEqual(history, { firstSeq: 1, lines: told });
  const event = JSON.parse(told[0] ?? "{}");
  assert.deepEqual(
    [event.type, event.payload.code, event.error.code],
    ["job_failed", "manifest.invalid", "manifest.invalid"],
  );
  assert.equal(event.timestamp, new Date(ended.finishedAtMs ?? 0).toISOString());
});

test("a run that the runtime has, or that is over, does not end here", async () => {
  await using core = await startCore();
  const { jobId } = await core.job(quick);
  const launched = await core.start(jobId);
  await core.ended(launched.runId);
  await core.ends.cancelled(launched.runId);
  assert.equal((await core.find(launched.runId)).status, "completed");
  assert.equal(historyOfUnlaunched(await core.find(launched.runId)), null);

  const waiting = await core.accept(jobId);
  assert.equal(historyOfUnlaunched(await core.find(waiting.runId)), null);
  await core.ends.cancelled(waiting.runId);
  const before = await core.find(waiting.runId);
  const { publications } = core.feed;
  await core.ends.failed(before, core.ends.makeFailure(before, "manifest.invalid", "late"));
  assert.equal(core.feed.publications, publications, "nobody is told of an end twice");
  assert.deepEqual(await core.find(waiting.runId), before);
});
