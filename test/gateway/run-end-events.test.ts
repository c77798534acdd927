// The ends of runs as trigger events: one job follows another.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  pathsOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { answer, executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let catalog: TestCatalog;
let program: Program;
before(async () => {
  catalog = await testCatalog();
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

interface EndEvent {
  readonly type: string;
  readonly source: string;
  readonly payload: JsonObject;
  readonly matched: readonly JsonObject[];
}

const endsOf = async (runId: string) =>
  ((await walk(program, "/events")) as unknown as readonly EndEvent[]).filter(
    ({ payload }) => payload?.run_id === runId,
  );
/** The event of a run's end, once there is one. */
const endOf = (runId: string) =>
  until(`the end of run ${runId} is told`, async () => (await endsOf(runId))[0] ?? false);
const follow = async (
  jobId: string,
  type: string,
  body: JsonObject = {},
  filters: readonly JsonObject[] = [],
) => {
  const answer = await ask(program, "POST", "/schedules", {
    body: { job_id: jobId, event: { type, filters }, ...body },
  });
  assert.equal(answer.status, 201, answer.text);
  return String(answer.body.schedule_id);
};
const ofJob = (jobId: string) => [{ path: "/payload/job_id", op: "eq", value: jobId }];

test("a run that completes is told with its result, and a job that follows it is given that", async () => {
  const first = await createJob(
    program,
    graph("first", [executor("a", ["sh", "-c", answer({ text: "bees" })])], []),
  );
  const second = await createJob(program, graph("second", [router("in")]));
  const id = await follow(
    second,
    "run.completed",
    { inputs: { of: { $event: "/payload/run_id" } } },
    ofJob(first),
  );
  const runId = await startRun(program, first);
  const { run } = await ended(program, runId);
  const event = await endOf(runId);
  assert.deepEqual([event.type, event.source], ["run.completed", "troupe"]);
  assert.deepEqual(event.payload, {
    run_id: runId,
    job_id: first,
    blueprint_id: null,
    status: "completed",
    result: run.result,
    failure: null,
  });
  const [match, ...more] = event.matched;
  assert.deepEqual([match?.schedule_id, more], [id, []]);
  const { run: following } = await ended(program, String(match?.run_id));
  assert.deepEqual([following.inputs, following.trigger], [{ of: runId }, { kind: "event", id }]);
});

test("a run that fails is told with its failure; one that is cancelled is not told", async () => {
  const failing = await createJob(program, graph("failing", [executor("a", ["false"])], []));
  const failed = await startRun(program, failing);
  const { run } = await ended(program, failed);
  const { type, payload } = await endOf(failed);
  const { failure, status } = payload;
  assert.equal(type, "run.failed");
  assert.deepEqual([status, failure], ["failed", run.failure]);
  const held = await createJob(program, graph("held", [sensor("wait")]));
  const cancelled = await startRun(program, held);
  await call(program, "POST", `/jobs/${held}/cancel`);
  await ended(program, cancelled);
  const later = await startRun(program, failing);
  await endOf(later);
  assert.deepEqual(await endsOf(cancelled), []);
});

test("an endless chain ends after 16 runs, and reports that", async () => {
  const jobId = await createJob(program, graph("endless", [router("in")]));
  const id = await follow(jobId, "run.completed", { overlap: "allow" }, ofJob(jobId));
  await startRun(program, jobId);
  const last = await until("the chain has ended", async () => {
    const events = await walk(program, "/events?type=run.completed");
    const matches = events.flatMap(({ matched }) => matched as readonly JsonObject[]);
    return matches.find(({ skipped }) => skipped === "too_deep") ?? false;
  });
  assert.equal(last.schedule_id, id);
  assert.match(String(last.reason), /^16 runs have led to this event/);
  const runs = await walk(program, `/runs?job_id=${jobId}`);
  assert.equal(runs.length, 1 + 16);
  assert.equal(((await call(program, "GET", `/schedules/${id}`)).counts as JsonObject).dispatched, 16);
});

test("nobody else tells of the ends of runs", async () => {
  for (const type of ["run.completed", "run.failed"]) {
    const answer = await ask(program, "POST", "/events", { body: { type } });
    assertProblem(answer, 422, "validation_failed");
    assert.deepEqual(pathsOf(answer), ["/type"]);
  }
  assert.equal((await ask(program, "POST", "/events", { body: { type: "run.started" } })).status, 202);
});
