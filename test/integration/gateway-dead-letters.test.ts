// Dead letters over the gateway: what they say, who may send them again, and that each is sent again once.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { JsonObject } from "../../src/engine/json.ts";
import { Random } from "../simulation/random.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  happens,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { type GivingUp, makeGivingUp, type Refusing, refusing } from "../support/giving-up.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const retry = (program: Program, runId: string, what: string, headers = {}): Promise<Answer> =>
  ask(program, "POST", `/runs/${runId}/dead-letters${what}/retry`, { headers });

const lettersOf = (program: Program, runId: string, query = "", pageSize = 200) =>
  walk(program, `/runs/${runId}/dead-letters${query}`, pageSize);

/** Starts a run whose worker gives up `count` messages, and waits until it has. @returns the run's id */
async function givenUp(program: Program, { manifest, files }: Refusing, count: number): Promise<string> {
  const jobId = await createJob(program, manifest, {}, files);
  const bodies = Array.from({ length: count }, (_, n) => ({ n }));
  const runId = await startRun(program, jobId, { inputs: { $entrypoints: { in: bodies, hold: [{}] } } });
  await nthHappens(program, runId, "message_dead_lettered", count);
  return runId;
}

async function nthHappens(program: Program, runId: string, type: string, count: number): Promise<void> {
  let seen = 0;
  await happens(program, runId, (event) => event.type === type && ++seen === count);
}

/** Ends a run. @returns how many of its commands completed before */
async function done(program: Program, runId: string): Promise<number> {
  await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  return (await ended(program, runId)).of("sandbox_job_completed").length;
}

describe("a dead letter of a run that is open", () => {
  let program: Program;
  let givingUp: GivingUp;
  let gates: Gates;
  before(async () => {
    program = await startGatewayHere();
    givingUp = await makeGivingUp();
    gates = await makeGates();
  });
  after(async () => {
    await program.stop();
    await givingUp.remove();
    await gates.remove();
  });

  test("names its agent and reason, and is sent again once its cause is fixed", async () => {
    const broken = await makeGivingUp();
    const runId = await givenUp(program, broken, 3);
    const letters = await lettersOf(program, runId, "", 1);
    assert.deepEqual(
      letters.map(({ message }) => (message as JsonObject).body),
      [{ n: 2 }, { n: 1 }, { n: 0 }],
    );
    const [, letter] = letters;
    const id = String(letter?.dead_letter_id);
    const { message, created_at: createdAt, ...rest } = letter ?? {};
    assert.deepEqual(rest, {
      dead_letter_id: id,
      run_id: runId,
      agent_id: "worker",
      reason: "processing_failed",
      attempts: 1,
      status: "open",
      retried_at: null,
      change: null,
    });
    assert.deepEqual([(message as JsonObject).from, (message as JsonObject).to], ["in", "worker"]);
    assert.deepEqual(await call(program, "GET", `/runs/${runId}/dead-letters/${id}`), letter);
    const { job_id: jobId, counts } = await call(program, "GET", `/runs/${runId}`);
    assert.equal((counts as JsonObject).dead_letters, 3);
    assert.deepEqual(await walk(program, `/jobs/${jobId}/dead-letters`, 2), letters);
    assert.deepEqual(await walk(program, `/dead-letters?job_id=${jobId}`, 2), letters);
    assert.deepEqual(await walk(program, "/dead-letters", 1), letters);

    await broken.fix();
    const answer = await retry(program, runId, `/${id}`);
    assert.deepEqual([answer.status, answer.body], [202, { run_id: runId, retried: 1, not_deliverable: 0 }]);
    await happens(program, runId, "sandbox_job_completed");
    const now = await call(program, "GET", `/runs/${runId}/dead-letters/${id}`);
    assert.deepEqual({ ...now, status: "open", retried_at: null }, letter);
    assert.equal(now.status, "retried");
    assert.ok(String(now.retried_at) >= String(createdAt), `${now.retried_at} and ${createdAt}`);
    const ids = async (query: string) =>
      (await lettersOf(program, runId, query, 1)).map((one) => one.dead_letter_id);
    assert.deepEqual(await ids("?status=retried"), [id]);
    const open = await walk(program, `/dead-letters?reason=processing_failed&run_id=${runId}`);
    assert.deepEqual(open, [letters[0], letters[2]]);
    assert.deepEqual(await ids("?status=open"), [letters[0]?.dead_letter_id, letters[2]?.dead_letter_id]);
    assert.deepEqual(
      (await walk(program, `/jobs/${jobId}/dead-letters?status=retried`)).map((one) => one.dead_letter_id),
      [id],
    );

    const again = await retry(program, runId, `/${id}`);
    assertProblem(again, 409, "already_retried");
    assert.ok(String(again.body.detail).includes(String(now.retried_at)));
    assert.equal(await done(program, runId), 1);
    await broken.remove();
  });

  test("goes with another body, and keeps both, who has changed it, and what was secret", async () => {
    const files = {
      "payloads/check.mjs":
        "export async function handle({ body }) {\n  if (body.n !== 8 || body.token !== 'tok-of-the-test') throw new Error('never');\n}\n",
    };
    const manifest = {
      ...(refusing.manifest as JsonObject & { nodes: JsonObject[] }),
      nodes: (refusing.manifest.nodes as JsonObject[]).map((node) =>
        node.node_id === "worker" ? { ...node, config: { module: "check.mjs" } } : node,
      ),
    };
    const jobId = await createJob(program, manifest, {}, files);
    const bodies = [{ n: 7, token: "tok-of-the-test" }];
    const runId = await startRun(program, jobId, { inputs: { $entrypoints: { in: bodies, hold: [{}] } } });
    await happens(program, runId, "message_dead_lettered");
    const [letter] = await lettersOf(program, runId);
    const path = `/runs/${runId}/dead-letters/${letter?.dead_letter_id}`;
    const shown = { n: 7, token: "********" };
    assert.deepEqual((letter as JsonObject & { message: JsonObject }).message.body, shown);
    // Nothing is sent of what no message may have.
    const planted = await ask(program, "POST", `${path}/retry`, { body: { body: { $sealed: "x" } } });
    assertProblem(planted, 422, "validation_failed");
    assert.equal((planted.body.errors as JsonObject[])[0]?.path, "/body");
    assertProblem(
      await ask(program, "POST", `${path}/retry`, { body: { other: 1 } }),
      422,
      "validation_failed",
    );
    const long = { body: "x".repeat(4 * 1024 * 1024) };
    assertProblem(await ask(program, "POST", `${path}/retry`, { body: long }), 422, "validation_failed");
    assert.deepEqual(await call(program, "GET", path), letter);

    const key = { "idempotency-key": "changed-1" };
    const change = { body: { body: { ...shown, n: 8 } }, headers: key };
    const answer = await ask(program, "POST", `${path}/retry`, change);
    assert.deepEqual([answer.status, answer.body.retried], [202, 1]);
    assert.equal((await ask(program, "POST", `${path}/retry`, change)).text, answer.text);
    const other = await ask(program, "POST", `${path}/retry`, { body: { body: 9 }, headers: key });
    assertProblem(other, 409, "idempotency_key_reused");
    const now = await call(program, "GET", path);
    assert.deepEqual((now.message as JsonObject).body, shown);
    assert.deepEqual(now.change, { principal: "anonymous", body: { ...shown, n: 8 } });
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    const { of } = await ended(program, runId);
    assert.equal(of("message_retried")[0]?.payload.changed_by, "anonymous");
    // Its worker took it: there is no second letter.
    assert.equal((await lettersOf(program, runId)).length, 1);
  });

  test("goes with all others that are open, and what fails again becomes a letter of its own", async () => {
    // More than are taken up at once.
    const runId = await givenUp(program, refusing, 120);
    const answer = await retry(program, runId, "");
    assert.deepEqual([answer.status, answer.body.retried, answer.body.not_deliverable], [202, 120, 0]);
    await nthHappens(program, runId, "message_dead_lettered", 240);
    assert.equal((await lettersOf(program, runId, "?status=retried")).length, 120);
    const open = await lettersOf(program, runId, "?status=open");
    const bodies = new Set(open.map(({ message }) => ((message as JsonObject).body as JsonObject).n));
    assert.deepEqual([open.length, bodies.size], [120, 120]);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });

  test("is sent once, however many ask for it at the same time", async () => {
    const broken = await makeGivingUp();
    const runId = await givenUp(program, broken, 30);
    const some = (await lettersOf(program, runId)).slice(0, 5).map((one) => `/${one.dead_letter_id}`);
    await broken.fix();
    const asks = ["", "", ...some, ...some, "", ""];
    const answers = await Promise.all(asks.map((what) => retry(program, runId, what)));
    const retried = answers.reduce((sum, { body }) => sum + Number(body.retried ?? 0), 0);
    assert.equal(retried, 30);
    for (const answer of answers) if (answer.status !== 202) assertProblem(answer, 409, "already_retried");
    await nthHappens(program, runId, "sandbox_job_completed", 30);
    assert.deepEqual((await retry(program, runId, "")).body.retried, 0);
    assert.equal(await done(program, runId), 30);
    await broken.remove();
  });

  test("is sent once under one key, which gets the first answer again", async () => {
    const runId = await givenUp(program, givingUp, 2);
    const key = { "idempotency-key": "again-1" };
    const first = await retry(program, runId, "", key);
    const second = await retry(program, runId, "", key);
    assert.deepEqual([first.body.retried, second.text], [2, first.text]);
    assert.equal(second.headers.get("idempotency-replayed"), "true");
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });

  test("stays what it is when the run ends, and is not sent again", async () => {
    const runId = await givenUp(program, givingUp, 1);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    const [letter] = await lettersOf(program, runId);
    for (const what of ["", `/${letter?.dead_letter_id}`]) {
      const answer = await retry(program, runId, what);
      assertProblem(answer, 409, "run_ended");
      assert.match(String(answer.body.detail), /cancelled/);
    }
    assert.equal((await lettersOf(program, runId))[0]?.status, "open");
  });

  test("is not found under another name, or in another run", async () => {
    const runId = await givenUp(program, givingUp, 1);
    const other = await givenUp(program, givingUp, 1);
    const [letter] = await lettersOf(program, other);
    for (const id of [letter?.dead_letter_id, "dl_nothing", "'\u0000", "x".repeat(4_000)]) {
      const path = `/${encodeURIComponent(String(id))}`;
      const found = await ask(program, "GET", `/runs/${runId}/dead-letters${path}`);
      assertProblem(found, 404, "dead_letter_not_found");
      assertProblem(await retry(program, runId, path), 404, "dead_letter_not_found");
    }
    for (const path of ["", "/dl_1"]) {
      assertProblem(await ask(program, "GET", `/runs/run_nobody/dead-letters${path}`), 404, "run_not_found");
      assertProblem(await retry(program, "run_nobody", path), 404, "run_not_found");
    }
    assertProblem(
      await ask(program, "GET", `/runs/${runId}/dead-letters?status=new`),
      400,
      "invalid_parameter",
    );
  });

  test("that nobody can take stays open, and the others go", async () => {
    const gate = gates.pipe("slow");
    const jobId = await createJob(program, {
      manifest_version: "1.0",
      graph_id: "gone",
      entrypoints: ["in", "hold"],
      nodes: [
        { node_id: "in", agent_type: "router", config: {} },
        { node_id: "hold", agent_type: "sensor", config: {} },
        // It has ended before `slow` is released.
        { node_id: "gone", agent_type: "executor", type: "stream", config: { command: ["true"] } },
        { node_id: "slow", agent_type: "executor", config: { command: ["cat", gate] } },
      ],
      edges: [
        { from_node: "in", to_node: "slow" },
        { from_node: "slow", to_node: "gone" },
      ],
    });
    const runId = await startRun(program, jobId);
    await happens(program, runId, (event) => event.type === "agent_completed" && event.agent_id === "gone");
    await gates.open(gate);
    await happens(program, runId, "message_dead_lettered");
    const [letter] = await lettersOf(program, runId);
    assert.equal(letter?.reason, "target_gone");
    const answer = await retry(program, runId, `/${letter?.dead_letter_id}`);
    assertProblem(answer, 409, "conflict");
    assert.deepEqual((await retry(program, runId, "")).body, {
      run_id: runId,
      retried: 0,
      not_deliverable: 1,
    });
    assert.equal((await lettersOf(program, runId))[0]?.status, "open");
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  });
});

test("over kill -9 in the middle of sending many again, none is lost and none is sent twice", async (t) => {
  const seed = Number(process.env.KILL_SEED ?? Math.floor(Date.now() % 1_000_000));
  console.log(`kill seed ${seed}; again: KILL_SEED=${seed}`);
  const random = new Random(seed);
  const count = sized(300, 600);
  const home = await temporaryHome();
  let program = await startGateway({ home });
  // Also when the test fails: the file would wait for a program that goes on.
  t.after(async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  });
  const runId = await givenUp(program, refusing, count);
  const kills = sized(2, 10);
  for (let kill = 0; kill < kills; kill++) {
    const cut = retry(program, runId, "", { "idempotency-key": "all" }).catch(() => null);
    // A moment from the seed, not a wait for anything.
    await delay(random.below(40));
    await program.kill();
    await cut;
    // The last one is not killed.
    program = await (kill < kills - 1 ? startGateway : startGatewayHere)({ home });
  }
  const last = await retry(program, runId, "", { "idempotency-key": "all" });
  assert.equal(last.status, 202, last.text);
  // Each gives up again: what was sent n times would have n further letters.
  await nthHappens(program, runId, "message_retried", count);
  const letters = await lettersOf(program, runId);
  const first = letters.slice(-count);
  assert.ok(first.every(({ status }) => status === "retried"));
  await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  const { of } = await ended(program, runId);
  const sent = of("message_retried").map(({ payload }) => payload.dead_letter_id);
  assert.equal(new Set(sent).size, sent.length, "none is sent twice");
  for (const { dead_letter_id: id } of first) assert.ok(sent.includes(id as string));
});
