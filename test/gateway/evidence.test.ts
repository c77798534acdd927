// What a run leaves to be looked at: result, logs, timeline, progress, dead letters, artifacts and outputs. Sentences
// in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
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
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
});
after(() => program.stop());

const statesOf = (entries: unknown) =>
  (entries as readonly JsonObject[]).map(({ agent_id, state }) => [agent_id, state]);

describe("result", () => {
  test("answers at any time: a run that has not ended is running, and has no result yet", async () => {
    const runId = await startRun(program, await createJob(program, graph("open", [sensor("wait")])));
    await happens(program, runId, "agent_started");
    assert.deepEqual(await call(program, "GET", `/runs/${runId}/result`), {
      run_id: runId,
      status: "running",
      result: null,
      failure: null,
      finished_at: null,
    });
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    await ended(program, runId);
    const { status, result, failure } = await call(program, "GET", `/runs/${runId}/result`);
    assert.deepEqual([status, result, failure], ["cancelled", null, null]);
  });

  test('"failure_policy continue lets the run end as completed with partial: true", and leaves a dead letter', async () => {
    const nodes = [router("in"), executor("work", "exit 1", { max_attempts: 2, retry_backoff_ms: 1 })];
    const manifest = graph("partial", nodes, [["in", "work"]], { policies: { failure_policy: "continue" } });
    const jobId = await createJob(program, manifest);
    const { run } = await completed(program, jobId, { inputs: { order: 7 } });
    assert.equal((await call(program, "GET", `/runs/${run.run_id}/result`)).partial, true);
    const [letter, ...others] = await walk(program, `/jobs/${jobId}/dead-letters`);
    assert.equal(others.length, 0);
    const { dead_letter_id, message, created_at, ...rest } = letter ?? {};
    assert.deepEqual(rest, {
      run_id: run.run_id,
      agent_id: "work",
      reason: "processing_failed",
      attempts: 2,
      status: "open",
      retried_at: null,
      change: null,
    });
    assert.match(String(dead_letter_id), /./);
    assert.ok(Date.parse(String(created_at)) > 0);
    const { job_id, body, from, to } = message as JsonObject;
    assert.deepEqual([job_id, body, from, to], [jobId, { order: 7 }, "in", "work"]);
    await completed(program, jobId, { inputs: { order: 8 } });
    const named = await walk(program, `/jobs/${jobId}/dead-letters?run_id=${run.run_id}`);
    assert.deepEqual(named, [letter], "of the run that is named, else of the latest");
  });
});

describe("logs and timeline", () => {
  let runId = "";
  let run: JsonObject = {};
  before(async () => {
    const event = JSON.stringify({
      type: "log",
      payload: { level: "error", message: "bad", fields: { rows: 2 } },
    });
    const noisy = executor(
      "noisy",
      `echo out; echo WARN err >&2; printf '%s\\n' '${event}' > $SVC_EVENT_STREAM`,
    );
    const nodes = [executor("quiet", "echo quiet"), noisy];
    const jobId = await createJob(program, graph("logged", nodes, [["quiet", "noisy"]]));
    run = (await completed(program, jobId)).run;
    runId = String(run.run_id);
  });

  test('"Log record: {ts, level, run_id, agent_id, attempt, stream: stdout|stderr|worker|runtime, message, fields, trace_id, span_id}", and the id of its event', async () => {
    const logs = await walk(program, `/runs/${runId}/logs`, 2);
    const keys = [
      "ts",
      "level",
      "run_id",
      "agent_id",
      "attempt",
      "stream",
      "message",
      "fields",
      "trace_id",
      "span_id",
    ];
    for (const { id, ...log } of logs) {
      assert.ok(Number.isInteger(id));
      assert.deepEqual(Object.keys(log), keys);
      assert.deepEqual([log.run_id, log.trace_id, log.attempt], [runId, run.trace_id, 1]);
      assert.match(String(log.span_id), /^[0-9a-f]{16}$/);
    }
    const told = logs.map(({ agent_id, stream, level, message }) => [agent_id, stream, level, message]);
    assert.deepEqual(told.toSorted(), [
      ["noisy", "stderr", "warn", "WARN err"],
      ["noisy", "stdout", "info", "out"],
      ["noisy", "worker", "error", "bad"],
      ["quiet", "stdout", "info", "quiet"],
    ]);
    assert.deepEqual(logs.find(({ message }) => message === "bad")?.fields, { rows: 2 });
  });

  test("logs can be asked for by level, agent and stream", async () => {
    const messages = async (query: string) =>
      (await walk(program, `/runs/${runId}/logs?${query}`, 1)).map(({ message }) => message).toSorted();
    assert.deepEqual(await messages("level=warn"), ["WARN err", "bad"]);
    assert.deepEqual(await messages("agent_id=quiet"), ["quiet"]);
    assert.deepEqual(await messages("stream=stdout"), ["out", "quiet"]);
    assert.deepEqual(await messages("stream=stdout&agent_id=noisy&level=info"), ["out"]);
    for (const query of ["level=loud", "stream=other"]) {
      assertProblem(await ask(program, "GET", `/runs/${runId}/logs?${query}`), 400, "invalid_parameter");
    }
  });

  test('"Timeline record (svc.timeline.v1)": spans of run, agents and attempts, each below its parent', async () => {
    const records = await walk(program, `/runs/${runId}/timeline`, 3);
    const keys = [
      ...[
        "schema_version",
        "ts",
        "run_id",
        "trace_id",
        "span_id",
        "parent_span_id",
        "type",
        "phase",
        "agent_id",
      ],
      ...["step_id", "status", "duration_ms", "summary", "links", "details"],
    ];
    const spans = new Set(records.map(({ span_id }) => span_id));
    for (const record of records) {
      assert.deepEqual(Object.keys(record), keys);
      assert.deepEqual(
        [record.schema_version, record.run_id, record.trace_id],
        ["svc.timeline.v1", runId, run.trace_id],
      );
      assert.ok(record.parent_span_id === null || spans.has(record.parent_span_id));
    }
    const last = records.at(-1);
    assert.deepEqual([last?.type, last?.status], ["run", "completed"]);
    const attempts = records.filter(({ type, status }) => type === "attempt" && status === "completed");
    assert.deepEqual(
      attempts.map(({ agent_id }) => agent_id),
      ["quiet", "noisy"],
    );
  });
});

describe("workflow-progress", () => {
  test('"{job_id, run_id, status, progress: {percent, done, total, label}, steps, agents, failure, trace_id, observability_summary, eta_ms}"', async () => {
    const nodes = [router("in"), executor("bad", "exit 4"), router("never")];
    const edges = [["in", "bad"] as const, ["bad", "never"] as const];
    const jobId = await createJob(program, graph("progress", nodes, edges));
    const of = () => call(program, "GET", `/jobs/${jobId}/workflow-progress`);
    const before = await of();
    assert.deepEqual(Object.keys(before), [
      ...["job_id", "run_id", "status", "progress", "steps", "agents", "failure", "reason", "status_reason"],
      ...["trace_id", "observability_summary", "eta_ms"],
    ]);
    assert.deepEqual([before.job_id, before.run_id, before.status], [jobId, null, null]);
    const pending = ["in", "bad", "never"].map((id) => [id, "pending"]);
    assert.deepEqual(statesOf(before.steps), pending);
    const { run } = await ended(program, await startRun(program, jobId));
    const after = await of();
    assert.deepEqual(
      [after.run_id, after.status, after.trace_id, after.failure],
      [run.run_id, "failed", run.trace_id, run.failure],
    );
    const expected = [
      ["in", "done"],
      ["bad", "failed"],
      ["never", "skipped"],
    ];
    assert.deepEqual(statesOf(after.steps), expected);
    assert.deepEqual(statesOf(after.agents), expected);
    const { percent, done, total } = after.progress as JsonObject;
    assert.deepEqual([percent, done, total], [33, 1, 3]);
    const named = await call(program, "GET", `/jobs/${jobId}/workflow-progress?run_id=${run.run_id}`);
    assert.deepEqual(named, after);
  });

  test("of a completed run everything is done: 100 percent", async () => {
    const jobId = await createJob(program, graph("done", [router("in"), router("out")], [["in", "out"]]));
    await completed(program, jobId);
    const { progress, steps } = await call(program, "GET", `/jobs/${jobId}/workflow-progress`);
    assert.equal((progress as JsonObject).percent, 100);
    assert.deepEqual(statesOf(steps), [
      ["in", "done"],
      ["out", "done"],
    ]);
  });
});

describe("artifacts and outputs", () => {
  let runId = "";
  let artifacts: readonly JsonObject[] = [];
  before(async () => {
    const write =
      'cd "$SVC_OUTPUT_DIR"; printf 0123456789 > digits.txt; echo "<b>" > page.html; echo x > final_artifact.md';
    const outputs = [{ path: "page.html", title: "The page", primary: true }];
    const jobId = await createJob(program, graph("files", [executor("in", write)], [], { outputs }));
    runId = String((await completed(program, jobId)).run.run_id);
    artifacts = await walk(program, `/runs/${runId}/artifacts?evidence=false`, 1);
  });
  const fileOf = (name: string) => artifacts.find((artifact) => artifact.name === name) ?? {};

  test('"A run has an artifact list": {artifact_id, name, kind, size, sha256, content_type, url, created_at, producer}', async () => {
    const keys = [
      "artifact_id",
      "name",
      "kind",
      "size",
      "sha256",
      "content_type",
      "url",
      "created_at",
      "producer",
    ];
    for (const artifact of artifacts) assert.deepEqual(Object.keys(artifact), keys);
    const told = artifacts.map(({ name, kind, size, producer }) => [name, kind, size, producer]);
    assert.deepEqual(told.toSorted(), [
      ["digits.txt", "artifact", 10, "in"],
      ["final_artifact.md", "output", 2, "in"],
      ["page.html", "output", 4, "in"],
    ]);
  });

  test('"an output list": "the artifacts a user came for: the same fields plus title and primary"', async () => {
    const outputs = await walk(program, `/runs/${runId}/outputs`, 1);
    assert.deepEqual(outputs, [
      { ...fileOf("page.html"), title: "The page", primary: true },
      { ...fileOf("final_artifact.md"), title: null, primary: false },
    ]);
  });

  test("of one producer and name the newest is the output; those of two producers are told apart", async () => {
    const write = (nodeId: string) => executor(nodeId, 'cp "$SVC_INPUT_FILE" "$SVC_OUTPUT_DIR/page.html"');
    const page = { path: "page.html", title: "The page" };
    const more = { entrypoints: ["one", "two"], outputs: [page] };
    const jobId = await createJob(program, graph("pages", [write("one"), write("two")], [], more));
    const inputs = { $entrypoints: { one: [{ n: 1 }, { n: 2 }, { n: 3 }], two: [{ n: 4 }] } };
    const { run } = await completed(program, jobId, { inputs });
    const path = `/runs/${run.run_id}`;
    const files = await walk(program, `${path}/artifacts?evidence=false`, 1);
    assert.deepEqual(files.map(({ name, producer, kind }) => [name, producer, kind]).toSorted(), [
      ["page.html", "one", "artifact"],
      ["page.html", "one", "artifact"],
      ["page.html", "one", "output"],
      ["page.html", "two", "output"],
    ]);
    for (const pageSize of [1, 2, 200]) {
      const outputs = await walk(program, `${path}/outputs`, pageSize);
      assert.deepEqual(outputs.map(({ producer }) => producer).toSorted(), ["one", "two"]);
      for (const { url, producer } of outputs) {
        const said = await (await fetch(program.url + String(url))).json();
        assert.deepEqual(said, producer === "one" ? { n: 3 } : { n: 4 });
      }
    }
    const summary = await call(program, "GET", `${path}/observability-summary`);
    const ids = (await walk(program, `${path}/outputs`, 200)).map(({ artifact_id }) => artifact_id);
    const linked = (summary.artifact_links as { artifact_id: string }[]).map(
      ({ artifact_id }) => artifact_id,
    );
    assert.deepEqual(linked.slice(-2).toSorted(), ids.toSorted());
  });

  test('"Each lists entries with download URLs, which clients follow": the bytes are those that were listed', async () => {
    for (const { url, sha256, size } of artifacts) {
      assert.match(String(url), /^\/api\/v1\//);
      const answer = await fetch(program.url + url);
      const bytes = Buffer.from(await answer.arrayBuffer());
      assert.deepEqual([answer.status, bytes.length], [200, size]);
      assert.equal(createHash("sha256").update(bytes).digest("hex"), sha256);
    }
  });

  test('"url serves Content-Length, ETag = sha256, Range, Content-Disposition, and nosniff"', async () => {
    const { url, sha256 } = fileOf("digits.txt");
    const get = (headers: Record<string, string> = {}) => ask(program, "GET", String(url), { headers });
    const whole = await get();
    assert.equal(whole.headers.get("content-length"), "10");
    const etag = whole.headers.get("etag") ?? "";
    assert.equal(etag, `"${sha256}"`);
    assert.match(whole.headers.get("content-disposition") ?? "", /^attachment;.*digits\.txt/);
    assert.equal(whole.headers.get("x-content-type-options"), "nosniff");
    for (const [range, text] of [
      ["bytes=2-4", "234"],
      ["bytes=7-", "789"],
      ["bytes=-2", "89"],
      ["bytes=8-100", "89"],
    ] as const) {
      const part = await get({ range });
      assert.deepEqual([part.status, part.text], [206, text]);
      assert.match(part.headers.get("content-range") ?? "", /^bytes \d+-\d+\/10$/);
    }
    const outside = await get({ range: "bytes=10-" });
    assertProblem(outside, 416, "range_not_satisfiable");
    assert.equal(outside.headers.get("content-range"), "bytes */10");
    assert.equal((await get({ "if-none-match": etag })).status, 304);
    const head = await ask(program, "HEAD", String(url));
    assert.deepEqual([head.status, head.headers.get("content-length")], [200, "10"]);
  });

  test("an artifact that is not there, or is another run's: 404 artifact_not_found", async () => {
    const other = await createJob(program, graph("other", [router("in")]));
    const { run } = await completed(program, other);
    const { artifact_id } = fileOf("digits.txt");
    for (const path of [
      `/runs/${runId}/artifacts/art_none`,
      `/runs/${run.run_id}/artifacts/${artifact_id}`,
    ]) {
      assertProblem(await ask(program, "GET", path), 404, "artifact_not_found");
    }
    assert.deepEqual(await walk(program, `/runs/${run.run_id}/outputs`), []);
  });
});
