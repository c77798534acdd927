// The routes of runs: acceptance under a key, bodies of every kind, control of many.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sendRaw } from "../../../test/support/api.ts";
import { startCore } from "../../../test/support/core.ts";
import { run } from "../../../test/support/gateway-samples.ts";
import { graph, router, sensor } from "../../../test/support/graphs.ts";
import { startRoutes } from "../../../test/support/routes.ts";
import { until } from "../../../test/support/until.ts";
import { systemRandomness } from "../../app/clock.ts";
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

describe("a run that repeats another", () => {
  test("is given what that one was given, its secrets included, or what the request says instead", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(quick);
    const start = (body: JsonObject) => ask("POST", `/jobs/${jobId}/runs`, { body });
    const first = String((await start({ inputs: { topic: "bees", api_key: "s3cret-key" } })).body.run_id);
    await core.ended(first);
    const again = await start({ rerun_of: first });
    assert.equal(again.status, 202, again.text);
    assert.deepEqual(
      [again.body.rerun_of, again.body.inputs],
      [first, { topic: "bees", api_key: "********" }],
    );
    const stored = await core.find(String(again.body.run_id));
    const given = core.secrets.decryptBody(JSON.parse(stored.inputsJson)).body;
    assert.deepEqual(given, { topic: "bees", api_key: "s3cret-key" });
    const other = await start({ rerun_of: first, inputs: { topic: "wasps" } });
    assert.deepEqual(other.body.inputs, { topic: "wasps" });
    const links = (await ask("GET", `/runs/${first}`)).body.links as Readonly<Record<string, string>>;
    const { items } = (await ask("GET", String(links.reruns).replace("/api/v1", ""))).body;
    assert.deepEqual(
      (items as readonly JsonObject[]).map(({ run_id }) => run_id),
      [other.body.run_id, again.body.run_id],
    );
  });

  test("must repeat a run of the same job", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const one = await core.job(quick);
    const other = await core.job(held);
    const run = await core.accept(other.jobId);
    for (const original of [run.runId, "run_none"]) {
      const refused = await ask("POST", `/jobs/${one.jobId}/runs`, { body: { rerun_of: original } });
      assert.equal(refused.status, 422, refused.text);
      assert.equal((refused.body.errors as readonly JsonObject[])[0]?.path, "/rerun_of");
    }
    assert.equal((await core.records.job(one.jobId))?.latestRun, null);
  });
});

test("the list of runs is filtered, and refuses what is no filter", async () => {
  await using routes = await startRoutes();
  const { core, ask } = routes;
  const { jobId } = await core.job(quick);
  const ended = await core.start(jobId);
  await core.ended(ended.runId);
  const open = await core.start((await core.job(held)).jobId);
  const found = async (query: string) => {
    const { status, text, body } = await ask("GET", `/runs?${query}`);
    assert.equal(status, 200, text);
    return (body.items as readonly JsonObject[]).map(({ run_id }) => run_id);
  };
  assert.deepEqual(await found("status=completed,failed"), [ended.runId]);
  assert.deepEqual(await found("trigger=api"), [open.runId, ended.runId]);
  assert.deepEqual(await found("trigger=event"), []);
  assert.deepEqual(await found(`q=${ended.runId.slice(4).toUpperCase()}`), [ended.runId]);
  assert.deepEqual(await found("since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z"), []);
  for (const query of ["status=completed,never", "status=", "trigger=never", "q=", "since=yesterday"])
    assert.equal((await ask("GET", `/runs?${query}`)).status, 400, query);
});

test("a search that finds nothing among the newest runs goes on with the next page", async () => {
  await using routes = await startRoutes();
  const { core, ask } = routes;
  const oldest = await core.accept((await core.job(graph("needle", [router("in")]))).jobId);
  const { jobId } = await core.job(quick);
  await core.records.write(async (writes) => {
    for (let n = 0; n < 2_000; n++) {
      const ids = { runId: `run_${systemRandomness.id()}`, runtimeJobId: systemRandomness.id() };
      await writes.insertRun(run(1, jobId, ids));
    }
  });
  const { body: first } = await ask("GET", "/runs?q=needle");
  assert.deepEqual(first.items, []);
  const { body: rest } = await ask("GET", `/runs?q=needle&page_token=${first.next_page_token}`);
  assert.deepEqual(
    (rest.items as readonly JsonObject[]).map(({ run_id }) => run_id),
    [oldest.runId],
  );
  assert.equal(rest.next_page_token, null);
});
