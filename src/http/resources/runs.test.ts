// The routes of runs: acceptance under a key, bodies of every kind, control of many.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sendRaw } from "../../../test/support/api.ts";
import { startCore } from "../../../test/support/core.ts";
import { graph, router, sensor } from "../../../test/support/graphs.ts";
import { startRoutes } from "../../../test/support/routes.ts";
import { until } from "../../../test/support/until.ts";
import type { JsonObject } from "../../engine/json.ts";

const quick = graph("quick", [router("in")]);
const held = graph("held", [sensor("wait")]);

describe("POST /jobs/{job_id}/runs", () => {
  test("answers with the run as a GET would have shown it at that moment, and launches it", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(quick);
    const inputs = { topic: "bees", näme: [1, null, 'quote"s', "\u2028"] };
    const accepted = await ask("POST", `/jobs/${jobId}/runs`, { body: { inputs } });
    assert.equal(accepted.status, 202, accepted.text);
    assert.deepEqual([accepted.body.status, accepted.body.inputs], ["pending", inputs]);
    const runId = String(accepted.body.run_id);
    await core.ended(runId);
    const { body } = await ask("GET", `/runs/${runId}`);
    assert.deepEqual(Object.keys(body), Object.keys(accepted.body));
    assert.deepEqual([body.status, body.inputs], ["completed", inputs]);
    for (const name of ["run_id", "job_id", "created_at", "trace_id", "trigger", "links"]) {
      assert.deepEqual(body[name], accepted.body[name], name);
    }
  });

  test("50 times at once with one key makes one run, launches it once, and answers 50 times the same", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(quick);
    const given = { body: { inputs: { n: 1 } }, headers: { "idempotency-key": "once" } };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => ask("POST", `/jobs/${jobId}/runs`, given)),
    );
    assert.deepEqual([...new Set(answers.map(({ status, text }) => `${status} ${text}`))].length, 1);
    assert.equal(answers.filter(({ headers }) => headers.has("idempotency-replayed")).length, 49);
    const runs = await core.records.recentRuns(jobId, 5);
    assert.equal(runs.length, 1);
    await core.ended(runs[0]!.runId);
    assert.deepEqual(core.plans.begun, [jobId]);
  });

  test("whose process ends between the effect and the answer is answered by the next one, with the same run", async () => {
    await using first = await startRoutes();
    const { jobId } = await first.core.job(quick);
    const given = { body: { inputs: {} }, headers: { "idempotency-key": "k" } };
    // The launch is what this process does not get to.
    await first.core.launcher.stop();
    const accepted = await first.ask("POST", `/jobs/${jobId}/runs`, given);
    await using routes = await startRoutes(await startCore(await first.core.end()));
    await routes.core.recover();
    const again = await routes.ask("POST", `/jobs/${jobId}/runs`, given);
    assert.equal(again.text, accepted.text);
    assert.equal((await routes.core.ended(String(again.body.run_id))).status, "completed");
    const runs = await routes.core.records.recentRuns(jobId, 5);
    assert.equal(runs.length, 1);
  });

  test("of a job that is not there is told so before anything of the body is looked at but its form", async () => {
    await using routes = await startRoutes();
    const { status, body } = await routes.ask("POST", "/jobs/job_0/runs", { body: { config_overrides: {} } });
    assert.deepEqual([status, body.code], [404, "job_not_found"]);
  });

  for (const [what, body, status] of [
    ["a list", "[]", 422],
    ["null", "null", 422],
    ["inputs of null", '{"inputs":null}', 422],
    ["no JSON", "{", 400],
    ["unknown fields", '{"input":{}}', 422],
  ] as const) {
    test(`with ${what} is refused with ${status}, and makes no run`, async () => {
      await using routes = await startRoutes();
      const { jobId } = await routes.core.job(quick);
      assert.equal((await routes.ask("POST", `/jobs/${jobId}/runs`, { body })).status, status);
      assert.equal((await routes.core.records.job(jobId))?.latestRun, null);
    });
  }

  test("without a body, or with an empty one, is no internal error", async () => {
    await using routes = await startRoutes();
    const { jobId } = await routes.core.job(quick);
    for (const headers of [{}, { "content-type": "application/json" }]) {
      const { status } = await routes.ask("POST", `/jobs/${jobId}/runs`, { headers });
      assert.ok(status === 202 || status === 422, String(status));
    }
  });

  test("with the key given twice is refused", async () => {
    await using routes = await startRoutes();
    const { jobId } = await routes.core.job(quick);
    const lines = [
      `POST /api/v1/jobs/${jobId}/runs HTTP/1.1`,
      "Host: localhost",
      "Content-Type: application/json",
      "Content-Length: 2",
      "Idempotency-Key: a",
      "Idempotency-Key: b",
    ];
    const answer = await sendRaw(routes.app, `${lines.join("\r\n")}\r\n\r\n{}`);
    assert.equal(answer.status, 400, answer.body);
    assert.match(answer.body, /Idempotency-Key/i);
  });
});

describe("POST /jobs/{job_id}/cancel, pause and resume", () => {
  test("take a key: the same answer again, though nothing is left to cancel", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(held);
    const run = await core.accept(jobId);
    const headers = { "idempotency-key": "k" };
    const first = await ask("POST", `/jobs/${jobId}/cancel`, { headers });
    assert.deepEqual(first.body, { job_id: jobId, runs: [{ run_id: run.runId, status: "cancelled" }] });
    const again = await ask("POST", `/jobs/${jobId}/cancel`, { headers });
    assert.deepEqual([again.status, again.text], [200, first.text]);
    const fresh = await ask("POST", `/jobs/${jobId}/cancel`);
    assert.deepEqual([fresh.status, fresh.body.code], [409, "invalid_transition"]);
    const other = await ask("POST", `/jobs/${jobId}/pause`, { headers });
    assert.equal(other.status, 409, "the key belongs to another path");
    assert.equal(other.body.code, "invalid_transition");
  });

  test("are promised once they are on disk: a retry of one that the runtime could not take then is the same answer, and kept", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(held);
    const run = await core.start(jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    core.broken.journal = true;
    await core.start(jobId);
    await until("a store that takes nothing", () => core.engine.unavailable !== null);
    const headers = { "idempotency-key": "k" };
    const first = await ask("POST", `/jobs/${jobId}/cancel`, { headers });
    assert.deepEqual([first.status, first.body.code], [503, "unavailable"]);
    core.broken.journal = false;
    await until("a store that takes writes", () => core.engine.unavailable === null);
    const again = await ask("POST", `/jobs/${jobId}/cancel`, { headers });
    assert.deepEqual([again.status, again.headers.get("idempotency-replayed")], [200, "true"]);
    const shown = again.body.runs as readonly JsonObject[];
    assert.deepEqual(
      shown.map(({ status }) => status),
      ["cancelled", "cancelled"],
    );
    for (const { run_id } of shown) assert.equal((await core.find(String(run_id))).status, "cancelled");
  });

  test("take no fields", async () => {
    await using routes = await startRoutes();
    const { jobId } = await routes.core.job(held);
    const run = await routes.core.accept(jobId);
    const answer = await routes.ask("POST", `/jobs/${jobId}/cancel`, { body: { force: true } });
    assert.deepEqual([answer.status, answer.body.code], [422, "validation_failed"]);
    assert.equal((await routes.core.find(run.runId)).status, "pending");
  });
});

test("a list of runs is refused for a job that is not there, and shows nothing of one that was deleted", async () => {
  await using routes = await startRoutes();
  const { core, ask } = routes;
  const job = await core.job(quick);
  const run = await core.start(job.jobId);
  await core.ended(run.runId);
  assert.equal((await ask("GET", "/jobs/job_0/runs")).body.code, "job_not_found");
  await core.definitions.delete(job, { force: false });
  assert.equal((await ask("GET", `/jobs/${job.jobId}/runs`)).body.code, "job_not_found");
  assert.deepEqual((await ask("GET", `/runs?job_id=${job.jobId}`)).body, {
    items: [],
    next_page_token: null,
  });
  assert.equal((await ask("GET", `/runs/${run.runId}`)).body.code, "run_not_found");
});
