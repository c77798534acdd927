// Retention in the whole program: what `troupe gc` and POST /system/gc remove, what they leave, and what a kill in the
// middle leaves.

import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { databaseFile } from "../../src/store/home.ts";
import { zipOf } from "../support/bundle-files.ts";
import { startHere } from "../support/command-line.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  pathsOf,
  runtimeApiOf,
  sendBundle,
  startGateway,
  startRun,
} from "../support/gateway-api.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { OLD_JOB, seedOldRuns } from "../support/old-runs.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import * as runtime from "../support/runtime-api.ts";
import { rowsOf } from "../support/stored-rows.ts";
import { until } from "../support/until.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

const homes: string[] = [];
const newHome = async () => {
  const home = await temporaryHome();
  homes.push(home);
  return home;
};
after(() => Promise.all(homes.map((home) => rm(home, { recursive: true, force: true }))));

const gc = (program: Program, body?: JsonObject) => call(program, "POST", "/system/gc", body);
const count = (home: string, table: string) =>
  Number(rowsOf(home, `SELECT count(*) AS n FROM ${table}`)[0]?.n);

test("old runs of both APIs go, young and open ones stay; a preview says just that", async () => {
  const home = await newHome();
  const agoMs = (i: number) => (i + 0.5) * DAY_MS;
  const old = await seedOldRuns({
    home,
    count: 40,
    agoMs,
    events: 3,
    of: "gateway",
  });
  await seedOldRuns({ home, count: 20, agoMs, events: 3, of: "runtime" });
  await using program = await startGatewayHere({ home, env: { SVC_RETENTION_DAYS: "30" } });
  const api = await runtimeApiOf(program);
  const jobId = await createJob(program, graph("waits", [sensor("s")]));
  const open = await startRun(program, jobId);
  const own = await runtime.call(api, "POST", "/jobs", graph("waits-too", [sensor("s")]));
  await mkdir(join(home, "runs", old[39]!), { recursive: true });
  await mkdir(join(home, "evidence", old[39]!), { recursive: true });

  const preview = await gc(program, { dry_run: true });
  assert.deepEqual(preview.runs, { count: 10, bytes: 10 * 300 });
  assert.deepEqual(await gc(program, { dry_run: true }), preview);
  assert.deepEqual(await runtime.call(api, "POST", "/system/gc", { dry_run: true }), preview);
  const removed = await gc(program);
  assert.deepEqual({ ...removed, dry_run: true }, preview);
  for (const runId of old.slice(30)) {
    for (const rest of ["", "/events", "/artifacts"]) {
      assertProblem(await ask(program, "GET", `/runs/${runId}${rest}`), 404, "run_not_found");
    }
  }
  assert.equal((await call(program, "GET", `/runs/${old[29]}`)).status, "completed");
  assert.deepEqual([count(home, "runs"), count(home, "jobs")], [31, 52]);
  assert.equal(existsSync(join(home, "runs", old[39]!)), false);
  assert.equal(existsSync(join(home, "evidence", old[39]!)), false);

  // The other API removes the same.
  const more = await runtime.call(api, "POST", "/system/gc", { older_than_days: 10 });
  assert.deepEqual(more.runs, { count: 30, bytes: 30 * 300 });
  assert.equal((await gc(program, { older_than_days: 0.0001, max_bytes: 1 })).dry_run, false);
  assert.deepEqual([count(home, "runs"), count(home, "jobs")], [1, 2]);
  assert.equal((await call(program, "GET", `/jobs/${OLD_JOB}`)).latest_run, null);
  assert.equal((await call(program, "GET", `/runs/${open}`)).status, "running");
  assert.equal((await runtime.jobDetail(api, String(own.id))).job.status, "running");
  assert.equal((await call(program, "GET", `/jobs/${jobId}`)).active_runs, 1);
});

test("the size of what is kept is kept to, oldest ends first", async () => {
  const home = await newHome();
  const ids = await seedOldRuns({
    home,
    count: 30,
    agoMs: (i) => (30 - i) * 1_000,
    events: 5,
    of: "gateway",
  });
  await using program = await startGatewayHere({ home, env: { SVC_RETENTION_MAX_BYTES: "5000" } });
  assert.deepEqual((await gc(program, { dry_run: true })).runs, { count: 20, bytes: 20 * 500 });
  assert.deepEqual((await gc(program)).runs, { count: 20, bytes: 20 * 500 });
  const left = rowsOf(home, "SELECT run_id FROM runs ORDER BY run_id").map((row) => row.run_id);
  assert.deepEqual(left, ids.slice(20));
  assert.deepEqual((await gc(program, { max_bytes: 4_999 })).runs, { count: 1, bytes: 500 });
});

/** Has the database never come to the end of removing a run when so many are left. @returns takes that back */
function holdRemovalAt(home: string, runs: number): () => void {
  const change = (statement: string) => {
    using database = new DatabaseSync(databaseFile(home));
    database.exec(statement);
  };
  const forEver =
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT count(*) FROM numbers";
  change(
    `CREATE TRIGGER held AFTER DELETE ON runs WHEN (SELECT count(*) FROM runs) = ${runs} BEGIN ${forEver}; END`,
  );
  return () => change("DROP TRIGGER held");
}

test("a program that is killed in the middle of a removal has whole runs, and finishes it", async () => {
  const home = await newHome();
  await seedOldRuns({ home, count: 300, agoMs: (i) => 2 * DAY_MS + i, events: 40, of: "gateway" });
  // The removal never comes farther than this: it is inside a transaction until the program is killed.
  const repair = holdRemovalAt(home, 150);
  await using first = await startGateway({ home });
  const open = await startRun(first, await createJob(first, graph("waits", [sensor("s")])));
  const asked = gc(first, { older_than_days: 1 }).catch(() => null);
  await until("a part of the runs is gone", () => count(home, "runs") < 250);
  await first.kill();
  await asked;
  repair();

  const left = count(home, "runs");
  assert.ok(left >= 150, `${left} runs are left`);
  const broken = rowsOf(
    home,
    `SELECT j.job_id FROM jobs j LEFT JOIN events e ON e.job_id = j.job_id WHERE j.terminal = 1
      GROUP BY j.job_id HAVING sum(e.event_count) IS NOT j.event_seq
      OR (SELECT count(*) FROM agents a WHERE a.job_id = j.job_id) <> 2`,
  );
  assert.deepEqual(broken, []);
  assert.deepEqual(
    rowsOf(
      home,
      "SELECT run_id FROM runs WHERE launched = 1 AND runtime_job_id NOT IN (SELECT job_id FROM jobs)",
    ),
    [],
  );

  await using second = await startGatewayHere({ home });
  const { runs } = await gc(second, { older_than_days: 1 });
  assert.equal((runs as JsonObject).count, left - 1);
  for (const [table, rows] of [
    ["runs", 1],
    ["jobs", 1],
    ["job_sources", 1],
  ] as const) {
    assert.equal(count(home, table), rows, table);
  }
  const orphans = (table: string) => count(home, `${table} WHERE job_id NOT IN (SELECT job_id FROM jobs)`);
  for (const table of ["events", "agents", "artifacts", "dead_letters", "human_requests"]) {
    assert.equal(orphans(table), 0, table);
  }
  assert.equal(count(home, "garbage"), 0);
  assert.equal((await call(second, "GET", `/runs/${open}`)).status, "running");
});

test("the disk gets its space back", async () => {
  const home = await newHome();
  await seedOldRuns({
    home,
    count: 30,
    agoMs: () => 2 * DAY_MS,
    events: 500,
    eventChars: 4_000,
    of: "runtime",
  });
  await mkdir(join(home, "runs", "run_nobody", "shared"), { recursive: true });
  await writeFile(join(home, "runs", "run_nobody", "shared", "file"), Buffer.alloc(1_000_000));
  await utimes(join(home, "runs", "run_nobody"), 1, 1);
  await using program = await startGatewayHere({ home });
  const before = statSync(databaseFile(home)).size;
  assert.ok(before > 60_000_000, `${before} bytes`);
  const report = await gc(program, { older_than_days: 1 });
  assert.deepEqual(report.leftovers, { count: 1, bytes: 1_000_000 });
  assert.equal(report.bytes_freed, 1_000_000);
  // What is freed leaves the file with the next checkpoint, at the latest now.
  await program.stop();
  const afterwards = statSync(databaseFile(home)).size;
  assert.ok(afterwards < before / 2, `${afterwards} of ${before} bytes`);
  assert.deepEqual(await readdir(join(home, "runs")), []);
});

test("who follows or downloads a run while it is removed comes to an end, and the program goes on", async () => {
  const home = await newHome();
  const [runId = ""] = await seedOldRuns({
    home,
    count: 1,
    agoMs: () => 2 * DAY_MS,
    events: 10_000,
    eventChars: 2_000,
    of: "gateway",
  });
  await using program = await startGatewayHere({ home });
  const stream = await fetch(`${program.api}/runs/${runId}/events/stream`);
  const reader = stream.body!.getReader();
  await reader.read();
  const listed = await call(program, "GET", `/runs/${runId}/events?page_size=10`);
  const { runs } = await gc(program, { older_than_days: 1 });
  assert.equal((runs as JsonObject).count, 1);
  // Whatever has come so far, and then the end; a connection that is cut off is one, too.
  for (let done = false; !done; )
    done = await reader.read().then(
      (part) => part.done,
      () => true,
    );
  const next = String(listed.next_page_token);
  const further = await ask(
    program,
    "GET",
    `/runs/${runId}/events?page_size=10&page_token=${encodeURIComponent(next)}`,
  );
  assertProblem(further, 404, "run_not_found");
  assert.equal((await call(program, "GET", "/health")).status, "ok");
});

let shared: Program;
before(async () => {
  const home = await newHome();
  await seedOldRuns({ home, count: 12, agoMs: (i) => (i + 1) * DAY_MS, events: 2, of: "runtime" });
  shared = await startGatewayHere({ home });
});
after(() => shared.stop());

test("what is not asked for properly is refused, and nothing is removed", async () => {
  const api = await runtimeApiOf(shared);
  for (const [body, path] of [
    [{ older_than: 3 }, "/older_than"],
    [{ older_than_days: -1 }, "/older_than_days"],
    [{ older_than_days: "7" }, "/older_than_days"],
    [{ max_bytes: 1.5 }, "/max_bytes"],
    [{ dry_run: "yes" }, "/dry_run"],
  ] as const) {
    const refused = await ask(shared, "POST", "/system/gc", { body });
    assertProblem(refused, 422, "validation_failed");
    assert.deepEqual(pathsOf(refused), [path]);
    const { status, body: said } = await runtime.request(api, "POST", "/system/gc", body);
    assert.deepEqual(
      [status, String(said.error).startsWith(path.slice(1))],
      [400, true],
      JSON.stringify(said),
    );
  }
  assert.equal(count(shared.home, "jobs"), 12);
});

test("the content of a deleted bundle goes at once, and that of a bundle that is there stays", async () => {
  const upload = await sendBundle(shared, await zipOf({ "manifest.json": graph("let-go", [router("in")]) }));
  const { bundle_id: bundleId, fingerprint } = upload.body;
  const folder = join(shared.home, "bundles", String(fingerprint));
  await utimes(folder, 1, 1);
  const bundles = async () => ((await gc(shared)).bundles as JsonObject).count;
  assert.equal(await bundles(), 0);
  assert.ok(existsSync(folder));
  assert.equal((await ask(shared, "DELETE", `/bundles/${bundleId}`)).status, 204);
  await until("the content is gone", () => !existsSync(folder));
  assert.equal(await bundles(), 0);
});

test("troupe gc previews and removes, on either API", async () => {
  const { home } = shared;
  const api = await runtimeApiOf(shared);
  const troupe = async (...args: string[]) => {
    const { code, out, err } = await startHere(["gc", ...args], home).ended;
    assert.equal(code, 0, err);
    return out;
  };
  const preview = JSON.parse(await troupe("--dry-run", "--older-than", "8d", "--json", "--url", shared.api));
  assert.deepEqual(preview.runs, { count: 5, bytes: 1_000 });
  assert.equal(count(home, "jobs"), 12);
  assert.equal(
    await troupe("--older-than", "8d", "--url", shared.api),
    "Removed:\n  5 runs, 1000 B\n0 B of files were freed.\n",
  );
  assert.equal(await troupe("--older-than", "8d", "--url", shared.api), "There was nothing to remove.\n");
  const own = await troupe("--runtime", "--max-bytes", "400", "--dry-run", "--url", api.api);
  assert.equal(own, "Would be removed:\n  5 runs, 1000 B\n0 B of files would be freed.\n");
  assert.equal(count(home, "jobs"), 7);
  const wrong = await startHere(["gc", "--older-than", "7", "--url", shared.api], home).ended;
  assert.deepEqual([wrong.code, /--older-than 7d/.test(wrong.err)], [2, true]);
  const size = await startHere(["gc", "--max-bytes", "5GB", "--url", shared.api], home).ended;
  assert.deepEqual([size.code, /--max-bytes 20G/.test(size.err)], [2, true]);
});

test("what runs at this moment is never in the way: runs complete while others are removed", async () => {
  const home = await newHome();
  await seedOldRuns({ home, count: 400, agoMs: (i) => 2 * DAY_MS + i, events: 20, of: "gateway" });
  await using program = await startGatewayHere({ home });
  const jobId = await createJob(program, graph("quick", [router("in")]));
  const asked = gc(program, { older_than_days: 1 });
  const started: string[] = [];
  for (let i = 0; i < 30; i++) started.push(await startRun(program, jobId));
  const { runs } = await asked;
  assert.equal((runs as JsonObject).count, 400);
  const completed = await until("all of them have ended", async () => {
    const { items } = await call(program, "GET", `/jobs/${jobId}/runs?status=completed&page_size=200`);
    return (items as readonly JsonObject[]).length === started.length
      ? (items as readonly JsonObject[])
      : null;
  });
  assert.deepEqual(completed.map(({ run_id }) => run_id).toSorted(), started.toSorted());
  assert.equal(count(home, "runs"), 30);
});
