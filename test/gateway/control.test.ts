// Run control: the matrix of transitions on one run, and on all runs of a job. Sentences in quotes are the
// specification's own, shortened.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  happens,
  pathsOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
let gates: Gates;
let held = "";
let quick = "";
let broken = "";
before(async () => {
  gates = await makeGates();
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
  held = await createJob(program, graph("held", [sensor("wait")]));
  quick = await createJob(program, graph("quick", [router("in")]));
  broken = await createJob(program, graph("broken", [executor("in", "exit 1")]));
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const want = (runId: string, desired_state: string) =>
  ask(program, "PATCH", `/runs/${runId}`, { body: { desired_state } });
const statusOf = async (runId: string) => (await call(program, "GET", `/runs/${runId}`)).status;

type From = "running" | "paused" | "completed" | "failed" | "cancelled";

/** A run that has come to this status, and stays there. */
async function runThatIs(from: From): Promise<string> {
  const jobId = from === "completed" ? quick : from === "failed" ? broken : held;
  const runId = await startRun(program, jobId);
  if (jobId !== held) await ended(program, runId);
  // The last thing that happens to it: after that its record changes no more.
  else await happens(program, runId, "agent_message_received");
  if (from === "paused" || from === "cancelled") await want(runId, from);
  if (from === "cancelled") await ended(program, runId);
  assert.equal(await statusOf(runId), from);
  return runId;
}

/** CONTRACTS: what a PATCH of the desired state comes to; "unchanged" with 200, "refused" with 409. */
const matrix: Readonly<Record<From, Readonly<Record<string, string>>>> = {
  running: { paused: "paused", running: "unchanged", cancelled: "cancelled" },
  paused: { paused: "unchanged", running: "running", cancelled: "cancelled" },
  completed: { paused: "refused", running: "refused", cancelled: "refused" },
  failed: { paused: "refused", running: "refused", cancelled: "refused" },
  cancelled: { paused: "refused", running: "refused", cancelled: "unchanged" },
};

describe("PATCH desired_state", () => {
  for (const [from, row] of Object.entries(matrix) as [From, Readonly<Record<string, string>>][]) {
    for (const [to, outcome] of Object.entries(row)) {
      test(`"run control": ${from} asked for ${to} is ${outcome}`, async () => {
        const runId = await runThatIs(from);
        const before = await call(program, "GET", `/runs/${runId}`);
        const answer = await want(runId, to);
        if (outcome === "refused") {
          assertProblem(answer, 409, "invalid_transition");
          assert.deepEqual(await call(program, "GET", `/runs/${runId}`), before, "unchanged");
          return;
        }
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.body.run_id, runId, "the response is the run record");
        const expected = outcome === "unchanged" ? from : outcome;
        if (expected === "cancelled") await ended(program, runId);
        assert.equal(await statusOf(runId), expected);
        if (outcome === "unchanged") {
          const apartFromTime = ({ duration_ms: _, ...record }: JsonObject) => record;
          assert.deepEqual(apartFromTime(answer.body), apartFromTime(before));
        }
      });
    }
  }

  test('"desired_state: allowed: paused, running, cancelled", and no other field', async () => {
    const runId = await runThatIs("running");
    for (const body of [
      {},
      { desired_state: "completed" },
      { desired_state: "PAUSED" },
      { desired_state: null },
      { desired_state: "paused", force: true },
      { status: "paused" },
      [],
    ]) {
      const answer = await ask(program, "PATCH", `/runs/${runId}`, { body });
      assertProblem(answer, 422, "validation_failed");
      assert.equal(await statusOf(runId), "running", JSON.stringify(body));
    }
    const both = await ask(program, "PATCH", `/runs/${runId}`, { body: { desired_state: "x", y: 1 } });
    assert.deepEqual(pathsOf(both).toSorted(), ["/desired_state", "/y"]);
    assertProblem(await want("run_none", "paused"), 404, "run_not_found");
  });
});

describe("what control does to work", () => {
  test('"Pause stops dispatch; a task that is running is allowed to finish (its result waits)"', async () => {
    const gate = gates.pipe("pause");
    const nodes = [executor("first", `cat ${gate}`), executor("second", "true")];
    const jobId = await createJob(program, graph("pausing", nodes, [["first", "second"]]));
    const runId = await startRun(program, jobId);
    await happens(program, runId, "sandbox_job_started");
    assert.equal((await want(runId, "paused")).body.status, "paused");
    await gates.open(gate);
    await happens(program, runId, (event) => event.type === "executor_lease_released");
    assert.equal(await statusOf(runId), "paused");
    const seen = await call(program, "GET", `/runs/${runId}/events`);
    const started = (seen.items as readonly JsonObject[]).filter(
      ({ type }) => type === "sandbox_job_started",
    );
    assert.deepEqual(
      started.map(({ agent_id }) => agent_id),
      ["first"],
    );
    assert.equal((await want(runId, "running")).body.status, "running");
    const { run, of } = await ended(program, runId);
    assert.equal(run.status, "completed");
    assert.deepEqual([of("job_paused").length, of("job_resumed").length], [1, 1]);
    // Looked at in the end: what was begun too early need not have been seen while the run was paused.
    const second = of("sandbox_job_started").find(({ agent_id }) => agent_id === "second");
    assert.ok(Number(second?.id) > Number(of("job_resumed")[0]?.id), "nothing is begun before");
  });

  test('"Cancel ends running commands: SIGTERM to the process tree"', async () => {
    const ready = gates.pipe("ready");
    // A file, and no pipe: one that is killed while it waits for a reader would say nothing.
    const said = join(gates.folder, "said");
    const command = `trap 'echo terminated > ${said}; exit 1' TERM; echo > ${ready}; while :; do sleep 0.01; done`;
    const runId = await startRun(
      program,
      await createJob(program, graph("ending", [executor("in", command)])),
    );
    await gates.released(ready);
    await want(runId, "cancelled");
    await until("the command was asked to end, and did what it does then", () => {
      return existsSync(said) && readFileSync(said, "utf8") === "terminated\n";
    });
    assert.equal((await ended(program, runId)).run.status, "cancelled");
  });

  for (const [action, status] of [
    ["pause", "paused"],
    ["cancel", "cancelled"],
  ] as const) {
    test(`runs that are asked to ${action} while they wait for their launch obey like all others`, async () => {
      // Graphs of many agents, and more runs than are launched at once: many wait when the request comes.
      const nodes = Array.from({ length: 100 }, (_, i) => sensor(`s${i}`));
      const entrypoints = nodes.map(({ node_id }) => String(node_id));
      const jobId = await createJob(program, graph("waiting", nodes, [], { entrypoints }));
      const runIds = await Promise.all(Array.from({ length: 120 }, () => startRun(program, jobId)));
      const { runs } = await call(program, "POST", `/jobs/${jobId}/${action}`);
      assert.equal((runs as readonly JsonObject[]).length, runIds.length);
      if (action === "pause") {
        for (const run of await walk(program, `/jobs/${jobId}/runs`)) assert.equal(run.status, status);
        await call(program, "POST", `/jobs/${jobId}/resume`);
        for (const runId of runIds.slice(-10)) await happens(program, runId, "agent_started");
        await call(program, "POST", `/jobs/${jobId}/cancel`);
      }
      for (const runId of runIds) {
        const { run, events } = await ended(program, runId);
        assert.deepEqual([run.status, events.at(-1)?.type], ["cancelled", "job_cancelled"]);
      }
      // One that never began has one event, and tells it in every way alike.
      const [never] = (await walk(program, `/jobs/${jobId}/runs`)).filter(
        ({ started_at }) => started_at === null,
      );
      if (never === undefined) return;
      const history = await walk(program, `/runs/${never.run_id}/events`);
      assert.deepEqual(history, (await ended(program, String(never.run_id))).events);
      assert.deepEqual([history.length, history[0]?.type, never.duration_ms], [1, "job_cancelled", null]);
    });
  }
});

describe("POST /jobs/{job_id}/pause, /resume, /cancel", () => {
  const control = (jobId: string, action: string): Promise<Answer> =>
    ask(program, "POST", `/jobs/${jobId}/${action}`);

  test('"do this to every non-terminal run of the job and answer {job_id, runs: [{run_id, status}]}"', async () => {
    const jobId = await createJob(program, graph("all", [sensor("wait")]));
    const over = await startRun(program, jobId);
    await want(over, "cancelled");
    await ended(program, over);
    const open = [await startRun(program, jobId), await startRun(program, jobId)];
    for (const runId of open) await happens(program, runId, "agent_started");
    for (const [action, status] of [
      ["pause", "paused"],
      ["pause", "paused"],
      ["resume", "running"],
      ["resume", "running"],
      ["cancel", "cancelled"],
    ] as const) {
      const answer = await control(jobId, action);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.body.job_id, jobId);
      const runs = answer.body.runs as readonly JsonObject[];
      assert.deepEqual(
        runs.map(({ run_id }) => run_id),
        open,
      );
      for (const run of runs) assert.deepEqual(Object.keys(run), ["run_id", "status"]);
      for (const runId of open) {
        if (action === "cancel") await ended(program, runId);
        assert.equal(await statusOf(runId), status);
      }
    }
  });

  test('"with none: 409"', async () => {
    const jobId = await createJob(program, graph("none", [router("in")]));
    for (const action of ["pause", "resume", "cancel"]) {
      assertProblem(await control(jobId, action), 409, "invalid_transition");
    }
    await completed(program, jobId);
    for (const action of ["pause", "resume", "cancel"]) {
      assertProblem(await control(jobId, action), 409, "invalid_transition");
    }
  });
});
