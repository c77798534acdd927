// POST /jobs/cleanup: what it removes, and what it must not touch. One test after the other: a cleanup is about
// all jobs of the program. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { openStream } from "../support/event-stream.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { artifactsOf, call, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere();
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const cleanup = async (query = "") => {
  const body = await call(program, "POST", `/jobs/cleanup${query}`);
  assert.deepEqual(Object.keys(body), ["deleted_count", "deleted_jobs"]);
  const jobs = body.deleted_jobs as readonly string[];
  assert.equal(body.deleted_count, jobs.length);
  return jobs;
};
const listed = async () =>
  ((await call(program, "GET", "/jobs")).data as readonly JsonObject[]).map((job) => job.job_id);
const waiting = (graphId: string) => graph(graphId, [sensor("s")]);

test("with nothing to remove the result is empty", async () => {
  assert.deepEqual(await cleanup(), []);
});

test('"finished, failed or cancelled: record removed"; open and paused jobs stay', async () => {
  const completed = (await run(program, graph("completed", [router("r")]))).jobId;
  const failed = (await run(program, graph("failed", [executor("e", ["false"])]))).jobId;
  const cancelled = await submit(program, waiting("cancelled"));
  await call(program, "POST", path(cancelled, "/cancel"));
  const open = await submit(program, waiting("open"));
  const paused = await submit(program, waiting("paused"));
  await call(program, "POST", path(paused, "/pause"));

  assert.deepEqual([...(await cleanup())].sort(), [cancelled, completed, failed].sort());
  assert.deepEqual(await listed(), [paused, open]);
  for (const jobId of [completed, failed, cancelled]) {
    for (const rest of ["", "/events", "/events/stream"]) {
      assert.deepEqual(await request(program, "GET", path(jobId, rest)), {
        status: 404,
        body: { error: `Job ${jobId} was not found` },
      });
    }
  }
  assert.equal(((await call(program, "GET", path(open))).job as JsonObject).status, "running");
  assert.deepEqual(await cleanup(), []);
});

test("files and artifacts of deleted runs are gone, those of other runs stay", async () => {
  const writer = (graphId: string) =>
    graph(graphId, [executor("w", `echo ${graphId} > "$SVC_OUTPUT_DIR/note.txt"`)]);
  const runOf = (detail: JsonObject) => String((detail.job as JsonObject).run_id);
  const gone = runOf((await run(program, writer("goes"))).detail);
  const [artifact] = await artifactsOf(program, gone);
  assert.ok(artifact);
  assert.ok(existsSync(join(program.home, "runs", gone)));

  const gate = gates.pipe("stays");
  const stays = await submit(program, graph("stays", [executor("w", `echo up; cat ${gate}`)]));
  // Not when it is said to start, which is before its folder is made.
  await happens(program, stays, "log");
  await cleanup();

  assert.equal(existsSync(join(program.home, "runs", gone)), false);
  assert.equal((await fetch(new URL(artifact.url, program.url))).status, 404);
  assert.equal((await request(program, "GET", `/runs/${gone}/artifacts`)).status, 404);
  const staysRun = runOf(await call(program, "GET", path(stays)));
  assert.ok((await readdir(join(program.home, "runs"))).includes(staysRun));
  await gates.open(gate);
  await happens(program, stays, "job_completed");
});

test('"all=true: any job, also running", cancelled first: their commands are dead', async () => {
  const alive = gates.pipe("alive");
  const dead = gates.released(alive);
  const command = `exec 9>${alive}; echo up; sleep 600`;
  const running = await submit(program, graph("running", [executor("w", command)]));
  await happens(program, running, "log");
  const before = await listed();
  assert.deepEqual([...(await cleanup("?all=true"))].sort(), [...before].sort());
  assert.ok(before.includes(running));
  await dead;
  assert.deepEqual(await readdir(join(program.home, "runs")), []);
  assert.deepEqual(await listed(), []);
  assert.deepEqual((await call(program, "GET", "/system/summary")).jobs, []);
});

test("a reader of the events of a job that all=true removes is told how it ended", async () => {
  const jobId = await submit(program, waiting("followed"));
  const stream = await openStream(program, jobId);
  // A reader that has the whole history is told what happens next; one that still reads it finds that it is gone.
  const history = (await call(program, "GET", path(jobId, "/events"))).data as readonly unknown[];
  const seen = await stream.take(1 + history.length);
  assert.equal(seen.at(-1)?.fields.get("id"), String(history.length));
  await cleanup("?all=true");
  assert.deepEqual(
    (await stream.rest()).map(({ fields }) => fields.get("event")),
    ["job_cancelled"],
  );
});

test("all=false is the default, and any other value is refused before anything is removed", async () => {
  const { jobId } = await run(program, graph("kept", [router("r")]));
  for (const value of ["yes", "1", "", "TRUE"]) {
    const { status, body } = await request(program, "POST", `/jobs/cleanup?all=${value}`);
    assert.equal(status, 400, value);
    assert.match(String(body.error), /all must be true or false/);
  }
  assert.deepEqual(await listed(), [jobId]);
  assert.deepEqual(await cleanup("?all=false"), [jobId]);
});

test("more jobs than fit into one transaction, or one page of what they leave, are removed by one call", async () => {
  const ids = await Promise.all(
    Array.from({ length: 210 }, () => submit(program, graph("many", [router("r")]))),
  );
  await until("all of them have ended", async () => {
    const open = await call(program, "GET", "/jobs?include_terminal=false&limit=1");
    return (open.data as readonly JsonObject[]).length === 0;
  });
  assert.deepEqual([...(await cleanup())].sort(), ids.sort());
  assert.deepEqual(await listed(), []);
});
