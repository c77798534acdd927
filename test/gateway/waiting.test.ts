// Requests that start something and wait for its end: `Prefer: wait=N`, on both APIs.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Answer, ask, call, runtimeApiOf, walk } from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { type JobsGateway, startJobsGateway } from "../support/jobs-gateway.ts";
import { sized } from "../support/long.ts";
import type { Program } from "../support/program.ts";
import { dial, read, request } from "../support/raw-http.ts";
import { until } from "../support/until.ts";
import { LONG, untilWaiting, waiting, waitingRequests } from "../support/waiting.ts";

const quick = graph("quick", [router("in")]);
const held = graph("held", [sensor("wait")]);
const failing = graph("failing", [executor("work", ["false"], { max_attempts: 1 })]);

const header = (answer: Answer, name: string) => answer.headers.get(name);

function assertApplied(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(header(answer, "preference-applied"), "wait");
  assert.equal(header(answer, "vary"), "Prefer");
}

function assertNotApplied(answer: Answer, status: number): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(header(answer, "preference-applied"), null);
  assert.equal(header(answer, "vary"), "Prefer");
}

const AT_ONCE = sized(500, 2_000);
/** The system queues 511 connections that the server has not accepted; here nothing is accepted while clients connect. */
const CONNECTED_AT_ONCE = 250;

describe("a request that waits", () => {
  let gateway: JobsGateway;
  let program: Program;
  let runtime: Program;
  before(async () => {
    gateway = await startJobsGateway();
    program = gateway.program;
    runtime = await runtimeApiOf(program);
  });
  after(() => program.stop());

  const start = (jobId: string, headers: Readonly<Record<string, string>> = {}, body: JsonObject = {}) =>
    ask(program, "POST", `/jobs/${jobId}/runs`, { body, headers });
  const submit = (manifest: JsonObject, headers: Readonly<Record<string, string>> = {}) =>
    ask(runtime, "POST", "/jobs", { body: manifest, headers });
  const latestOf = async (jobId: string) =>
    until(`job ${jobId} has a run`, async () => (await walk(program, `/jobs/${jobId}/runs`))[0] ?? null);

  test("is answered with the ended run, as GET shows it", async () => {
    const answer = await start(await gateway.jobOf(gateway.quick), LONG, { inputs: { topic: "bees" } });
    assertApplied(answer);
    assert.equal(answer.body.status, "completed");
    const { run_id: runId } = answer.body;
    assert.equal(header(answer, "location"), `/api/v1/runs/${runId}`);
    assert.deepEqual(answer.body, await call(program, "GET", `/runs/${runId}`));
  });

  test("on the runtime API is answered with the record of the job, as its detail shows it", async () => {
    // The first ends in the commit that accepts it, the second later.
    for (const [manifest, status] of [
      [quick, "completed"],
      [failing, "failed"],
    ] as const) {
      const answer = await submit(manifest, LONG);
      assertApplied(answer);
      assert.equal(answer.body.status, status);
      const { job } = await call(runtime, "GET", `/jobs/${answer.body.job_id}`);
      assert.deepEqual(answer.body, job);
    }
  });

  test("waits for a job of a bundle, and for the launch of a blueprint, which is added first", async () => {
    const bundle = await ask(runtime, "POST", "/jobs", { body: { bundle_id: gateway.quick }, headers: LONG });
    assertApplied(bundle);
    assert.equal(bundle.body.graph_id, "quick");
    const headers = { ...LONG, "idempotency-key": "launch" };
    const launched = await until("the launch has ended, however slow the machine", async () => {
      const answer = await ask(program, "POST", "/blueprints/csv-report/runs", { body: {}, headers });
      return answer.status === 202 ? null : answer;
    });
    assertApplied(launched);
    assert.deepEqual(launched.body, await call(program, "GET", `/runs/${launched.body.run_id}`));
    const plain = { "idempotency-key": "launch" };
    const kept = await ask(program, "POST", "/blueprints/csv-report/runs", { body: {}, headers: plain });
    assertNotApplied(kept, 202);
    assert.deepEqual(Object.keys(kept.body), ["run_id", "job_id", "status", "warnings"]);
  });

  test("is answered with a refusal at once, and with the end of a run that could not be launched", async () => {
    const refused = await start("job_nobody", LONG);
    assertNotApplied(refused, 404);
    const invalid = await submit({ ...quick, nodes: [] }, LONG);
    assertNotApplied(invalid, 400);
    const jobId = await gateway.jobOf(gateway.held);
    const paused = await start(jobId, { "idempotency-key": "never" });
    await call(program, "PATCH", `/runs/${paused.body.run_id}`, { desired_state: "cancelled" });
    const ended = await start(jobId, { ...LONG, "idempotency-key": "never" });
    assertApplied(ended);
    assert.equal(ended.body.status, "cancelled");
  });

  test("goes on waiting while the run is paused, and is answered when it is cancelled", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    const answering = start(jobId, LONG);
    await untilWaiting(program, 1);
    const { run_id: runId } = await latestOf(jobId);
    await until("it can be paused", async () => {
      const { status } = await ask(program, "PATCH", `/runs/${runId}`, { body: { desired_state: "paused" } });
      return status === 200;
    });
    await until("it is paused", async () => (await latestOf(jobId)).status === "paused");
    assert.equal(await waitingRequests(program), 1);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    const answer = await answering;
    assertApplied(answer);
    assert.equal(answer.body.status, "cancelled");
    await untilWaiting(program, 0);
  });

  test("is answered as without waiting once its time is over", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    const answer = await start(jobId, { ...waiting(1), "idempotency-key": "late" });
    assertNotApplied(answer, 202);
    const again = await start(jobId, { "idempotency-key": "late" });
    assertNotApplied(again, 202);
    assert.equal(again.text, answer.text, "what is kept is the answer without waiting");
    assert.equal(header(again, "idempotency-replayed"), "true");
    const submitted = await submit(held, waiting(1));
    assertNotApplied(submitted, 201);
    assert.equal(submitted.body.status, "pending");
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    const ended = await start(jobId, { ...LONG, "idempotency-key": "late" });
    assertApplied(ended);
    assert.equal(header(ended, "idempotency-replayed"), "true");
    assert.equal(ended.body.run_id, answer.body.run_id);
    assert.equal(ended.body.status, "cancelled");
  });

  test("waits under a key that is used again for the same run, and is told of its end", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    const headers = { ...LONG, "idempotency-key": "twice" };
    const both = [start(jobId, headers), start(jobId, headers)];
    await untilWaiting(program, 2);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    const [first, second] = await Promise.all(both);
    for (const answer of [first!, second!]) assertApplied(answer);
    assert.equal(first!.text, second!.text);
    assert.equal((await walk(program, `/jobs/${jobId}/runs`)).length, 1);
  });

  test("is answered as it was accepted when the run is deleted while it waits", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    const answering = start(jobId, LONG);
    await untilWaiting(program, 1);
    assert.equal((await gateway.remove(jobId, "*", "?force=true")).status, 204);
    // It was cancelled first: which of the two is seen is a matter of the moment.
    const answer = await answering;
    assert.ok(answer.status === 202 || answer.body.status === "cancelled", answer.text);
  });

  test("is forgotten when its client goes away; the run goes on", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    for (const [api, path, body] of [
      [program, `/api/v1/jobs/${jobId}/runs`, {}],
      [runtime, "/api/v1/jobs", held],
    ] as const) {
      const socket = await dial(api);
      socket.write(request("POST", path, ["Prefer: wait=60"], JSON.stringify(body)));
      await untilWaiting(program, 1);
      socket.destroy();
      await untilWaiting(program, 0);
    }
    assert.equal((await latestOf(jobId)).finished_at, null);
  });

  test("holds up those behind it on its connection, and nobody else", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    const socket = await dial(program);
    const body = JSON.stringify({});
    socket.write(request("POST", `/api/v1/jobs/${jobId}/runs`, ["Prefer: wait=60"], body));
    socket.write(request("GET", "/api/v1/health"));
    await untilWaiting(program, 1);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    const [first, second] = await read(socket, 2);
    socket.destroy();
    assert.equal(JSON.parse(first!.body).status, "cancelled");
    assert.equal(JSON.parse(second!.body).status, "ok");
  });

  // Of a run that ends at once the status tells whether it was waited for.
  for (const [prefer, isWaiting] of [
    ["respond-async, WAIT=10;x=y", true],
    ['note="wait=x, y", wait="10"', true],
    ["wait=99999999999999999999", true],
    ["wait", false],
    ["wait=0", false],
    ["wait=-1", false],
    ["wait=1.5, wait=10", false],
    ['wait="10', false],
    [`${"x=1,".repeat(2_000)}wait=nan`, false],
    ["\u00ff\u00fe=;,\u00a0", false],
  ] as const) {
    test(`Prefer: ${prefer.slice(0, 40)} ${isWaiting ? "waits" : "is ignored"}`, async () => {
      const jobId = await gateway.jobOf(gateway.quick);
      const run = await start(jobId, { prefer });
      const job = await submit(quick, { prefer });
      if (isWaiting) for (const answer of [run, job]) assertApplied(answer);
      else {
        assertNotApplied(run, 202);
        assertNotApplied(job, 201);
      }
    });
  }

  test("may be asked for in two Prefer fields, of which the first counts", async () => {
    const jobId = await gateway.jobOf(gateway.quick);
    const socket = await dial(program);
    const fields = ["Prefer: respond-async", "Prefer: wait=10", "Prefer: wait=0"];
    socket.write(request("POST", `/api/v1/jobs/${jobId}/runs`, fields, "{}"));
    const [answer] = await read(socket, 1);
    socket.destroy();
    assert.equal(answer!.status, 200);
  });

  test(`${AT_ONCE} wait at once, and each is answered when its run ends`, async () => {
    const jobId = await gateway.jobOf(gateway.held);
    let answered = 0;
    const answers: Promise<Answer>[] = [];
    // On a slow machine the first ones' time is over before the last ones have begun.
    const untilAllWait = () =>
      until("all of them wait, or have been answered", async () => {
        const count = await waitingRequests(program);
        return count > 0 && count + answered >= answers.length ? count : null;
      });
    while (answers.length < AT_ONCE) {
      answers.push(
        ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers: LONG }).finally(() => answered++),
      );
      if (answers.length % CONNECTED_AT_ONCE === 0) await untilAllWait();
    }
    const waited = await untilAllWait();
    assert.ok(waited > 0);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    const statuses = (await Promise.all(answers)).map(({ status, body }) => `${status} ${body.status}`);
    const counts = { ended: 0, accepted: 0 };
    for (const status of statuses) {
      if (status === "200 cancelled") counts.ended++;
      else if (status === "202 pending") counts.accepted++;
      else assert.fail(status);
    }
    assert.ok(counts.ended > 0);
    assert.equal(counts.ended + counts.accepted, AT_ONCE);
    assert.equal(await waitingRequests(program), 0);
  });
});
