// Many runs, or jobs, in one request and one commit: POST /jobs:batch and /jobs/{job_id}/runs:batch.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  pathsOf,
  runtimeApiOf,
  walk,
} from "../support/gateway-api.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { type JobsGateway, startJobsGateway } from "../support/jobs-gateway.ts";
import type { Program } from "../support/program.ts";
import { LONG, untilWaiting, waiting } from "../support/waiting.ts";

const MAX = 1_000;
const quick = graph("quick", [router("in")]);
const held = graph("held", [sensor("wait")]);

const itemsOf = ({ body }: Answer) => body.items as readonly JsonObject[];
const statusesOf = (answer: Answer) => itemsOf(answer).map(({ status }) => status);
const repeated = (count: number, item: JsonObject) => Array.from({ length: count }, () => item);

let gateway: JobsGateway;
let program: Program;
let runtime: Program;
before(async () => {
  gateway = await startJobsGateway();
  program = gateway.program;
  runtime = await runtimeApiOf(program);
});
after(() => program.stop());

describe("a batch of jobs on the runtime API", () => {
  const send = (items: readonly JsonValue[], headers: Readonly<Record<string, string>> = {}) =>
    ask(runtime, "POST", "/jobs:batch", { body: { items }, headers });

  test("answers each item with the status, and the error, that it would have had alone", async () => {
    const items = [
      quick,
      {},
      [],
      { ...quick, nodes: [] },
      { bundle_id: "none" },
      { bundle_id: gateway.quick },
    ];
    const answer = await send(items);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(statusesOf(answer), [201, 400, 400, 400, 404, 201]);
    for (const [at, item] of itemsOf(answer).entries()) {
      const alone = await ask(runtime, "POST", "/jobs", { body: items[at] });
      assert.equal(item.status, alone.status);
      assert.equal(item.error, alone.body.error);
      if (item.id !== undefined) {
        const { job } = await call(runtime, "GET", `/jobs/${item.id}`);
        assert.equal((job as JsonObject).run_id, item.run_id);
      }
    }
  });

  test("that waits carries the record of each job that has ended; the others are as accepted", async () => {
    const answer = await send([quick, held, {}, quick], waiting(1));
    assert.equal(answer.headers.get("preference-applied"), null, "not everything has ended");
    assert.deepEqual(statusesOf(answer), [200, 201, 400, 200]);
    const [first, open] = itemsOf(answer);
    const detail = await call(runtime, "GET", `/jobs/${first!.id}`);
    assert.deepEqual(first!.job, detail.job);
    assert.equal(open!.job, undefined);
    await call(runtime, "POST", `/jobs/${open!.id}/cancel`);
  });

  test(`of ${MAX} jobs completes them all; one more is refused whole`, async () => {
    const answer = await send(repeated(MAX, quick), LONG);
    assert.equal(answer.headers.get("preference-applied"), "wait");
    assert.deepEqual(
      itemsOf(answer).map(({ status, job }) => `${status} ${(job as JsonObject | undefined)?.status}`),
      repeated(MAX, {}).map(() => "200 completed"),
    );
    assert.equal(new Set(itemsOf(answer).map(({ id }) => id)).size, MAX);
    const tooMany = await send(repeated(MAX + 1, { ...quick, graph_id: "too-many" }));
    assert.equal(tooMany.status, 400);
    assert.match(String(tooMany.body.error), /at most 1000/);
    const { data } = await call(runtime, "GET", `/jobs?limit=5`);
    assert.ok((data as readonly JsonObject[]).every(({ graph_id: id }) => id !== "too-many"));
  });

  test("is refused whole when it is no list of items; an empty one has nothing to say", async () => {
    for (const body of [{}, { items: {} }, { items: 5 }, { items: null }, [], "x"]) {
      assert.equal((await ask(runtime, "POST", "/jobs:batch", { body })).status, 400, JSON.stringify(body));
    }
    const large = { items: [{ ...quick, metadata: { text: "x".repeat(6 * 1024 * 1024) } }] };
    assert.equal((await ask(runtime, "POST", "/jobs:batch", { body: large })).status, 413);
    assert.deepEqual(itemsOf(await send([])), []);
    assert.deepEqual(itemsOf(await send([], LONG)), []);
  });

  test("belongs to the trace of its caller", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const answer = await send([quick, quick], { ...LONG, traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    for (const { job } of itemsOf(answer)) assert.equal((job as JsonObject).trace_id, traceId);
  });

  test("has a path of its own beside the jobs", async () => {
    for (const path of ["/jobs:batch", "/jobs:batches", "/jobs/:batch"]) {
      assert.equal((await ask(runtime, "GET", path)).status, 404, path);
    }
    assert.equal((await ask(runtime, "POST", "/jobs:other", { body: {} })).status, 404);
  });
});

describe("a batch of runs on the gateway", () => {
  const path = (jobId: string) => `/jobs/${jobId}/runs:batch`;
  const send = (jobId: string, items: readonly JsonValue[], headers: Readonly<Record<string, string>> = {}) =>
    ask(program, "POST", path(jobId), { body: { items }, headers });
  const runsOf = (jobId: string) => walk(program, `/jobs/${jobId}/runs`);

  test("answers each item with the status, and the problem, that it would have had alone", async () => {
    const jobId = await gateway.jobOf(gateway.quick);
    const items = [
      { inputs: { n: 1 } },
      { input: {} },
      { inputs: { $entrypoints: { nobody: [] } } },
      { config_overrides: { a: 1 } },
      { inputs: 5 },
      5,
      null,
      [],
      {},
    ];
    const answer = await send(jobId, items);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers.get("vary"), "Prefer");
    assert.deepEqual(statusesOf(answer), [202, 422, 422, 422, 422, 422, 422, 422, 202]);
    for (const [at, { status, error }] of itemsOf(answer).entries()) {
      if (status === 202) continue;
      const alone = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: items[at] });
      const requestId = answer.headers.get("x-request-id");
      assert.deepEqual(error, { ...alone.body, request_id: requestId });
    }
    const ids = itemsOf(answer).flatMap(({ id }) => (id === undefined ? [] : [id]));
    const runs = await runsOf(jobId);
    assert.deepEqual(runs.map(({ run_id: id }) => id).toReversed(), ids, "in the order of the items");
    const { latest_run: latest } = (await gateway.get(jobId)).body;
    assert.equal((latest as JsonObject).run_id, ids.at(-1));
  });

  test("that waits carries each run that has ended", async () => {
    const jobId = await gateway.jobOf(gateway.quick);
    const answer = await send(jobId, [{ inputs: { n: 1 } }, { x: 1 }, { inputs: { n: 2 } }], LONG);
    assert.equal(answer.headers.get("preference-applied"), "wait");
    assert.deepEqual(statusesOf(answer), [200, 422, 200]);
    const runs = itemsOf(answer).flatMap(({ run }) => (run === undefined ? [] : [run as JsonObject]));
    assert.deepEqual(
      runs.map(({ inputs }) => inputs),
      [{ n: 1 }, { n: 2 }],
    );
    for (const run of runs) assert.deepEqual(run, await call(program, "GET", `/runs/${run.run_id}`));
  });

  test("is answered as accepted once its time is over, and waits again under its key", async () => {
    const jobId = await gateway.jobOf(gateway.held);
    const late = await send(jobId, [{}, { x: 1 }, {}], { ...waiting(1), "idempotency-key": "batch" });
    assert.equal(late.headers.get("preference-applied"), null);
    assert.deepEqual(statusesOf(late), [202, 422, 202]);
    const kept = await send(jobId, [{}, { x: 1 }, {}], { "idempotency-key": "batch" });
    assert.deepEqual(kept.body, late.body);
    assert.equal(kept.headers.get("idempotency-replayed"), "true");
    const other = await send(jobId, [{}], { "idempotency-key": "batch" });
    assertProblem(other, 409, "idempotency_key_reused");
    const again = send(jobId, [{}, { x: 1 }, {}], { ...LONG, "idempotency-key": "batch" });
    await untilWaiting(program, 1);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    const ended = await again;
    assert.equal(ended.headers.get("preference-applied"), "wait");
    assert.equal(ended.headers.get("idempotency-replayed"), "true");
    assert.deepEqual(statusesOf(ended), [200, 422, 200]);
    assert.deepEqual(
      itemsOf(ended).map(({ id }) => id),
      itemsOf(late).map(({ id }) => id),
    );
    assert.equal((await runsOf(jobId)).length, 2);
  });

  test(`of ${MAX} runs completes them all; one more is refused whole`, async () => {
    const jobId = await gateway.jobOf(gateway.quick);
    const items = Array.from({ length: MAX }, (_, n) => ({ inputs: { n } }));
    const answer = await send(jobId, items, LONG);
    assert.deepEqual(new Set(statusesOf(answer)), new Set([200]));
    assert.deepEqual(
      itemsOf(answer).map(
        ({ run }) => `${(run as JsonObject).status} ${JSON.stringify((run as JsonObject).inputs)}`,
      ),
      items.map(({ inputs }) => `completed ${JSON.stringify(inputs)}`),
    );
    const other = await gateway.jobOf(gateway.quick);
    const tooMany = await send(other, repeated(MAX + 1, {}));
    assertProblem(tooMany, 422, "validation_failed");
    assert.deepEqual(pathsOf(tooMany), ["/items"]);
    assert.deepEqual(await runsOf(other), []);
  });

  test("is refused whole when the job is not there, or the body is no list of items", async () => {
    const jobId = await gateway.jobOf(gateway.quick);
    assertProblem(await send("job_nobody", [{}]), 404, "job_not_found");
    for (const body of [{}, { items: {} }, { items: null }, { items: [], more: 1 }]) {
      const answer = await ask(program, "POST", path(jobId), { body });
      assertProblem(answer, 422, "validation_failed");
    }
    const large = { items: [{ inputs: { text: "x".repeat(6 * 1024 * 1024) } }] };
    assertProblem(await ask(program, "POST", path(jobId), { body: large }), 413, "payload_too_large");
    assert.deepEqual(itemsOf(await send(jobId, [])), []);
    assert.deepEqual(await runsOf(jobId), []);
  });

  test("has a path of its own: what it takes is said, and what is beside it is not there", async () => {
    const jobId = await gateway.jobOf(gateway.quick);
    const answer = await ask(program, "GET", path(jobId));
    assertProblem(answer, 405, "method_not_allowed");
    assert.equal(answer.headers.get("allow"), "POST");
    assertProblem(await ask(program, "POST", `/jobs/${jobId}/runs:other`, { body: {} }), 404, "not_found");
    const runs = await ask(program, "DELETE", `/jobs/${jobId}/runs`);
    assert.deepEqual(runs.headers.get("allow")?.split(", ").toSorted(), ["GET", "HEAD", "POST"]);
  });
});
