// What the gateway has promised is kept over kill -9: accepted runs go on, desired states hold, deletions are finished,
// tokens stay good. And what happens beside it, at the runtime API, leaves its runs alone.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  frames,
  happens,
  runtimeApiOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { sized } from "../support/long.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { rowsOf } from "../support/stored-rows.ts";
import { until } from "../support/until.ts";
import { runsEnded, startAndEnd } from "../support/waiting.ts";

let home = "";
let gates: Gates;
let program: Program;
before(async () => {
  [home, gates] = await Promise.all([temporaryHome(), makeGates()]);
  program = await start();
});
after(async () => {
  await program.stop();
  await rm(home, { recursive: true, force: true });
  await gates.remove();
});

const start = () => startGateway({ home, env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });

/** kill -9, and the next start in the same home. */
async function restart(): Promise<void> {
  await program.kill();
  program = await start();
}

const statusOf = async (runId: string) => (await call(program, "GET", `/runs/${runId}`)).status;
const want = (runId: string, desired_state: string) =>
  call(program, "PATCH", `/runs/${runId}`, { desired_state });

describe("kill -9 and a new start", () => {
  test("open runs go on, desired states are kept, and streams resume where their readers were", async () => {
    const gate = gates.pipe("work");
    const working = await startRun(
      program,
      await createJob(program, graph("working", [executor("in", ["cat", gate])])),
    );
    const held = await createJob(program, graph("held", [sensor("wait")]));
    const [paused, waiting, cancelled] = [
      await startRun(program, held),
      await startRun(program, held),
      await startRun(program, held),
    ];
    await happens(program, working, "sandbox_job_started");
    for (const runId of [paused, waiting, cancelled]) await happens(program, runId, "agent_started");
    await want(paused, "paused");
    await want(cancelled, "cancelled");
    const seen = await call(program, "GET", `/runs/${working}/events`);
    const before = seen.items as readonly JsonObject[];
    await restart();
    assert.equal(await statusOf(paused), "paused");
    assert.equal((await ended(program, cancelled)).run.status, "cancelled");
    assert.equal(await statusOf(waiting), "running");
    const again = (await walk(program, `/runs/${working}/events`)).slice(0, before.length);
    assert.deepEqual(again, before, "the history is the same");
    assert.equal((await want(paused, "running")).status, "running");
    await restart();
    assert.equal(await statusOf(paused), "running");
    await gates.open(gate);
    const path = `/runs/${working}/events/stream`;
    const rest = await Array.fromAsync(frames(program, path, { "last-event-id": String(before.length) }));
    assert.equal(rest[0]?.id, before.length + 1);
    assert.equal(rest.at(-1)?.event, "job_completed");
    const types = rest.map(({ event }) => event);
    assert.equal(types.filter((type) => type === "job_recovered").length, 2);
    for (const runId of [paused, waiting]) await want(runId, "cancelled");
    for (const runId of [paused, waiting])
      assert.equal((await ended(program, runId)).run.status, "cancelled");
  });

  test("a run that its manifest or the runtime API holds stays held, until it is asked to go on", async () => {
    const policies = { policies: { recovery_mode: "manual_recover" } };
    const byManifest = await startRun(
      program,
      await createJob(program, graph("by-hand", [sensor("wait")], [], policies)),
    );
    const byRuntime = await startRun(
      program,
      await createJob(program, graph("held-below", [sensor("wait")])),
    );
    for (const runId of [byManifest, byRuntime]) await happens(program, runId, "agent_started");
    const [row] = rowsOf(home, "SELECT runtime_job_id FROM runs WHERE run_id = ?", byRuntime);
    await call(await runtimeApiOf(program), "POST", `/jobs/${String(row?.runtime_job_id)}/pause`);
    await restart();
    for (const runId of [byManifest, byRuntime]) {
      const run = await call(program, "GET", `/runs/${runId}`);
      assert.deepEqual([run.status, run.desired_state], ["paused", "paused"]);
      assert.equal((await want(runId, "running")).status, "running");
      await want(runId, "cancelled");
    }
  });

  test("every run that was accepted runs, also when the kill came before its launch", async () => {
    const jobId = await createJob(program, graph("accepted", [router("in")]));
    for (let round = 0; round < sized(1, 2); round++) {
      const accepted: string[] = [];
      const first = Promise.withResolvers<void>();
      const starts = Array.from({ length: 60 }, async () => {
        const runId = await startRun(program, jobId).catch(() => null);
        if (runId === null) return;
        accepted.push(runId);
        first.resolve();
      });
      await Promise.race([first.promise, Promise.all(starts)]);
      await program.kill();
      await Promise.all(starts);
      program = await start();
      assert.ok(accepted.length > 0);
      const runs = new Map((await runsEnded(program, jobId)).map((run) => [run.run_id, run.status]));
      for (const runId of accepted) assert.equal(runs.get(runId), "completed");
      assert.deepEqual([...new Set(runs.values())], ["completed"]);
    }
  });

  test("runs that were paused before their launch stay paused, and run when they are resumed", async () => {
    const nodes = Array.from({ length: 60 }, (_, i) => router(`r${i}`));
    const entrypoints = nodes.map(({ node_id }) => String(node_id));
    const jobId = await createJob(program, graph("many", nodes, [], { entrypoints }));
    const runIds = await Promise.all(Array.from({ length: 90 }, () => startRun(program, jobId)));
    await ask(program, "POST", `/jobs/${jobId}/pause`);
    const statuses = async () =>
      new Map((await walk(program, `/jobs/${jobId}/runs`)).map((run) => [run.run_id, run.status]));
    const before = await statuses();
    await restart();
    assert.deepEqual(await statuses(), before);
    const paused = runIds.filter((runId) => before.get(runId) === "paused");
    if (paused.length > 0) await call(program, "POST", `/jobs/${jobId}/resume`);
    const runs = await runsEnded(program, jobId);
    assert.equal(runs.length, runIds.length);
    for (const { status } of runs) assert.equal(status, "completed");
  });

  test("page tokens and ETags are good after it", async () => {
    const jobId = await createJob(program, graph("tokens", [router("in")]));
    const runIds = [await startRun(program, jobId), await startRun(program, jobId)];
    for (const runId of runIds) await ended(program, runId);
    const { next_page_token } = await call(program, "GET", `/jobs/${jobId}/runs?page_size=1`);
    const etag = (await ask(program, "GET", `/jobs/${jobId}`)).headers.get("etag") ?? "";
    await restart();
    const page = await call(program, "GET", `/jobs/${jobId}/runs?page_token=${next_page_token}`);
    assert.deepEqual(
      (page.items as readonly JsonObject[]).map(({ run_id }) => run_id),
      [runIds[0]],
    );
    const headers = { "if-match": etag };
    assert.equal((await ask(program, "DELETE", `/jobs/${jobId}`, { headers })).status, 204);
  });

  test("the deletion of a job with many runs is finished: nothing of it is left", async () => {
    const jobId = await createJob(program, graph("deleted", [router("in")]));
    const kept = await createJob(program, graph("kept", [router("in")]));
    const keptRun = (await completed(program, kept)).run;
    await startAndEnd(program, jobId, 120);
    const headers = { "if-match": "*" };
    assert.equal((await ask(program, "DELETE", `/jobs/${jobId}`, { headers })).status, 204);
    await restart();
    assertProblem(await ask(program, "GET", `/jobs/${jobId}`), 404, "job_not_found");
    await until("the job's rows are gone", () => {
      const left = [
        ...rowsOf(home, "SELECT run_id FROM runs WHERE job_id = ?", jobId),
        ...rowsOf(home, "SELECT job_id FROM jobs WHERE definition_id = ?", jobId),
        ...rowsOf(home, "SELECT job_id FROM job_definitions WHERE job_id = ?", jobId),
      ];
      return left.length === 0;
    });
    assert.deepEqual(await call(program, "GET", `/runs/${keptRun.run_id}`), keptRun);
    assert.ok((await walk(program, `/runs/${keptRun.run_id}/events`)).length > 0);
  });
});

describe("the runtime API's cleanup", () => {
  test("leaves the gateway's runs, their events and files alone, open or ended", async () => {
    const runtime = await runtimeApiOf(program);
    const write = executor("in", 'echo kept > "$SVC_OUTPUT_DIR/kept.txt"');
    const { run } = await completed(program, await createJob(program, graph("ended", [write])));
    const open = await startRun(program, await createJob(program, graph("open", [sensor("wait")])));
    await happens(program, open, "agent_started");
    const events = await walk(program, `/runs/${run.run_id}/events`);
    for (const all of [false, true]) {
      await call(runtime, "POST", `/jobs/cleanup?all=${all}`);
      assert.deepEqual(await call(program, "GET", `/runs/${run.run_id}`), run);
      assert.deepEqual(await walk(program, `/runs/${run.run_id}/events`), events);
      const [file] = await walk(program, `/runs/${run.run_id}/artifacts?evidence=false`);
      assert.equal((await ask(program, "GET", String(file?.url))).text, "kept\n");
      assert.equal(await statusOf(open), "running", `all=${all}`);
    }
    await want(open, "cancelled");
    await ended(program, open);
  });
});
