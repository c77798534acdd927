// What runs need people for, with the client and the real program.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askingGraph } from "../../test/support/asking.ts";
import { zipOf } from "../../test/support/bundle-files.ts";
import { makeGivingUp } from "../../test/support/giving-up.ts";
import { startGatewayHere } from "../../test/support/in-process.ts";
import type { Program } from "../../test/support/program.ts";
import { TroupeClient, type TroupeProblem } from "../src/index.ts";

let program: Program;
let client: TroupeClient;
before(async () => {
  program = await startGatewayHere({ command: "gateway" });
  client = new TroupeClient({ baseUrl: program.url });
});
after(async () => void (await program.stop()));

async function startRun(manifest: Parameters<typeof zipOf>[0][string]): Promise<string> {
  const { bundle_id } = await client.bundles.upload(await zipOf({ "manifest.json": manifest }));
  const { job_id } = await client.jobs.create({ bundle_id });
  return (await client.runs.start(job_id)).run_id;
}

async function happens(runId: string, wanted: string): Promise<void> {
  for await (const { type } of client.runs.follow(runId)) if (type === wanted) return;
  assert.fail(`run ${runId} ended without ${wanted}`);
}

test("what a run asks is found, seen on its channel, and answered once", async () => {
  const questions = [{ request_id: "ship", prompt: "Ship it?", allowed_decisions: ["yes", "no"] }];
  const runId = await startRun(askingGraph("asking", questions));
  for await (const { channels } of client.runs.stream(runId, { channels: ["human"] })) {
    if (channels.human?.request_id === "ship") break;
  }
  const [request] = await Array.fromAsync(client.runs.humanRequests(runId, { status: "pending" }));
  assert.deepEqual([request?.prompt, request?.status], ["Ship it?", "pending"]);
  assert.equal((await client.runs.get(runId)).progress.human_pending, 1);
  await assert.rejects(client.runs.answer(runId, "ship", { decision: "maybe" }), (error: TroupeProblem) => {
    assert.equal(error.code, "validation_failed");
    assert.equal(error.errors[0]?.path, "/decision");
    return true;
  });
  const answered = await client.runs.answer(runId, "ship", { decision: "yes", data: { at: 3 } });
  assert.deepEqual([answered.response?.decision, answered.response?.data], ["yes", { at: 3 }]);
  await assert.rejects(client.runs.answer(runId, "ship", { decision: "no" }), { code: "already_answered" });
  assert.equal((await client.runs.wait(runId)).status, "completed");
  assert.deepEqual(await client.runs.humanRequest(runId, "ship"), answered);
  await assert.rejects(client.runs.humanRequest(runId, "other"), { code: "human_request_not_found" });
});

test("dead letters are found and sent again, one or all", async (t) => {
  const givingUp = await makeGivingUp();
  t.after(() => givingUp.remove());
  const runId = await startRun({ ...givingUp.manifest, initial_inputs: { in: [{ n: 0 }] } });
  await happens(runId, "message_dead_lettered");
  const [letter] = await Array.fromAsync(client.runs.deadLetters(runId, { status: "open" }));
  const id = letter?.dead_letter_id ?? "";
  assert.deepEqual(await client.runs.deadLetter(runId, id), letter);
  await givingUp.fix();
  assert.equal((await client.runs.retryDeadLetter(runId, id, { body: { n: 1 } })).retried, 1);
  assert.deepEqual((await client.runs.deadLetter(runId, id)).change, {
    principal: "anonymous",
    body: { n: 1 },
  });
  await assert.rejects(client.runs.retryDeadLetter(runId, id), { code: "already_retried" });
  await happens(runId, "sandbox_job_completed");
  assert.equal((await client.runs.retryDeadLetters(runId)).retried, 0);
  await client.runs.cancel(runId);
  await assert.rejects(client.runs.retryDeadLetters(runId), { code: "run_ended" });
});
