// What a run did and came to, told by the runtime API: summary, result, timeline, logs, merged stream, workflow
// progress. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { type Frame, frames } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, type Run, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, request } from "../support/runtime-api.ts";

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

const jobOf = ({ detail }: Run) => detail.job as JsonObject;
const get = (of: string) => call(program, "GET", of);
const dataOf = async (of: string) => (await get(of)).data as readonly JsonObject[];
const progressOf = (jobId: string) => get(path(jobId, "/workflow-progress"));
const step = (progress: JsonObject, id: string) =>
  (progress.steps as readonly JsonObject[]).find((one) => one.step_id === id) ?? {};

const NOISY = "echo one; echo two >&2; echo three";

describe("of a run that failed", () => {
  let failed: Run;
  let runPath = "";
  before(async () => {
    const bad = executor("bad", `${NOISY}; exit 3`, { max_attempts: 2, retry_backoff_ms: 1 });
    failed = await run(program, graph("fails", [router("in"), bad], [["in", "bad"]]));
    runPath = `/runs/${jobOf(failed).run_id}`;
  });

  test('"observability-summary: compact svc.observability_summary.v1", the same as in the job detail', async () => {
    const summary = await get(`${runPath}/observability-summary`);
    assert.deepEqual(jobOf(failed).observability_summary, summary);
    const { schema_version, status, retry_count, failed_agent_id, counts, failure } = summary;
    assert.deepEqual(
      [schema_version, status, retry_count, failed_agent_id],
      ["svc.observability_summary.v1", "failed", 1, "bad"],
    );
    assert.deepEqual(failure, jobOf(failed).failure);
    assert.deepEqual(counts, {
      events: failed.events.length,
      logs: (await dataOf(`${runPath}/logs`)).length,
      errors: failed.events.filter((event) => event.error !== undefined).length,
      warnings: (await dataOf(`${runPath}/logs?level=warn`)).filter(({ level }) => level === "warn").length,
      timeline_records: (await dataOf(`${runPath}/timeline`)).length,
      artifacts: 0,
    });
  });

  test('"reason and status_reason … are display strings derived from failure.desc", wherever a failure is', async () => {
    const { failure } = jobOf(failed);
    const { desc, code } = failure as JsonObject;
    assert.equal(code, "executor.exit_nonzero");
    const listed = (await dataOf("/jobs")).find(({ job_id }) => job_id === failed.jobId);
    const result = await get(`${runPath}/result`);
    for (const one of [jobOf(failed), await progressOf(failed.jobId), listed ?? {}, result]) {
      assert.deepEqual([one.failure, one.reason, one.status_reason], [failure, desc, desc]);
    }
    for (const one of [jobOf(failed), await progressOf(failed.jobId), listed ?? {}]) {
      assert.match(String(one.trace_id), /^[0-9a-f]{32}$/);
    }
  });

  test('"workflow-progress: normalised progress, failure, trace and observability summary"', async () => {
    const progress = await progressOf(failed.jobId);
    assert.deepEqual(Object.keys(progress), [
      ...["job_id", "run_id", "status", "progress", "steps", "agents", "failure", "reason", "status_reason"],
      ...["trace_id", "observability_summary"],
    ]);
    assert.deepEqual(
      [progress.job_id, progress.run_id, progress.status],
      [failed.jobId, jobOf(failed).run_id, "failed"],
    );
    const agents = { done: 1, failed: 1, cancelled: 0, skipped: 0, not_reached: 0 };
    assert.deepEqual(progress.progress, { percent: 50, done: 1, total: 2, agents, label: "Failed" });
    assert.deepEqual(progress.observability_summary, jobOf(failed).observability_summary);
    const { state, attempt, failure, started_at, finished_at, duration_ms } = step(progress, "bad");
    assert.deepEqual([state, attempt, failure], ["failed", 2, progress.failure]);
    const second = failed.of("sandbox_job_started", "bad")[1] as unknown as { timestamp: string };
    assert.equal(started_at, second.timestamp);
    assert.equal(duration_ms, Date.parse(String(finished_at)) - Date.parse(String(started_at)));
    assert.ok(!("failure" in step(progress, "in")), "what has no value is left out");
  });

  test('"timeline: svc.timeline.v1 records", from the run\'s first to its last', async () => {
    const records = await dataOf(`${runPath}/timeline`);
    for (const record of records) {
      assert.deepEqual(
        [record.schema_version, record.run_id, record.trace_id],
        ["svc.timeline.v1", jobOf(failed).run_id, jobOf(failed).trace_id],
      );
    }
    assert.equal(records[0]?.phase, "accepted");
    assert.deepEqual([records.at(-1)?.type, records.at(-1)?.status], ["run", "failed"]);
  });

  test("logs are filtered, read forwards or backwards, and continue where a limit ended", async () => {
    const messages = async (query: string) =>
      (await dataOf(`${runPath}/logs?${query}`)).map(({ message }) => message);
    assert.deepEqual(await messages("stream=stdout"), ["one", "three", "one", "three"]);
    assert.deepEqual((await messages("stream=stderr&agent_id=bad")).length, 2);
    assert.deepEqual(await messages("agent_id=nobody"), []);
    assert.deepEqual(await messages("text=ONE&stream=stdout"), ["one", "one"]);
    assert.deepEqual((await messages("level=error")).length, 2, "the agent failed, and the run");
    assert.deepEqual(await messages("since=2999-01-01T00:00:00Z"), []);
    const all = await messages("");
    assert.deepEqual(await messages("order=desc"), all.toReversed());
    const walked: unknown[] = [];
    for (let next = ""; ; ) {
      const page = await get(`${runPath}/logs?limit=3&order=desc${next}`);
      const records = page.data as readonly JsonObject[];
      assert.ok(records.length <= 3);
      walked.push(...records.map(({ message }) => message));
      assert.equal(page.last_event_id, failed.events.length);
      if (page.next === null) break;
      next = `&next=${page.next}`;
    }
    assert.deepEqual(walked, all.toReversed());
  });

  test("what is no level, stream, time, order, position or channel is a 400 that names it", async () => {
    const queries = [
      ...["logs?level=loud", "logs?stream=x", "logs?since=today", "logs?until=2026-11-21", "logs?order=up"],
      ...["logs?limit=many", "logs?next=1", "logs?text=", "logs?level=info&level=warn", "stream?channels=tv"],
    ];
    for (const query of queries) {
      const { status, body } = await request(program, "GET", `${runPath}/${query}`);
      assert.equal(status, 400, query);
      assert.deepEqual(Object.keys(body), ["error"]);
      const name = /\?(\w+)=/.exec(query)?.[1] ?? "";
      assert.ok(String(body.error).startsWith(name), `${query}: ${body.error}`);
    }
  });

  test('"the run stream … also carries the timeline when the timeline channel is requested"', async () => {
    const seen = await Array.fromAsync(frames(program, `${runPath}/stream?channels=timeline`));
    const timeline = await dataOf(`${runPath}/timeline`);
    const viewed = seen.map(({ data }) => (data.channels as JsonObject).timeline);
    assert.deepEqual(viewed, timeline);
    const last = seen.at(-1) as Frame;
    assert.deepEqual([last.event, last.id], ["job_failed", failed.events.length]);
    const all = await Array.fromAsync(frames(program, `${runPath}/stream`));
    assert.equal(all.length, failed.events.length);
    const headers = { "last-event-id": String(failed.events.length - 1) };
    const rest = await Array.fromAsync(frames(program, `${runPath}/stream`, headers));
    assert.deepEqual(rest, all.slice(-1));
    const done = { "last-event-id": String(failed.events.length) };
    assert.deepEqual(await Array.fromAsync(frames(program, `${runPath}/stream`, done)), [], "204");
  });
});

test("a reader is kept posted while nothing in a long history is for it, so that one who leaves is noticed", async () => {
  // More than the 20,000 events that are looked at before a first blank is written.
  const long = await run(program, graph("long", [executor("work", "seq 1 25000")]));
  const runPath = `/runs/${jobOf(long).run_id}`;
  const none = await (await fetch(`${program.api}${runPath}/logs?text=nowhere`)).text();
  assert.match(none, /^\{"data":\[ {2,}\],"next":null,/);
  const { data, last_event_id } = JSON.parse(none) as { data: unknown[]; last_event_id: number };
  assert.deepEqual([data, last_event_id], [[], long.events.length]);
  const timeline = await (await fetch(`${program.api}${runPath}/timeline`)).text();
  assert.match(timeline, /\} {2,}[,\]]/);
  const types = (JSON.parse(timeline) as { data: { type: string }[] }).data.map(({ type }) => type);
  assert.deepEqual([types[0], types.at(-1)], ["run", "run"]);
});

test("HEAD on the streams of a run that goes on is answered at once, and leaves no stream behind", async () => {
  const gate = gates.pipe("head");
  const jobId = await submit(program, graph("head", [executor("work", `cat ${gate}`)]));
  const { job } = (await get(path(jobId))) as { job: JsonObject };
  for (const stream of [`/runs/${job.run_id}/stream`, path(jobId, "/events/stream")]) {
    const answer = await fetch(program.api + stream, { method: "HEAD" });
    assert.deepEqual([answer.status, await answer.text()], [200, ""]);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/);
  }
  assert.equal(((await get(path(jobId))).job as JsonObject).status, "running");
  await gates.open(gate);
  await ended(program, jobId);
});

test("a result is there once the run has one", async () => {
  const gate = gates.pipe("result");
  const answer = `cat ${gate}; echo '{"complete_run": {"answer": 42}}'`;
  const jobId = await submit(program, graph("result", [executor("work", answer)]));
  await happens(program, jobId, "sandbox_job_started");
  const { job } = (await get(path(jobId))) as { job: JsonObject };
  const before = await get(`/runs/${job.run_id}/result`);
  assert.deepEqual(before, {
    run_id: job.run_id,
    job_id: jobId,
    status: "running",
    result: null,
    partial: false,
  });
  await gates.open(gate);
  const end = await ended(program, jobId);
  assert.deepEqual(await get(`/runs/${job.run_id}/result`), {
    run_id: job.run_id,
    job_id: jobId,
    status: "completed",
    result: { answer: 42 },
    partial: false,
    finished_at: jobOf(end).updated_at,
  });
});

test("a job that runs is as far as its agents: attempts that run have a beginning and no end", async () => {
  const gate = gates.pipe("progress");
  const nodes = [router("in"), executor("work", ["cat", gate]), router("out")];
  const jobId = await submit(
    program,
    graph("progress", nodes, [
      ["in", "work"],
      ["work", "out"],
    ]),
  );
  await happens(program, jobId, "sandbox_job_started");
  const progress = await progressOf(jobId);
  assert.deepEqual(progress.progress, { percent: 33, done: 1, total: 3, label: "1 of 3 agents done" });
  const work = step(progress, "work");
  assert.deepEqual([work.state, work.attempt], ["running", 1]);
  assert.ok(!("finished_at" in work) && !("failure" in progress));
  assert.equal(step(progress, "out").state, "pending");
  await gates.open(gate);
  await ended(program, jobId);
  const over = (await progressOf(jobId)).progress as JsonObject;
  const agents = { done: 3, failed: 0, cancelled: 0, skipped: 0, not_reached: 0 };
  assert.deepEqual(over, { percent: 100, done: 3, total: 3, agents, label: "Completed" });
});

test("a job or run that is not there: 404 {error}", async () => {
  for (const view of ["observability-summary", "result", "timeline", "logs", "stream"]) {
    const { status, body } = await request(program, "GET", `/runs/run_none/${view}`);
    assert.deepEqual([status, body], [404, { error: "Run run_none was not found" }]);
  }
  const { status, body } = await request(program, "GET", "/jobs/g-none/workflow-progress");
  assert.deepEqual([status, body], [404, { error: "Job g-none was not found" }]);
});
