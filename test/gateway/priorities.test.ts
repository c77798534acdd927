// Priorities of runs and weights of jobs, as people give and see them, and that they decide who is next. There is one slot: what
// waits for it writes its name when it has it.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  happens,
  pathsOf,
  runtimeApiOf,
  startRun,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let gates: Gates;
let folder: string;
let program: Program;
before(async () => {
  gates = await makeGates();
  folder = await mkdtemp(join(tmpdir(), "troupe-priorities-"));
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "1" } });
});
after(async () => {
  await program.stop();
  await gates.remove();
  await rm(folder, { recursive: true, force: true });
});

/** Takes the only slot. @returns gives it back, waits for so many commands, and tells in which order they had it */
async function holdSlot(name: string) {
  const order = join(folder, name);
  await writeFile(order, "");
  const gate = gates.pipe(name);
  const holder = await startRun(
    program,
    await createJob(program, graph("holder", [executor("h", ["cat", gate])])),
  );
  await happens(program, holder, "sandbox_job_started");
  return {
    /** The graph of what writes a word. */
    writes: (word: string) => graph(word, [executor("w", ["sh", "-c", `echo ${word} >> ${order}`])]),
    async orderOf(count: number) {
      await gates.open(gate);
      return until(`${count} commands have run`, async () => {
        const words = (await readFile(order, "utf8")).trim().split("\n");
        return words.length >= count && words.join(" ");
      });
    },
  };
}

const isQueued = (runId: string) =>
  until(
    `run ${runId} is queued`,
    async () => (await call(program, "GET", `/runs/${runId}`)).status === "queued",
  );

test("runs of a higher priority go first, however they were started, and show it", async () => {
  const slot = await holdSlot("priorities");
  const word = async (name: string) => createJob(program, slot.writes(name));
  const start = async (jobId: string, body: JsonObject) => {
    const runId = await startRun(program, jobId, body);
    await isQueued(runId);
    return call(program, "GET", `/runs/${runId}`);
  };
  assert.equal((await start(await word("low"), { priority: "low" })).priority, "low");
  assert.equal((await start(await word("normal"), {})).priority, "normal");
  const batch = { items: [{ priority: "high" }, { priority: "urgent" }] };
  const items = (await call(program, "POST", `/jobs/${await word("batch")}/runs:batch`, batch))
    .items as readonly JsonObject[];
  assert.deepEqual(
    items.map(({ status }) => status),
    [202, 422],
  );
  await isQueued(String(items[0]!.id));
  const schedule = await call(program, "POST", "/schedules", {
    job_id: await word("schedule"),
    delayed: { delay_seconds: 0 },
    priority: "high",
  });
  assert.equal(schedule.priority, "high");
  await until("the schedule's run is queued", async () => {
    const [run] = (await call(program, "GET", `/jobs/${schedule.job_id}/runs`))
      .items as readonly JsonObject[];
    return run?.status === "queued" && run.priority === "high";
  });
  const runtime = await runtimeApiOf(program);
  const { body } = await ask(runtime, "POST", "/jobs", {
    body: { ...slot.writes("runtime"), priority: "high" },
  });
  await until("the job is queued", async () => {
    const job = (await call(runtime, "GET", `/jobs/${body.id}`)).job as JsonObject;
    return job.status === "queued" && job.priority === "high" && job.weight === 1;
  });
  assert.equal(await slot.orderOf(5), "batch schedule runtime normal low");
});

test("jobs take turns by their weights, which can be changed", async () => {
  const slot = await holdSlot("weights");
  const a = await createJob(program, slot.writes("a"), { weight: 2 });
  const b = await createJob(program, slot.writes("b"));
  const weights = await Promise.all(
    [a, b].map(async (job) => (await call(program, "GET", `/jobs/${job}`)).weight),
  );
  assert.deepEqual(weights, [2, 1]);
  const changed = await ask(program, "PATCH", `/jobs/${b}`, {
    body: { weight: 3 },
    headers: { "if-match": "*" },
  });
  assert.deepEqual([changed.status, changed.body.weight, changed.body.revision], [200, 3, 2]);
  assert.equal((await call(program, "GET", `/jobs/${b}`)).weight, 3);
  const runs: string[] = [];
  for (const job of [a, a, a, b, b, b, b]) {
    runs.push(await startRun(program, job));
    await isQueued(runs.at(-1)!);
  }
  assert.equal(await slot.orderOf(7), "a a b b b a b");
  for (const run of runs) assert.equal((await ended(program, run)).run.status, "completed");
});

test("a run that waits is given another priority, which is of its commands at once and is kept", async () => {
  const slot = await holdSlot("changes");
  const start = async (name: string, body: JsonObject) => {
    const runId = await startRun(program, await createJob(program, slot.writes(name)), body);
    await isQueued(runId);
    return runId;
  };
  await start("first", {});
  const late = await start("late", { priority: "low" });
  const paused = await start("paused", {});
  const change = (runId: string, body: JsonObject) => ask(program, "PATCH", `/runs/${runId}`, { body });
  assert.equal((await change(paused, { desired_state: "paused", priority: "low" })).body.priority, "low");
  const { status, body } = await change(late, { priority: "high" });
  assert.deepEqual([status, body.priority, body.status], [200, "high", "queued"]);
  assert.equal((await call(program, "GET", `/runs/${late}`)).priority, "high");
  assert.equal((await change(paused, { desired_state: "running" })).body.priority, "low");
  assert.equal(await slot.orderOf(3), "late first paused");
  await ended(program, paused);
  assertProblem(await change(paused, { priority: "high" }), 409, "invalid_transition");
  assertProblem(await change("run_none", { priority: "high" }), 404, "run_not_found");
});

test("what is no priority and no weight is refused, by the field", async () => {
  const jobId = await createJob(program, graph("refused", [executor("a", ["true"])]));
  const run = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: { priority: 1 } });
  assertProblem(run, 422, "validation_failed");
  assert.deepEqual(pathsOf(run), ["/priority"]);
  for (const weight of [0, 101, 1.5, "2"]) {
    const job = await ask(program, "PATCH", `/jobs/${jobId}`, {
      body: { weight },
      headers: { "if-match": "*" },
    });
    assertProblem(job, 422, "validation_failed");
    assert.deepEqual(pathsOf(job), ["/weight"]);
  }
  const runtime = await runtimeApiOf(program);
  const manifest = graph("refused", [executor("a", ["true"])]);
  const { status, body } = await ask(runtime, "POST", "/jobs", {
    body: { ...manifest, priority: 7, weight: 0 },
  });
  assert.deepEqual(
    [status, body],
    [400, { error: "priority must be low, normal or high; weight must be a whole number from 1 to 100" }],
  );
});
