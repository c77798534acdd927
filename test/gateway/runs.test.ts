// Runs: start, record, inputs, lists. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
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
import { aggregator, answer, executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
let held = "";
let twoWays = "";
before(async () => {
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
  held = await createJob(program, graph("held", [sensor("wait")]));
  const nodes = [router("left"), router("right"), aggregator("all")];
  const edges = [["left", "all"] as const, ["right", "all"] as const];
  const inputs = {
    entrypoints: ["left", "right"],
    initial_inputs: { left: [{ own: 1 }], right: [{ own: 2 }] },
  };
  twoWays = await createJob(program, graph("two-ways", nodes, edges, inputs));
});
after(() => program.stop());

const post = (jobId: string, body: unknown) => ask(program, "POST", `/jobs/${jobId}/runs`, { body });
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("POST /jobs/{job_id}/runs", () => {
  test('"202 with run_id", and "a run\'s start: Location /api/v1/runs/{run_id}"', async () => {
    const accepted = await post(held, {});
    assert.equal(accepted.status, 202);
    const { run_id, job_id, status, desired_state } = accepted.body;
    assert.match(String(run_id), /^run_/);
    assert.deepEqual([job_id, status, desired_state], [held, "pending", "running"]);
    const location = accepted.headers.get("location") ?? "";
    assert.equal(location, `/api/v1/runs/${run_id}`);
    assert.equal((await ask(program, "GET", location)).body.run_id, run_id);
  });

  test('"config_overrides: for catalog-backed jobs only", else 422', async () => {
    const refused = await post(held, { inputs: {}, config_overrides: { a: 1 } });
    assertProblem(refused, 422, "validation_failed");
    assert.deepEqual(pathsOf(refused), ["/config_overrides"]);
    assertProblem(await post(held, { config_overrides: {} }), 422, "validation_failed");
  });

  test('"inputs (object)": anything else is refused, and no run is made', async () => {
    const before = await walk(program, "/runs");
    for (const inputs of [[], "text", 7, null]) {
      const refused = await post(held, { inputs });
      assertProblem(refused, 422, "validation_failed");
      assert.deepEqual(pathsOf(refused), ["/inputs"]);
    }
    assert.equal((await walk(program, "/runs")).length, before.length);
  });
});

describe("inputs", () => {
  const bodiesOf = async (jobId: string, body: JsonObject) => {
    const { run } = await completed(program, jobId, body);
    assert.deepEqual(run.inputs, body.inputs ?? {}, "as given at creation");
    return ((run.result as JsonObject).messages as readonly JsonObject[]).map(
      (message) => (message.body ?? message) as JsonObject,
    );
  };

  test('"absent or {} leaves initial_inputs"', async () => {
    for (const body of [{}, { inputs: {} }]) {
      assert.deepEqual((await bodiesOf(twoWays, body)).toSorted(byText), [{ own: 1 }, { own: 2 }]);
    }
  });

  test('"inputs is one body, sent to every entrypoint in place of initial_inputs"', async () => {
    const inputs = { topic: "bees", deep: { list: [1, null, "ü"] } };
    assert.deepEqual(await bodiesOf(twoWays, { inputs }), [inputs, inputs]);
  });

  test('"{"$entrypoints": {"id": [bodies]}} addresses them one by one"', async () => {
    const inputs = { $entrypoints: { left: [{ n: 1 }, { n: 2 }] } };
    assert.deepEqual((await bodiesOf(twoWays, { inputs })).toSorted(byText), [
      { n: 1 },
      { n: 2 },
      { own: 2 },
    ]);
    const unknown = await post(twoWays, { inputs: { $entrypoints: { all: [{}] } } });
    assertProblem(unknown, 422, "validation_failed");
    assert.deepEqual(pathsOf(unknown), ["/inputs"]);
  });

  test('"It is not blueprint configuration": the worker finds inputs in its input file, not in its configuration', async () => {
    const command = `${copy("$SVC_INPUT_FILE", "input")}; printf '%s' "$SVC_BLUEPRINT_CONFIG_JSON" > $SVC_OUTPUT_DIR/config`;
    const jobId = await createJob(program, graph("apart", [executor("in", command)]));
    const { run } = await completed(program, jobId, { inputs: { topic: "bees" } });
    const files = await walk(program, `/runs/${run.run_id}/artifacts?evidence=false`);
    const textOf = async (name: string) =>
      (await ask(program, "GET", String(files.find((file) => file.name === name)?.url))).text;
    assert.deepEqual(JSON.parse(await textOf("input")), { topic: "bees" });
    assert.doesNotMatch(await textOf("config"), /bees/);
  });
});

describe("the run record", () => {
  test("has the fields of the contract, while it goes on and when it has ended", async () => {
    const runId = await startRun(program, held, { inputs: { a: 1 } });
    await happens(program, runId, "agent_started");
    const open = await call(program, "GET", `/runs/${runId}`);
    assert.deepEqual(Object.keys(open), [
      ...["run_id", "job_id", "job_name", "blueprint_id", "rerun_of"],
      ...["status", "desired_state", "inputs", "config_overrides"],
      ...["priority", "trigger", "attempt"],
      ...[
        "created_at",
        "started_at",
        "finished_at",
        "updated_at",
        "duration_ms",
        "progress",
        "counts",
        "result",
        "failure",
      ],
      ...["reason", "status_reason", "trace_id", "links"],
    ]);
    const { config_overrides, trigger, attempt, result, failure, finished_at } = open;
    assert.deepEqual(
      { config_overrides, trigger, attempt, result, failure, finished_at },
      {
        config_overrides: null,
        trigger: { kind: "api", id: null },
        attempt: 1,
        result: null,
        failure: null,
        finished_at: null,
      },
    );
    const nothing = { warnings: 0, retries: 0, human_pending: 0, dead_letters: 0, tokens: null };
    assert.deepEqual([open.job_name, open.counts], ["held", nothing]);
    assert.equal(open.status, "running");
    for (const time of [open.created_at, open.started_at, open.updated_at]) assert.match(String(time), TIME);
    assert.ok(Number.isInteger(open.duration_ms));
    assert.match(String(open.trace_id), /^[0-9a-f]{32}$/);
    const { agents_total, agents_done, messages, tasks_running, label } = open.progress as JsonObject;
    assert.deepEqual([agents_total, agents_done, tasks_running], [1, 0, 0]);
    assert.ok(Number.isInteger(messages) && String(label).length > 0);
    const cancelled = await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    assert.deepEqual([cancelled.run_id, cancelled.desired_state], [runId, "cancelled"]);
    const { run } = await ended(program, runId);
    assert.equal(run.status, "cancelled");
    assert.match(String(run.finished_at), TIME);
    const took = Date.parse(String(run.finished_at)) - Date.parse(String(run.started_at));
    assert.equal(run.duration_ms, took);
    assert.equal(
      (await call(program, "GET", `/runs/${runId}`)).duration_ms,
      took,
      "it does not grow any more",
    );
  });

  test('its links lead to what they name: "self, job, events, stream, result, logs, timeline, artifacts, outputs"', async () => {
    const jobId = await createJob(program, graph("links", [router("in")]));
    const { run } = await completed(program, jobId);
    const links = run.links as Readonly<Record<string, string>>;
    assert.deepEqual(Object.keys(links).toSorted(), [
      ...[
        "artifacts",
        "dead_letters",
        "events",
        "events_stream",
        "human",
        "job",
        "logs",
        "observability_summary",
        "outputs",
        "reruns",
        "result",
        "self",
        "stream",
        "timeline",
      ],
    ]);
    for (const [name, link] of Object.entries(links)) {
      assert.ok(link.startsWith("/api/v1/"), `${name}: ${link}`);
      assert.equal((await ask(program, "GET", link)).status, 200, name);
    }
  });

  test("a failed run says why, in its failure and in its result", async () => {
    const jobId = await createJob(program, graph("bad", [executor("work", "echo oh no >&2; exit 3")]));
    const { run } = await ended(program, await startRun(program, jobId));
    assert.equal(run.status, "failed");
    const failure = run.failure as JsonObject;
    assert.deepEqual([failure.schema_version, failure.code], ["svc.error.v1", "executor.exit_nonzero"]);
    const { exit_code, agent_id, stderr_tail } = failure.details as JsonObject;
    assert.deepEqual([exit_code, agent_id], [3, "work"]);
    assert.match(String(stderr_tail), /oh no/);
    const result = await call(program, "GET", `/runs/${run.run_id}/result`);
    assert.deepEqual([result.status, result.failure, result.result], ["failed", failure, null]);
  });

  test("a run that has completed has its result in the record and at /result", async () => {
    const jobId = await createJob(
      program,
      graph("good", [executor("in", answer({ complete_run: { sum: 3 } }))]),
    );
    const { run } = await completed(program, jobId);
    assert.deepEqual(run.result, { sum: 3 });
    assert.deepEqual(await call(program, "GET", `/runs/${run.run_id}/result`), {
      run_id: run.run_id,
      status: "completed",
      result: { sum: 3 },
      failure: null,
      finished_at: run.finished_at,
    });
  });
});

describe("lists of runs", () => {
  test('"Also GET /runs and GET /jobs/{job_id}/runs (filters job_id, status)": newest first', async () => {
    const jobId = await createJob(program, graph("listed", [sensor("wait")]));
    const other = await createJob(program, graph("other", [sensor("wait")]));
    const runIds: string[] = [];
    for (let i = 0; i < 5; i++) runIds.unshift(await startRun(program, jobId));
    const foreign = await startRun(program, other);
    for (const runId of [...runIds, foreign]) await happens(program, runId, "agent_started");
    const [paused, cancelled] = [runIds[1] ?? "", runIds[3] ?? ""];
    await call(program, "PATCH", `/runs/${paused}`, { desired_state: "paused" });
    await call(program, "PATCH", `/runs/${cancelled}`, { desired_state: "cancelled" });
    await ended(program, cancelled);
    const ids = async (list: string) => (await walk(program, list, 2)).map(({ run_id }) => run_id);
    assert.deepEqual(await ids(`/jobs/${jobId}/runs`), runIds);
    assert.deepEqual(await ids(`/runs?job_id=${jobId}`), runIds);
    assert.deepEqual(await ids(`/jobs/${jobId}/runs?status=paused`), [paused]);
    assert.deepEqual(await ids(`/runs?job_id=${jobId}&status=cancelled`), [cancelled]);
    const running = runIds.filter((id) => id !== paused && id !== cancelled);
    assert.deepEqual(await ids(`/runs?job_id=${jobId}&status=running`), running);
    const everywhere = await ids("/runs?status=running");
    assert.deepEqual(
      everywhere.filter((id) => id === foreign || running.includes(String(id))),
      [foreign, ...running],
    );
    assert.deepEqual(await ids("/runs?job_id=job_none"), []);
    for (const query of ["status=done", "status=", "state=running"]) {
      assertProblem(await ask(program, "GET", `/runs?${query}`), 400, "invalid_parameter");
    }
  });

  test("an item of a list is the run's own record", async () => {
    const jobId = await createJob(program, graph("item", [router("in")]));
    const { run } = await completed(program, jobId, { inputs: { a: [1] } });
    assert.deepEqual(await walk(program, `/jobs/${jobId}/runs`), [run]);
  });
});

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

function copy(from: string, to: string): string {
  return `cp "${from}" "$SVC_OUTPUT_DIR/${to}"`;
}
