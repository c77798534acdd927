// Questions of workers to people over the gateway: how a run shows that it waits, who may answer what, and that an answer
// counts once, however many give one and whenever the program dies.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { JsonObject } from "../../src/engine/json.ts";
import { Random } from "../simulation/random.ts";
import { askingGraph, type Question } from "../support/asking.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  frames,
  happens,
  pathsOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const ship: Question = {
  request_id: "ship",
  prompt: "Ship it?",
  allowed_decisions: ["yes", "no"],
  default_action: "no",
};

const respond = (
  program: Program,
  runId: string,
  requestId: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  ask(program, "POST", `/runs/${runId}/human/${encodeURIComponent(requestId)}/response`, { body, headers });

/** Starts a run of a worker that asks, and waits until it has. @returns the run's id */
async function asking(program: Program, ...questions: readonly Question[]): Promise<string> {
  const runId = await startRun(program, await createJob(program, askingGraph("asking", questions)));
  let count = 0;
  await happens(
    program,
    runId,
    ({ type }) => type === "human_input_requested" && ++count === questions.length,
  );
  return runId;
}

/** The answers that the worker got. */
async function received(program: Program, runId: string): Promise<readonly JsonObject[]> {
  const { run } = await ended(program, runId);
  assert.equal(run.status, "completed", JSON.stringify(run.failure));
  return (run.result as JsonObject).answers as readonly JsonObject[];
}

const labelOf = (run: JsonObject) => (run.progress as JsonObject).label;

describe("a run that asks a person", () => {
  let program: Program;
  before(async () => {
    program = await startGatewayHere();
  });
  after(() => program.stop());

  test("shows what it waits for, takes the answer, and hands it to its worker", async () => {
    const runId = await asking(program, ship);
    const asked = {
      request_id: "ship",
      run_id: runId,
      agent_id: "asker",
      prompt: "Ship it?",
      allowed_decisions: ["yes", "no"],
      data_schema: null,
      status: "pending",
      default_action: "no",
      expires_at: null,
      response: null,
    };
    const run = await call(program, "GET", `/runs/${runId}`);
    assert.equal(labelOf(run), "Waits for a person: Ship it?");
    assert.equal((run.progress as JsonObject).human_pending, 1);
    assert.equal((run.counts as JsonObject).human_pending, 1);
    const [listed] = await walk(program, `/runs?job_id=${run.job_id}`);
    assert.deepEqual(listed?.progress, run.progress);
    const progress = await call(program, "GET", `/jobs/${run.job_id}/workflow-progress`);
    assert.equal(labelOf(progress), "Waits for a person: Ship it?");
    const [first] = await walk(program, String((run.links as JsonObject).human));
    const { created_at: createdAt, ...rest } = first ?? {};
    assert.deepEqual(rest, asked);
    assert.ok(Date.parse(String(createdAt)) <= Date.now());
    assert.deepEqual(await call(program, "GET", `/runs/${runId}/human/ship`), first);
    for (const query of ["", `?run_id=${runId}`, `?job_id=${run.job_id}&status=pending`])
      assert.deepEqual(await walk(program, `/human${query}`), [first], query);

    const body = { decision: "yes", comment: "at last", data: { at: ["noon", null] } };
    const answer = await respond(program, runId, "ship", body);
    assert.equal(answer.status, 200, answer.text);
    const { responded_at: at, ...response } = answer.body.response as JsonObject;
    assert.deepEqual(response, { ...body, principal: "anonymous" });
    assert.ok(Date.parse(String(at)) >= Date.parse(String(createdAt)));
    assert.equal(answer.body.status, "answered");

    const got = { request_id: "ship", status: "answered", ...response, responded_at: at };
    assert.deepEqual(await received(program, runId), [got]);
    const end = await call(program, "GET", `/runs/${runId}`);
    assert.deepEqual([labelOf(end), (end.progress as JsonObject).human_pending], ["Completed", 0]);
    assert.deepEqual(await call(program, "GET", `/runs/${runId}/human/ship`), answer.body);
    assert.deepEqual(await walk(program, "/human"), []);
    assert.deepEqual(await walk(program, "/human?status=answered"), [answer.body]);
  });

  test("holds an answer's data to the schema of the question, and loses nothing of what it refuses", async () => {
    const schema = {
      type: "object",
      required: ["version"],
      properties: { version: { type: "integer", minimum: 1 }, note: { type: "string" } },
      additionalProperties: false,
    };
    const runId = await asking(program, { ...ship, data_schema: schema });
    const [asked] = await walk(program, `/runs/${runId}/human`);
    assert.deepEqual(asked?.data_schema, schema);
    const refused = async (body: JsonObject, ...expected: [string, string][]) => {
      const answer = await respond(program, runId, "ship", body);
      assertProblem(answer, 422, "validation_failed");
      const errors = answer.body.errors as readonly { path: string; code: string; message: string }[];
      assert.deepEqual(
        errors.map(({ path, message }) => [path, message]),
        expected,
      );
    };
    await refused({ decision: "yes" }, ["/data", "must be object"]);
    await refused(
      { decision: "maybe", data: { note: 1, other: true } },
      ["/decision", 'must be one of "yes", "no"'],
      ["/data/version", "is required and has no value"],
      ["/data/other", "is no field that the schema knows"],
      ["/data/note", "must be string"],
    );
    assert.deepEqual(await walk(program, `/runs/${runId}/human`), [asked]);
    const data = { version: 3 };
    assert.equal((await respond(program, runId, "ship", { decision: "yes", data })).status, 200);
    assert.deepEqual((await received(program, runId))[0]?.data, data);
  });

  test("is followed on the channel for people: the question, the answer, the end of a time", async () => {
    const quick = { request_id: "quick", prompt: "Now?", timeout_seconds: 0.2, default_action: "later" };
    const runId = await asking(program, ship, quick);
    await happens(program, runId, "human_input_timed_out");
    await respond(program, runId, "ship", { decision: "no" });
    const seen: unknown[] = [];
    for await (const { event, data } of frames(program, `/runs/${runId}/stream?channels=human`)) {
      const { human } = data.channels as { human?: JsonObject };
      if (human === undefined) continue;
      const { decision, principal } = (human.response ?? {}) as JsonObject;
      seen.push([event, human.request_id, human.status, decision ?? null, principal ?? null]);
    }
    assert.deepEqual(seen, [
      ["human_input_requested", "ship", "pending", null, null],
      ["human_input_requested", "quick", "pending", null, null],
      ["human_input_timed_out", "quick", "timed_out", "later", null],
      ["human_input_answered", "ship", "answered", "no", "anonymous"],
    ]);
    const late = await respond(program, runId, "quick", { decision: "now" });
    assertProblem(late, 409, "human_request_timed_out");
    assert.match(String(late.body.detail), /"later"/);
  });

  test("lists its questions a page at a time, and by status", async () => {
    const questions = Array.from({ length: 5 }, (_, n) => ({ request_id: `q${n}`, prompt: `${n}?` }));
    const runId = await asking(program, ...questions);
    const label = labelOf(await call(program, "GET", `/runs/${runId}`));
    assert.equal(label, "Waits for 5 answers of people");
    await respond(program, runId, "q1", { decision: "any", comment: null });
    const ids = async (query: string) =>
      (await walk(program, `/runs/${runId}/human${query}`, 1)).map((one) => one.request_id);
    assert.deepEqual(await ids(""), ["q0", "q1", "q2", "q3", "q4"]);
    assert.deepEqual(await ids("?status=pending"), ["q0", "q2", "q3", "q4"]);
    assert.deepEqual(await ids("?status=answered"), ["q1"]);
    assert.deepEqual(await ids("?status=timed_out"), []);
    assertProblem(await ask(program, "GET", `/runs/${runId}/human?status=open`), 400, "invalid_parameter");
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });

  test("takes an answer while it is paused", async () => {
    const runId = await asking(program, ship);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "paused" });
    assert.equal((await respond(program, runId, "ship", { decision: "yes" })).status, 200);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "running" });
    assert.equal((await received(program, runId))[0]?.decision, "yes");
  });

  test("refuses what is no answer to it, and goes on waiting", async () => {
    const runId = await asking(program, ship);
    const wrong: readonly (readonly [unknown, number, string, readonly string[]])[] = [
      [{ decision: "maybe" }, 422, "validation_failed", ["/decision"]],
      [{ decision: "" }, 422, "validation_failed", ["/decision"]],
      [{ decision: "y".repeat(201) }, 422, "validation_failed", ["/decision"]],
      [{ decision: 1 }, 422, "validation_failed", ["/decision"]],
      [{ decision: ["yes"] }, 422, "validation_failed", ["/decision"]],
      [{}, 422, "validation_failed", ["/decision"]],
      [{ decision: "yes", comment: 7 }, 422, "validation_failed", ["/comment"]],
      [{ decision: "yes", comment: "c".repeat(4_097) }, 422, "validation_failed", ["/comment"]],
      [{ decision: "yes", data: "d".repeat(65_536) }, 422, "validation_failed", ["/data"]],
      [{ decision: "yes", principal: "root" }, 422, "validation_failed", ["/principal"]],
      ["yes", 422, "validation_failed", [""]],
      [[], 422, "validation_failed", [""]],
    ];
    for (const [body, status, code, paths] of wrong) {
      const answer = await respond(program, runId, "ship", body);
      assertProblem(answer, status, code);
      assert.deepEqual(pathsOf(answer), paths, JSON.stringify(body));
    }
    for (const id of ["nothing", "%00", "../ship", "ship ", "'", "x".repeat(5_000)]) {
      assertProblem(await respond(program, runId, id, { decision: "yes" }), 404, "human_request_not_found");
      assertProblem(
        await ask(program, "GET", `/runs/${runId}/human/${encodeURIComponent(id)}`),
        404,
        "human_request_not_found",
      );
    }
    assertProblem(await respond(program, "run_nobody", "ship", { decision: "yes" }), 404, "run_not_found");
    assertProblem(await ask(program, "GET", "/runs/run_nobody/human"), 404, "run_not_found");
    assert.equal((await call(program, "GET", `/runs/${runId}/human/ship`)).status, "pending");
    assert.equal((await respond(program, runId, "ship", { decision: "yes" })).status, 200);
    assert.equal((await received(program, runId)).length, 1);
  });

  test("keeps its question unanswered when it ends, and takes no answer any more", async () => {
    const runId = await asking(program, ship);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    const late = await respond(program, runId, "ship", { decision: "yes" });
    assertProblem(late, 409, "run_ended");
    assert.match(String(late.body.detail), /cancelled/);
    const run = await call(program, "GET", `/runs/${runId}`);
    assert.deepEqual([labelOf(run), (run.progress as JsonObject).human_pending], ["Cancelled", 0]);
    assert.equal((await call(program, "GET", `/runs/${runId}/human/ship`)).status, "pending");
  });

  test("takes the most that an answer may hold, as it is", async () => {
    const runId = await asking(program, { request_id: "big" });
    const body = {
      decision: "\u2028é\u{1f41d}".padEnd(200, "x"),
      comment: '"quoted"\n\\'.padEnd(4_096, "c"),
      data: { __proto__x: [{}], text: "\u0000\ud800".padEnd(60_000, "d") },
    };
    const answer = await respond(program, runId, "big", body);
    assert.equal(answer.status, 200, answer.text.slice(0, 500));
    const [got] = await received(program, runId);
    assert.deepEqual([got?.decision, got?.comment, got?.data], [body.decision, body.comment, body.data]);
  });
});

describe("an answer counts once", () => {
  let program: Program;
  before(async () => {
    program = await startGatewayHere();
  });
  after(() => program.stop());

  test("of many that are given at the same time, and the others hear whose stands", async () => {
    const runId = await asking(program, { request_id: "race" });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => respond(program, runId, "race", { decision: `d${n}` })),
    );
    const [won, ...more] = answers.filter(({ status }) => status === 200);
    assert.ok(won !== undefined && more.length === 0, "one of them is taken");
    const { decision } = won.body.response as { readonly decision: string };
    for (const answer of answers.filter((one) => one !== won)) {
      assertProblem(answer, 409, "already_answered");
      assert.match(String(answer.body.detail), new RegExp(`"${decision}" by anonymous at 20..-..-..T`));
    }
    const got = await received(program, runId);
    assert.deepEqual(
      got.map((one) => one.decision),
      [decision],
    );
  });

  test("the same answer may be given again, also when the run has ended; another one may not", async () => {
    const runId = await asking(program, ship);
    const body = { decision: "yes", comment: "go", data: { a: 1, b: [2] } };
    const first = await respond(program, runId, "ship", body);
    const again = () => respond(program, runId, "ship", { ...body, data: { b: [2], a: 1 } });
    assert.deepEqual((await again()).body, first.body);
    await received(program, runId);
    assert.deepEqual((await again()).body, first.body);
    for (const other of [
      { ...body, decision: "no" },
      { ...body, comment: "stop" },
      { ...body, data: { a: 1, b: [3] } },
      { decision: "yes" },
    ]) {
      assertProblem(await respond(program, runId, "ship", other), 409, "already_answered");
    }
    const { of } = await ended(program, runId);
    assert.equal(of("human_input_answered").length, 1);
  });

  test("one key gets one answer again; for another answer it is taken", async () => {
    const runId = await asking(program, ship);
    const key = { "idempotency-key": "ship-1" };
    const first = await respond(program, runId, "ship", { decision: "yes" }, key);
    const second = await respond(program, runId, "ship", { decision: "yes" }, key);
    assert.deepEqual([first.status, second.status, second.text], [200, 200, first.text]);
    assert.equal(second.headers.get("idempotency-replayed"), "true");
    const other = await respond(program, runId, "ship", { decision: "no" }, key);
    assertProblem(other, 409, "idempotency_key_reused");
  });

  test("a run that asks nobody has nothing to answer", async () => {
    const jobId = await createJob(program, graph("silent", [router("in")]));
    const { run } = await completed(program, jobId);
    assert.deepEqual(await walk(program, `/runs/${run.run_id}/human`), []);
  });
});

describe("an answer counts once, over restarts", () => {
  let home = "";
  let program: Program;
  beforeEach(async () => {
    home = await temporaryHome();
    program = await startGateway({ home });
  });
  afterEach(async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  });

  test("another caller's answer is not the same, be it word for word", async () => {
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    const runId = await asking(program, { ...ship, data_schema: { type: "null" } });
    // Not stopped: that would wait for the worker, which waits for its answer.
    await program.kill();
    program = await startGateway({ home, env: { SVC_API_TOKEN: "token-of-anna-1234" } });
    const bad = { decision: "yes", data: 1 };
    const unfit = await respond(program, runId, "ship", bad, as("token-of-anna-1234"));
    assertProblem(unfit, 422, "validation_failed");
    const answer = await respond(program, runId, "ship", { decision: "yes" }, as("token-of-anna-1234"));
    assert.equal(answer.status, 200, answer.text);
    assert.equal((answer.body.response as JsonObject).principal, "token");
    await program.kill();
    program = await startGateway({ home, env: { SVC_API_TOKEN: "token-of-bert-1234" } });
    const rotated = await respond(program, runId, "ship", { decision: "yes" }, as("token-of-bert-1234"));
    assert.equal(rotated.status, 200, "another token is the same caller");
    await program.kill();
    program = await startGatewayHere({ home });
    const other = await respond(program, runId, "ship", { decision: "yes" });
    assertProblem(other, 409, "already_answered");
    assert.match(String(other.body.detail), /by token/, "the detail says whose answer stands");
  });

  test("over kill -9 between the answer and its reply: asked again with its key, it is there once", async () => {
    const seed = Number(process.env.KILL_SEED ?? Math.floor(Date.now() % 1_000_000));
    console.log(`kill seed ${seed}; again: KILL_SEED=${seed}`);
    const random = new Random(seed);
    const kills = sized(2, 12);
    const questions = Array.from({ length: kills }, (_, n) => ({ request_id: `q${n}`, prompt: `${n}?` }));
    const runId = await asking(program, ...questions);
    for (let n = 0; n < kills; n++) {
      const body = { decision: `d${n}`, data: { n } };
      const send = () => respond(program, runId, `q${n}`, body, { "idempotency-key": `kill-${n}` });
      // A moment from the seed, not a wait for anything: whatever is under way is cut off somewhere.
      const cut = send().catch(() => null);
      await delay(random.below(8));
      await program.kill();
      const before = await cut;
      // The last one is not killed.
      program = await (n < kills - 1 ? startGateway : startGatewayHere)({ home });
      const again = await send();
      assert.equal(again.status, 200, again.text);
      if (before !== null) assert.deepEqual(again.body, before.body);
      assert.equal((again.body.response as JsonObject).decision, `d${n}`);
    }
    const got = await received(program, runId);
    assert.deepEqual(
      got.map((one) => [one.request_id, one.decision]),
      questions.map((one, n) => [one.request_id, `d${n}`]),
    );
    const { of } = await ended(program, runId);
    assert.equal(of("human_input_answered").length, kills);
  });
});
