// What a run of the runtime API asks people, and its dead letters: the same rules as over the gateway, in this API's words.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { askingGraph } from "../support/asking.ts";
import { makeGivingUp } from "../support/giving-up.ts";
import { answer as answering, executor, graph } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { call, follow, historyOf, jobDetail, request } from "../support/runtime-api.ts";

let program: Program;
before(async () => {
  program = await startRuntimeHere();
});
after(() => program.stop());

async function submit(manifest: JsonObject): Promise<{ readonly jobId: string; readonly runId: string }> {
  const job = await call(program, "POST", "/jobs", manifest);
  return { jobId: String(job.id), runId: String(job.run_id) };
}

async function happens(jobId: string, type: string, times = 1): Promise<void> {
  let count = 0;
  for await (const event of follow(program, jobId)) if (event.type === type && ++count === times) return;
  assert.fail(`${jobId} ended without ${times} ${type}`);
}

const list = async (path: string) =>
  (await call(program, "GET", path)).data as unknown as readonly JsonObject[];

test("a question is listed, answered once, and its answer reaches the worker", async () => {
  const questions = [
    { request_id: "ship", prompt: "Ship\nit?", allowed_decisions: ["yes", "no"] },
    { request_id: "name" },
  ];
  const { jobId, runId } = await submit(askingGraph("asks", questions));
  await happens(jobId, "human_input_requested", 2);
  const found = await list(`/runs/${runId}/human`);
  assert.deepEqual(
    found.map((one) => [one.request_id, one.status, one.run_id]),
    [
      ["ship", "pending", runId],
      ["name", "pending", runId],
    ],
  );
  assert.deepEqual(await list(`/runs/${runId}/human?limit=1`), found.slice(0, 1));
  assert.deepEqual(await call(program, "GET", `/runs/${runId}/human/ship`), found[0]);
  assert.equal(await labelOf(jobId), "Waits for 2 answers of people");

  const respond = (id: string, body: unknown) =>
    request(program, "POST", `/runs/${runId}/human/${id}/response`, body);
  const named = await respond("name", { decision: "troupe", data: { n: 1 } });
  assert.equal(named.status, 200);
  const { responded_at: _at, ...response } = named.body.response as JsonObject;
  assert.deepEqual(response, { decision: "troupe", comment: null, data: { n: 1 }, principal: "anonymous" });
  assert.equal(await labelOf(jobId), "Waits for a person: Ship it?");
  const [summary] = await list("/jobs?limit=1");
  assert.equal(summary?.human_pending, 1);
  assert.deepEqual(
    (await list(`/runs/${runId}/human?status=pending`)).map((one) => one.request_id),
    ["ship"],
  );

  const both = await Promise.all(["yes", "no"].map((decision) => respond("ship", { decision })));
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
  const refused = both.find(({ status }) => status === 409);
  assert.deepEqual(Object.keys(refused?.body ?? {}), ["error"]);
  assert.match(String(refused?.body.error), /by anonymous at .*; the first answer stands\.$/);
  await historyOf(program, jobId);
  const { result } = (await jobDetail(program, jobId)).job;
  const won = both.find(({ status }) => status === 200)?.body.response as JsonObject;
  assert.deepEqual(
    ((result as JsonObject).answers as readonly JsonObject[]).map((one) => [one.request_id, one.decision]),
    [
      ["name", "troupe"],
      ["ship", won.decision],
    ],
  );
  // A caller that lost its reply may ask once more.
  const again = await respond("ship", { decision: won.decision });
  assert.deepEqual([again.status, again.body.response], [200, won]);
});

const labelOf = async (jobId: string) =>
  ((await call(program, "GET", `/jobs/${jobId}/workflow-progress`)).progress as JsonObject).label;

test("what is no answer is refused, and says why", async () => {
  const { jobId, runId } = await submit(
    askingGraph("asks", [{ request_id: "ship", allowed_decisions: ["yes", "no"] }]),
  );
  await happens(jobId, "human_input_requested");
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /^Invalid or missing JSON payload$/],
    [["yes"], /^Invalid or missing JSON payload$/],
    [{}, /^decision must be a string$/],
    [{ decision: 1 }, /^decision must be a string$/],
    [{ decision: "yes", comment: {} }, /^comment must be a string$/],
    [{ decision: "" }, /decision: must not be empty/],
    [{ decision: "maybe" }, /decision: must be one of "yes", "no"\. Nothing was changed\.$/],
    [{ decision: "yes", comment: "c".repeat(4_097) }, /comment: must have at most 4096 characters/],
    [{ decision: "yes", data: "d".repeat(65_536) }, /data: must have at most 65536 characters/],
  ];
  for (const [body, message] of wrong) {
    const answer = await request(program, "POST", `/runs/${runId}/human/ship/response`, body);
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(String(answer.body.error), message);
  }
  for (const [method, path, status] of [
    ["POST", `/runs/${runId}/human/nothing/response`, 404],
    ["GET", `/runs/${runId}/human/nothing`, 404],
    ["GET", "/runs/run_nobody/human", 404],
    ["GET", "/runs/run_nobody/dead-letters", 404],
    ["GET", `/runs/${runId}/human?status=open`, 400],
    ["GET", `/runs/${runId}/dead-letters?status=new`, 400],
    ["GET", `/runs/${runId}/dead-letters/dl_nothing`, 404],
    ["POST", `/runs/${runId}/dead-letters/dl_nothing/retry`, 404],
    ["POST", "/runs/run_nobody/dead-letters/retry", 404],
  ] as const) {
    const body = path.endsWith("/response") ? { decision: "yes" } : undefined;
    const answer = await request(program, method, path, body);
    assert.deepEqual([answer.status, Object.keys(answer.body)], [status, ["error"]], path);
  }
  await call(program, "POST", `/jobs/${jobId}/cancel`);
  const late = await request(program, "POST", `/runs/${runId}/human/ship/response`, { decision: "yes" });
  assert.equal(late.status, 409);
  assert.match(String(late.body.error), /cancelled, which is final/);
});

test("dead letters are listed and sent again, one or all", async (t) => {
  const givingUp = await makeGivingUp();
  t.after(() => givingUp.remove());
  const { jobId, runId } = await submit({
    ...givingUp.manifest,
    initial_inputs: { in: [{ n: 0 }, { n: 1 }, { n: 2 }] },
  });
  await happens(jobId, "message_dead_lettered", 3);
  const letters = await list(`/runs/${runId}/dead-letters`);
  assert.deepEqual(
    letters.map((one) => [(one.message as JsonObject).body, one.status, one.run_id, one.reason]),
    [2, 1, 0].map((n) => [{ n }, "open", runId, "processing_failed"]),
  );
  const one = `/runs/${runId}/dead-letters/${letters[1]?.dead_letter_id}`;
  assert.deepEqual(await call(program, "GET", one), letters[1]);
  await givingUp.fix();
  const answer = await request(program, "POST", `${one}/retry`);
  assert.deepEqual([answer.status, answer.body], [202, { run_id: runId, retried: 1, not_deliverable: 0 }]);
  const again = await request(program, "POST", `${one}/retry`);
  assert.deepEqual([again.status, Object.keys(again.body)], [409, ["error"]]);
  assert.equal((await list(`/runs/${runId}/dead-letters?status=open&limit=5`)).length, 2);
  const all = await call(program, "POST", `/runs/${runId}/dead-letters/retry`);
  assert.deepEqual(all, { run_id: runId, retried: 2, not_deliverable: 0 });
  await happens(jobId, "sandbox_job_completed", 3);
  assert.equal((await list(`/runs/${runId}/dead-letters?status=retried`)).length, 3);
  await call(program, "POST", `/jobs/${jobId}/cancel`);
  assert.equal((await request(program, "POST", `/runs/${runId}/dead-letters/retry`)).status, 409);
});

test("a list that is longer than a page is whole, in order, and as long as is asked for", async () => {
  // Letters to nobody: one command makes all of them.
  const messages = Array.from({ length: 230 }, (_, n) => ({ type: "t", body: { n }, to: "nobody" }));
  const { jobId, runId } = await submit(
    graph("many", [executor("work", answering({ emit_messages: messages }))]),
  );
  await historyOf(program, jobId);
  const numbers = async (query: string) =>
    (await list(`/runs/${runId}/dead-letters${query}`)).map(
      ({ message }) => ((message as JsonObject).body as JsonObject).n,
    );
  const all = Array.from({ length: 230 }, (_, n) => 229 - n);
  assert.deepEqual(await numbers(""), all);
  for (const limit of [0, 1, 100, 101, 230, 500]) {
    assert.deepEqual(await numbers(`?limit=${limit}`), all.slice(0, limit));
  }
});
