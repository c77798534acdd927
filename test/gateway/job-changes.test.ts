// Jobs: change and delete, with If-Match. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import {
  ask,
  assertProblem,
  completed,
  createJob,
  ended,
  happens,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startJobsGateway } from "../support/jobs-gateway.ts";

const { program, quick, held, create, jobOf, get, remove, patch } = await startJobsGateway();
after(() => program.stop());

describe("PATCH /jobs/{job_id}", () => {
  test('"JSON merge patch of name and resolved_configuration": null takes away, objects merge, the rest replaces', async () => {
    const jobId = await jobOf(quick, {
      resolved_configuration: { keep: 1, drop: 2, deep: { a: 1, b: 2 }, list: [1, 2] },
    });
    const changed = await patch(
      jobId,
      { name: "New", resolved_configuration: { drop: null, deep: { b: null, c: 3 }, list: [3] } },
      "*",
    );
    assert.equal(changed.status, 200, changed.text);
    assert.equal(changed.body.name, "New");
    assert.deepEqual(changed.body.resolved_configuration, { keep: 1, deep: { a: 1, c: 3 }, list: [3] });
    assert.equal(changed.body.revision, 2);
    const found = (await get(jobId)).body;
    assert.deepEqual({ ...found, ...changed.body }, found);
    const emptied = await patch(jobId, { resolved_configuration: null }, "*");
    assert.deepEqual(emptied.body.resolved_configuration, {});
    assert.equal(emptied.body.name, "New", "what a patch does not mention stays");
  });

  test('"428: a conditional update or delete lacks If-Match", and nothing is changed', async () => {
    const jobId = await jobOf(quick, { name: "before" });
    assertProblem(await patch(jobId, { name: "after" }), 428, "precondition_required");
    assertProblem(await remove(jobId), 428, "precondition_required");
    assert.equal((await get(jobId)).body.name, "before");
  });

  test("a creation and a change answer with the ETag that a GET answers, and so does a refusal", async () => {
    const created = await create({ bundle_id: quick });
    const jobId = String(created.body.job_id);
    const tag = (answer: { readonly headers: Headers }) => answer.headers.get("etag") ?? "";
    assert.equal(tag(created), tag(await get(jobId)));
    const changed = await patch(jobId, { name: "Changed" }, tag(created));
    assert.equal(changed.status, 200);
    assert.equal(tag(changed), tag(await get(jobId)));
    for (const never of ['"1"', '"2"', '"2-x"', tag(created)]) {
      const refused = await patch(jobId, { name: "No" }, never);
      assert.deepEqual([refused.status, tag(refused)], [412, tag(changed)], never);
    }
  });

  test('"412: If-Match holds a stale ETag", with the current one in the response header', async () => {
    const created = await create({ bundle_id: quick });
    const jobId = String(created.body.job_id);
    const old = created.headers.get("etag") ?? "";
    const changed = await patch(jobId, { name: "second" }, old);
    assert.equal(changed.status, 200, "the ETag of the creation is good");
    const current = changed.headers.get("etag") ?? "";
    assert.notEqual(current, old);
    for (const answer of [await patch(jobId, { name: "third" }, old), await remove(jobId, old)]) {
      assertProblem(answer, 412, "precondition_failed");
      assert.equal(answer.headers.get("etag"), current);
    }
    assertProblem(await patch(jobId, { name: "third" }, `W/${current}`), 412, "precondition_failed");
    assert.equal((await get(jobId)).body.name, "second");
    const seen = (await get(jobId)).headers.get("etag") ?? "";
    assert.equal((await patch(jobId, { name: "third" }, seen)).status, 200, "that of a GET is good");
  });

  test("of two updates with one ETag at the same moment, one lands and the other gets 412", async () => {
    const created = await create({ bundle_id: quick });
    const etag = created.headers.get("etag") ?? "";
    const names = Array.from({ length: 10 }, (_, i) => `name ${i}`);
    const jobId = String(created.body.job_id);
    const answers = await Promise.all(names.map((name) => patch(jobId, { name }, etag)));
    const landed = answers.filter(({ status }) => status === 200);
    assert.equal(landed.length, 1);
    for (const answer of answers)
      if (answer.status !== 200) assertProblem(answer, 412, "precondition_failed");
    const { name, revision } = (await get(jobId)).body;
    assert.deepEqual([name, revision], [landed[0]?.body.name, 2]);
  });

  test("a patch with unknown fields, or values that are none, changes nothing", async () => {
    const jobId = await jobOf(quick, { name: "as it was" });
    for (const body of [{ bundle_id: held }, { name: 7 }, { name: "" }, { status: "ready" }, [], "x"]) {
      assertProblem(await patch(jobId, body, "*"), 422, "validation_failed");
    }
    const { name, revision } = (await get(jobId)).body;
    assert.deepEqual([name, revision], ["as it was", 1]);
  });
});

describe("DELETE /jobs/{job_id}", () => {
  test('"204; 409 active_runs unless force=true, which cancels them first"', async () => {
    const jobId = await jobOf(held);
    const runId = await startRun(program, jobId);
    await happens(program, runId, "agent_started");
    const stream = ended(program, runId).catch(() => null);
    assertProblem(await remove(jobId, "*"), 409, "active_runs");
    assertProblem(await remove(jobId, "*", "?force=false"), 409, "active_runs");
    assert.equal((await get(jobId)).status, 200);
    const forced = await remove(jobId, "*", "?force=true");
    assert.deepEqual([forced.status, forced.text], [204, ""]);
    await stream;
    assertProblem(await get(jobId), 404, "job_not_found");
    assertProblem(await ask(program, "GET", `/runs/${runId}`), 404, "run_not_found");
  });

  test("a deleted job takes its runs, events and files along", async () => {
    const jobId = await createJob(
      program,
      graph("files", [executor("in", "echo x > $SVC_OUTPUT_DIR/a.txt")]),
    );
    const { run } = await completed(program, jobId);
    const [file] = await walk(program, `/runs/${run.run_id}/artifacts?evidence=false`);
    assert.equal((await ask(program, "GET", String(file?.url))).status, 200);
    assert.equal((await remove(jobId, "*")).status, 204);
    for (const path of [
      "",
      "/events",
      "/events/stream",
      "/stream",
      "/result",
      "/logs",
      "/timeline",
      "/artifacts",
      "/outputs",
    ]) {
      assertProblem(await ask(program, "GET", `/runs/${run.run_id}${path}`), 404, "run_not_found");
    }
    assertProblem(await ask(program, "GET", String(file?.url)), 404, "run_not_found");
    assert.ok(!(await walk(program, "/runs")).some(({ run_id }) => run_id === run.run_id));
    assertProblem(await remove(jobId, "*"), 404, "job_not_found");
  });
});
