// What a run amounts to, and how far it has come, told by the gateway. Sentences in quotes are the specification's own,
// shortened.

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
  type EndedRun,
  ended,
  happens,
  type SeenEvent,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startGatewayHere();
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const summaryOf = (runId: unknown) => call(program, "GET", `/runs/${runId}/observability-summary`);
const progressOf = (jobId: unknown) => call(program, "GET", `/jobs/${jobId}/workflow-progress`);
const find = (entries: unknown, key: string, id: string) =>
  (entries as readonly JsonObject[]).find((entry) => entry[key] === id) ?? {};

/** The worker reports tokens, logs, leaves an output and then does as it is told. */
function worker(end: string): string {
  const metric = JSON.stringify({
    type: "metric",
    payload: { name: "tokens", tokens: { input: 30, output: 12 } },
  });
  const write = 'echo result > "$SVC_OUTPUT_DIR/final_artifact.txt"';
  return `printf '%s\\n' '${metric}' > $SVC_EVENT_STREAM; echo hello; echo WARN careful >&2; ${write}; ${end}`;
}

/** What the lists of a run hold. */
async function countsOf(of: Program, { run, events, of: ofType }: EndedRun): Promise<JsonObject> {
  const list = (name: string) => walk(of, `/runs/${run.run_id}/${name}`);
  const logs = await list("logs");
  return {
    events: events.length,
    logs: logs.length,
    errors: events.filter((event) => event.error !== undefined).length,
    warnings: logs.filter(({ level }) => level === "warn").length,
    timeline_records: (await list("timeline")).length,
    artifacts: ofType("artifact_written").length,
  };
}

describe("observability-summary", () => {
  let jobId = "";
  let end: EndedRun;
  let summary: JsonObject = {};
  before(async () => {
    const nodes = [
      router("in"),
      executor("work", worker("exit 3"), { max_attempts: 2, retry_backoff_ms: 1 }),
    ];
    jobId = await createJob(program, graph("summed", nodes, [["in", "work"]]));
    end = await ended(program, await startRun(program, jobId));
    summary = await summaryOf(end.run.run_id);
  });

  test('"status, duration, trace id, counts …, retry count, failed step or agent, resource peaks, token totals, artifact links"', () => {
    const { duration_ms, counts, resource_peaks, artifact_links, failure, ...rest } = summary;
    assert.deepEqual(rest, {
      schema_version: "svc.observability_summary.v1",
      run_id: end.run.run_id,
      status: "failed",
      trace_id: end.run.trace_id,
      agents: { done: 1, failed: 1, cancelled: 0, skipped: 0, not_reached: 0 },
      warnings: [],
      retry_count: 1,
      failed_agent_id: "work",
      failed_step_id: "work",
      tokens: { input: 60, output: 24, total: 84 },
    });
    assert.equal(duration_ms, end.run.duration_ms);
    assert.deepEqual(failure, end.run.failure);
    assert.ok(
      Array.isArray(artifact_links) && typeof counts === "object" && typeof resource_peaks === "object",
    );
  });

  test('"counts of events, logs, errors, warnings, timeline records and artifacts" are those of the lists', async () => {
    assert.deepEqual(summary.counts, await countsOf(program, end));
    assert.ok(Number((summary.counts as JsonObject).errors) >= 3, "both attempts, the agent and the run");
  });

  test('"artifact links": the stable ids and the outputs, each below the run', async () => {
    const links = summary.artifact_links as readonly JsonObject[];
    const stable = ["events", "logs", "errors", "timeline"].map((name) => `${name}_jsonl`);
    const outputs = await walk(program, `/runs/${end.run.run_id}/outputs`);
    assert.deepEqual(
      links.map(({ artifact_id }) => artifact_id),
      [...stable, "timeline_json", "observability_summary_json", ...outputs.map((one) => one.artifact_id)],
    );
    // Of both attempts' final_artifact.txt the newer one.
    assert.equal(outputs.length, 1);
    for (const { artifact_id, url } of links) {
      assert.equal(url, `/api/v1/runs/${end.run.run_id}/artifacts/${artifact_id}`);
      assert.equal((await ask(program, "HEAD", String(url))).status, 200, String(artifact_id));
    }
    const kept = await call(program, "GET", `/runs/${end.run.run_id}/artifacts/observability_summary_json`);
    assert.deepEqual(kept, summary, "the artifact is the same summary");
    const files = await walk(program, `/runs/${end.run.run_id}/artifacts?evidence=false`);
    assert.equal(files.length, 2);
    const disk = (summary.resource_peaks as JsonObject).disk_bytes;
    assert.equal(
      disk,
      files.reduce((sum, { size }) => sum + Number(size), 0),
    );
  });

  test('"Job details, workflow progress and compact summaries carry a failure object", "reason and status_reason … derived from failure.desc"', async () => {
    const { failure } = end.run;
    const { desc } = failure as JsonObject;
    assert.equal(typeof desc, "string");
    const job = await call(program, "GET", `/jobs/${jobId}?view=full`);
    const [listed] = await walk(program, `/runs?job_id=${jobId}`);
    const carriers = [end.run, await progressOf(jobId), job, listed ?? {}];
    for (const one of carriers) {
      assert.deepEqual([one.failure, one.reason, one.status_reason], [failure, desc, desc]);
      assert.equal(one.trace_id, end.run.trace_id);
    }
  });

  test("every record that carries a summary carries the same one, and the run has a link to it", async () => {
    const job = await call(program, "GET", `/jobs/${jobId}?view=full`);
    const carriers = [await progressOf(jobId), job];
    for (const one of carriers) assert.deepEqual(one.observability_summary, summary);
    const { observability_summary: link } = end.run.links as JsonObject;
    assert.deepEqual(await call(program, "GET", String(link)), summary);
  });

  test("reasons are null without a failure, and a run that nobody knows has no summary", async () => {
    const { run } = await completed(program, await createJob(program, graph("well", [router("in")])));
    assert.deepEqual([run.failure, run.reason, run.status_reason], [null, null, null]);
    const { failed_agent_id, failed_step_id, retry_count } = await summaryOf(run.run_id);
    assert.deepEqual([failed_agent_id, failed_step_id, retry_count], [null, null, 0]);
    assertProblem(await ask(program, "GET", "/runs/run_none/observability-summary"), 404, "run_not_found");
  });

  test("after kill -9 in the middle of a run, its counts are still those of the lists", async () => {
    const home = await temporaryHome();
    let crashed = await startGateway({ home });
    try {
      const gate = gates.pipe("crash");
      const nodes = [executor("first", worker("true")), executor("second", ["cat", gate])];
      const runId = await startRun(
        crashed,
        await createJob(crashed, graph("crash", nodes, [["first", "second"]])),
      );
      const isSecond = ({ type, agent_id }: SeenEvent) =>
        type === "sandbox_job_started" && agent_id === "second";
      await happens(crashed, runId, isSecond);
      await crashed.kill();
      crashed = await startGatewayHere({ home });
      await happens(crashed, runId, "job_recovered");
      await gates.open(gate);
      const over = await ended(crashed, runId);
      const path = `/runs/${runId}/observability-summary`;
      const { counts, retry_count, status } = await call(crashed, "GET", path);
      assert.deepEqual([status, retry_count], ["completed", 1]);
      assert.deepEqual(counts, await countsOf(crashed, over));
    } finally {
      await crashed.stop();
      await rm(home, { recursive: true, force: true });
    }
  });

  test("a job's full view keeps its ETag while its open run only grows older", async () => {
    const gate = gates.pipe("etag");
    const waits = await createJob(program, graph("etag", [executor("work", ["cat", gate])]));
    const runId = await startRun(program, waits);
    await happens(program, runId, "sandbox_job_started");
    const full = () => ask(program, "GET", `/jobs/${waits}?view=full`);
    const first = await full();
    const before = Number((await summaryOf(runId)).duration_ms);
    await until("the run is older", async () => Number((await summaryOf(runId)).duration_ms) > before);
    assert.equal((await full()).headers.get("etag"), first.headers.get("etag"));
    await gates.open(gate);
    await ended(program, runId);
  });
});

describe("workflow-progress", () => {
  test('"a top-level failure plus failure fields on steps and agents": also of an agent that the run went on without', async () => {
    const gate = gates.pipe("partial");
    const nodes = [router("in"), executor("bad", "exit 4"), executor("slow", ["cat", gate])];
    const edges = [["in", "bad"] as const, ["in", "slow"] as const];
    const manifest = graph("partial", nodes, edges, { policies: { failure_policy: "continue" } });
    const jobId = await createJob(program, manifest);
    const runId = await startRun(program, jobId);
    await happens(program, runId, "agent_failed");
    for (const look of ["while it runs", "after its end"]) {
      const progress = await progressOf(jobId);
      assert.equal(progress.failure, null, look);
      for (const entry of [
        find(progress.steps, "step_id", "bad"),
        find(progress.agents, "agent_id", "bad"),
      ]) {
        assert.equal(entry.state, "failed", look);
        assert.equal((entry.failure as JsonObject | null)?.code, "executor.exit_nonzero", look);
      }
      assert.equal(find(progress.steps, "step_id", "in").failure, null, look);
      if (look === "while it runs") await gates.open(gate);
      await (look === "while it runs" ? ended(program, runId) : null);
    }
  });

  test("a step has its attempt, when it began and ended, and how long it took", async () => {
    const gate = gates.pipe("times");
    const nodes = [executor("first", "true"), executor("work", ["cat", gate])];
    const jobId = await createJob(program, graph("times", nodes, [["first", "work"]]));
    const runId = await startRun(program, jobId);
    const isWork = ({ type, agent_id }: SeenEvent) => type === "sandbox_job_started" && agent_id === "work";
    const started = await happens(program, runId, isWork);
    const over = find((await progressOf(jobId)).steps, "step_id", "first");
    assert.equal(over.attempt, 1, "a step that is through, while the run goes on");
    assert.equal(
      over.duration_ms,
      Date.parse(String(over.finished_at)) - Date.parse(String(over.started_at)),
    );
    const running = find((await progressOf(jobId)).steps, "step_id", "work");
    assert.deepEqual([running.attempt, running.state, running.finished_at], [1, "running", null]);
    assert.ok(Number(running.duration_ms) >= 0);
    await gates.open(gate);
    const [, completedEvent] = (await ended(program, runId)).of("sandbox_job_completed");
    const { attempt, started_at, finished_at, duration_ms } = find(
      (await progressOf(jobId)).steps,
      "step_id",
      "work",
    );
    assert.deepEqual([attempt, started_at, finished_at], [1, started.timestamp, completedEvent?.timestamp]);
    assert.equal(duration_ms, Date.parse(String(finished_at)) - Date.parse(String(started_at)));
  });

  test("eta_ms goes by the completed runs of the job: none without them, none when it does not run", async () => {
    const gate = gates.pipe("eta");
    const jobId = await createJob(program, graph("eta", [executor("work", ["cat", gate])]));
    const etas: unknown[] = [];
    for (const _run of ["first", "second"]) {
      const runId = await startRun(program, jobId);
      await happens(program, runId, "sandbox_job_started");
      etas.push((await progressOf(jobId)).eta_ms);
      await gates.open(gate);
      const { run } = await ended(program, runId);
      assert.equal((await progressOf(jobId)).eta_ms, null);
      etas.push(run.duration_ms);
    }
    const [withoutPast, firstMs, withPast] = etas;
    assert.equal(withoutPast, null);
    assert.ok(typeof withPast === "number", "milliseconds");
    assert.ok(withPast >= 0 && withPast <= Number(firstMs), `${withPast} of ${firstMs} ms`);
  });
});
