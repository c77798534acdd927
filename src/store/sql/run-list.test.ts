// The contract of the list of runs (src/launch/records.ts).

import assert from "node:assert/strict";
import { test as nodeTest } from "node:test";
import { gatewayContract, withJobs, withRuns } from "../../../test/support/gateway-records.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import { timeId } from "../../engine/ids.ts";
import type { NewRun, RunPage } from "../../launch/records.ts";
import { openSqlite } from "../sqlite/database.ts";
import { sqlGatewayRecords } from "./gateway.ts";

const all: RunPage = { jobId: null, status: null, limit: 9, after: null };

gatewayContract("the list of runs", (test) => {
  test("runs are found by several statuses, trigger, blueprint, and the run that they repeat", async (under) => {
    const { records, journal } = under;
    await withJobs(
      under,
      job(1),
      job(2, { source: { kind: "blueprint", blueprintId: "digest" }, bundleFingerprint: "f".repeat(64) }),
    );
    const runs = [1, 2, 3, 4, 5].map((n) =>
      run(n, n < 4 ? "job_0001" : "job_0002", {
        blueprintId: n < 4 ? null : "digest",
        rerunOf: n > 1 && n < 4 ? "run_0001" : null,
        trigger: n === 4 ? { kind: "schedule", id: "sch_1" } : { kind: "api", id: null },
      }),
    );
    await withRuns(under, ...runs);
    for (const one of runs.slice(0, 3)) await journal.commit([launch(one)]);
    await journal.commit([advance(runs[0]!, 1, { status: "failed" })]);
    await journal.commit([advance(runs[1]!, 1, { status: "completed" })]);
    const found = async (given: Partial<RunPage>) =>
      (await records.runs({ ...all, ...given })).rows.map(({ runId }) => Number(runId.slice(-4)));
    assert.deepEqual(await found({}), [5, 4, 3, 2, 1]);
    assert.deepEqual(await found({ status: ["failed", "pending"] }), [5, 4, 1]);
    assert.deepEqual(await found({ status: ["failed", "pending", "failed"], limit: 2 }), [5, 4]);
    assert.deepEqual(await found({ status: ["failed", "pending"], after: "run_0005", limit: 2 }), [4, 1]);
    assert.deepEqual(await found({ status: ["failed", "completed"], jobId: "job_0001" }), [2, 1]);
    assert.deepEqual(await found({ blueprintId: "digest" }), [5, 4]);
    assert.deepEqual(await found({ blueprintId: "digest", status: ["running"] }), []);
    assert.deepEqual(await found({ rerunOf: "run_0001" }), [3, 2]);
    assert.deepEqual(await found({ trigger: "schedule" }), [4]);
    assert.deepEqual(await found({ trigger: "api" }), [5, 3, 2, 1]);
    assert.deepEqual(await found({ text: "DIGEST" }), [5, 4]);
    assert.deepEqual(await found({ text: "job 1" }), [3, 2, 1]);
    assert.deepEqual(await found({ text: "job 1", limit: 1, after: "run_0003" }), [2]);
    assert.deepEqual(await found({ text: "run_0002" }), [2]);
    assert.deepEqual(await found({ text: "%" }), []);
    const again = await records.run("run_0004");
    assert.deepEqual([again?.blueprintId, again?.rerunOf, again?.jobName], ["digest", null, "job 2"]);
  });

  test("runs are found by the time in their ids", async (under) => {
    const { records } = under;
    await withJobs(under, job(1));
    const at = (ms: number) => `run_${timeId(ms, new Uint8Array(16))}`;
    const runs = [1_000, 2_000, 3_000].map((ms, n) => run(n + 1, "job_0001", { runId: at(ms) }));
    await withRuns(under, ...runs);
    const found = async (given: Partial<RunPage>) =>
      (await records.runs({ ...all, ...given })).rows.map(({ runId }) => runId);
    assert.deepEqual(await found({ sinceMs: 2_000 }), [at(3_000), at(2_000)]);
    assert.deepEqual(await found({ untilMs: 2_000 }), [at(1_000)]);
    assert.deepEqual(await found({ sinceMs: 1_001, untilMs: 3_000 }), [at(2_000)]);
    assert.deepEqual(await found({ untilMs: 3_000, after: at(2_000) }), [at(1_000)]);
  });

  test("a text that is in no recent run makes an empty page, behind which the search goes on; a whole id is found", async (under) => {
    const { records } = under;
    const id = "0".repeat(26);
    const [older, ofOlder] = [`run_${id}`, `job_${id}`];
    await withJobs(under, job(1), { ...job(2, { name: "the needle" }), jobId: ofOlder });
    const newer = Array.from({ length: 2_000 }, (_, n): NewRun => run(n + 2, "job_0001"));
    await withRuns(under, { ...run(1, ofOlder), runId: older }, ...newer);
    const page = { ...all, text: "needle" };
    const first = await records.runs(page);
    assert.deepEqual(first, { rows: [], isCut: true, searchedTo: "run_0002" });
    const found = async (text: string, given: Partial<RunPage> = {}) => {
      const { rows, isCut } = await records.runs({ ...all, ...given, text });
      return [...rows.map(({ runId }) => runId), isCut];
    };
    assert.deepEqual(await found("needle", { after: "run_0002" }), [older, false]);
    assert.deepEqual(await found(older.toUpperCase()), [older, false]);
    assert.deepEqual(await found(ofOlder), [older, false]);
    assert.deepEqual(await found(older.replace(/0$/, "1")), [false]);
    assert.deepEqual(await found(older, { after: older }), [false]);
    assert.deepEqual(await found(older, { jobId: "job_0001" }), [false]);
    assert.deepEqual(await found(older, { sinceMs: 1 }), [false]);
    // Of the other job there are only runs without this text.
    assert.deepEqual(await found(ofOlder, { jobId: "job_0001" }), [true]);
  });
});

nodeTest("every filter of the list is an index's, which gives the order too", async () => {
  const database = openSqlite(":memory:");
  const { connection } = database;
  const records = sqlGatewayRecords(database, systemClock.soon);
  const prepare = connection.prepare.bind(connection);
  let plan = "";
  connection.prepare = (sql, ...rest) => {
    const steps = prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    plan += steps.map(({ detail }) => `${detail}\n`).join("");
    return prepare(sql, ...rest);
  };
  for (const [given, index] of [
    [{}, "sqlite_autoindex_runs_1 (run_id>? AND run_id<?)"],
    [{ status: ["failed"] }, "runs_status (status=? AND run_id>? AND run_id<?)"],
    [{ blueprintId: "b" }, "runs_blueprint (blueprint_id=? AND run_id>? AND run_id<?)"],
    [{ rerunOf: "r" }, "runs_rerun (rerun_of=? AND run_id>? AND run_id<?)"],
    [{ trigger: "event" }, "runs_trigger (trigger_kind=? AND run_id>? AND run_id<?)"],
  ] as const) {
    plan = "";
    await records.runs({ ...all, ...given });
    assert.ok(plan.includes(`SEARCH r USING INDEX ${index}`), plan);
    assert.doesNotMatch(plan, /^SCAN (?!json_each|open$)|TEMP B-TREE FOR ORDER/m);
  }
  connection.prepare = prepare;
  await database.close();
});
