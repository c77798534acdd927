// One Idempotency-Key, one effect: however many ask at once, and whenever the process dies in between.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import type { JsonObject } from "../../src/engine/json.ts";
import { databaseFile } from "../../src/store/home.ts";
import { Random } from "../simulation/random.ts";
import { zipOf } from "../support/bundle-files.ts";
import {
  type Answer,
  ask,
  call,
  createJob,
  ended,
  happens,
  sendBundle,
  startGateway,
  startRun,
  uploadBundle,
  walk,
} from "../support/gateway-api.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { rowsOf } from "../support/stored-rows.ts";

const AT_ONCE = 50;
const KILLS = sized(2, 12);

/** What a POST is to bring about once. */
interface Effect {
  send(program: Program, key: string): Promise<Answer>;
  /** The keys of those there are, each as often as it came about. */
  made(program: Program): Promise<readonly string[]>;
}

const keyed = (key: string) => ({ "idempotency-key": key });
const manifest = graph("once", [router("in")]);
const named = (graphId: string) => zipOf({ "manifest.json": graph(graphId, [router("in")]) });

const runOf = (jobId: string): Effect => ({
  send: (program, key) =>
    ask(program, "POST", `/jobs/${jobId}/runs`, { body: { inputs: { key } }, headers: keyed(key) }),
  made: async (program) =>
    (await walk(program, `/jobs/${jobId}/runs`)).map(({ inputs }) => String((inputs as JsonObject).key)),
});

const jobOf = (bundleId: string): Effect => ({
  send: (program, key) =>
    ask(program, "POST", "/jobs", { body: { bundle_id: bundleId, name: key }, headers: keyed(key) }),
  made: async (program) => (await walk(program, "/jobs")).map(({ name }) => String(name)),
});

const upload: Effect = {
  send: async (program, key) => sendBundle(program, await named(key), { headers: keyed(key) }),
  made: async (program) => (await walk(program, "/bundles")).map(({ graph_id }) => String(graph_id)),
};

/** Kills the program at a moment from the seed, whatever is under way; every other time as soon as a promise is on disk. */
async function killSometime(program: Program, round: number, afterMs: number, before: number): Promise<void> {
  if (round % 2 === 0) await delay(afterMs);
  else {
    using database = new DatabaseSync(databaseFile(program.home), { readOnly: true });
    const count = database.prepare("SELECT count(*) AS n FROM idempotency");
    for (let looks = 0; looks < 100_000 && count.get()?.n === before; looks++) await nextTurn();
  }
  await program.kill();
}

const promisesIn = (home: string) => rowsOf(home, "SELECT key FROM idempotency").map(({ key }) => key);

/** What an answer says, without what differs from one request to the next. */
function said({ status, text, headers }: Answer) {
  return { status, text, location: headers.get("location"), etag: headers.get("etag") };
}

describe(`the same POST sent ${AT_ONCE} times at once with one key`, () => {
  let program: Program;
  const effects = new Map<string, Effect>();
  before(async () => {
    program = await startGatewayHere();
    effects.set("bundle", upload);
    effects.set("job", jobOf(await uploadBundle(program, manifest)));
    effects.set("run", runOf(await createJob(program, manifest)));
  });
  after(() => program.stop());

  for (const kind of ["run", "job", "bundle"]) {
    test(`gives one effect and ${AT_ONCE} equal answers: a ${kind}`, async () => {
      const effect = effects.get(kind) ?? upload;
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => effect.send(program, "one")));
      const [first] = answers;
      assert.ok(first !== undefined);
      assert.ok(first.status < 300, first.text);
      for (const answer of answers) assert.deepEqual(said(answer), said(first));
      const replayed = answers.filter(({ headers }) => headers.get("idempotency-replayed") === "true");
      assert.equal(replayed.length, AT_ONCE - 1, "all but the first say so");
      assert.deepEqual(
        (await effect.made(program)).filter((key) => key === "one"),
        ["one"],
      );
      if (kind === "run")
        assert.equal((await ended(program, String(first.body.run_id))).run.status, "completed");
    });
  }
});

test(`${KILLS} times kill -9 between effect and answer: a retry with the same key gives one effect`, async () => {
  const seed = Number(process.env.KILL_SEED ?? Math.floor(Date.now() % 1_000_000));
  console.log(`kill seed ${seed}; again: KILL_SEED=${seed}`);
  const random = new Random(seed);
  const home = await temporaryHome();
  const env = { SVC_LOG_LEVEL: "error" };
  let program = await startGateway({ home, env });
  try {
    const bundleId = await uploadBundle(program, manifest);
    const jobId = await createJob(program, manifest);
    const [run, job] = [runOf(jobId), jobOf(bundleId)];
    const effects = [run, run, run, run, run, job, job, upload, upload];
    let unanswered = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const requests = effects.map((effect, i) => ({ effect, key: `kill-${kill}-${i}` }));
      const promised = promisesIn(home).length;
      // Moments from the seed, not waits for anything: whatever is under way at the kill is cut off somewhere.
      const before = requests.map(async ({ effect, key }) => {
        await delay(random.below(kill % 2 === 0 ? 10 : 1));
        return effect.send(program, key).catch(() => null);
      });
      await killSometime(program, kill, random.between(3, 12), promised);
      const first = await Promise.all(before);
      const committed = new Set(promisesIn(home));
      // The last one is not killed.
      program = await (kill < KILLS - 1 ? startGateway : startGatewayHere)({ home, env });
      for (const [i, { effect, key }] of requests.entries()) {
        const [answered, retried] = [first[i] ?? null, await effect.send(program, key)];
        assert.ok(retried.status < 300, retried.text);
        if (answered !== null) assert.deepEqual(said(retried), said(answered), "the answer is the same");
        else if (committed.has(key)) unanswered++;
        const isReplay = retried.headers.get("idempotency-replayed") === "true";
        assert.equal(isReplay, committed.has(key), "what was committed is not done again");
      }
    }
    for (const [i, effect] of effects.entries()) {
      const keys = (await effect.made(program)).filter((key) => key.endsWith(`-${i}`)).toSorted();
      const wanted = Array.from({ length: KILLS }, (_, kill) => `kill-${kill}-${i}`).toSorted();
      assert.deepEqual(keys, wanted, "each effect came about once");
    }
    console.log(`${unanswered} of ${KILLS * effects.length} requests were committed and not answered`);
    for (const { run_id } of await walk(program, `/jobs/${jobId}/runs`)) {
      assert.equal((await ended(program, String(run_id))).run.status, "completed");
    }
  } finally {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  }
});

const actions = [
  ["cancel", "cancelled"],
  ["pause", "paused"],
] as const;
const CONTROL_KILLS = sized(2, 8);
const RUNS_EACH = 8;

test(`${CONTROL_KILLS} times kill -9 around the control of whole jobs: a retry with the same key gives the answer that was promised, and it is kept`, async () => {
  const seed = Number(process.env.KILL_SEED ?? Math.floor(Date.now() % 1_000_000));
  console.log(`kill seed ${seed}; again: KILL_SEED=${seed}`);
  const random = new Random(seed);
  const home = await temporaryHome();
  const env = { SVC_LOG_LEVEL: "error" };
  let program = await startGateway({ home, env });
  try {
    const bundleId = await uploadBundle(program, graph("held", [sensor("wait")]));
    let unanswered = 0;
    for (let kill = 0; kill < CONTROL_KILLS; kill++) {
      const jobs = await Promise.all(
        [...actions, ...actions].map(async ([action, status]) => {
          const jobId = String((await call(program, "POST", "/jobs", { bundle_id: bundleId })).job_id);
          const runIds = await Promise.all(Array.from({ length: RUNS_EACH }, () => startRun(program, jobId)));
          for (const runId of runIds) await happens(program, runId, "agent_started");
          const send = () => ask(program, "POST", `/jobs/${jobId}/${action}`, { headers: keyed(jobId) });
          return { jobId, status, send, runs: runIds.toSorted().map((run_id) => ({ run_id, status })) };
        }),
      );
      const promised = promisesIn(home).length;
      // Moments from the seed, as above.
      const before = jobs.map(async ({ send }) => {
        await delay(random.below(4));
        return send().catch(() => null);
      });
      await killSometime(program, kill, random.between(2, 12), promised);
      const first = await Promise.all(before);
      const committed = new Set(promisesIn(home));
      // The last one is not killed.
      program = await (kill < CONTROL_KILLS - 1 ? startGateway : startGatewayHere)({ home, env });
      for (const [i, { jobId, status, send, runs }] of jobs.entries()) {
        const answered = first[i] ?? null;
        const retried = await send();
        assert.equal(retried.status, 200, retried.text);
        assert.deepEqual(retried.body, { job_id: jobId, runs });
        if (answered !== null) assert.deepEqual(said(retried), said(answered), "the answer is the same");
        else if (committed.has(jobId)) unanswered++;
        assert.equal(retried.headers.get("idempotency-replayed") === "true", committed.has(jobId));
        if (status === "cancelled") for (const { run_id } of runs) await ended(program, run_id);
        for (const run of await walk(program, `/jobs/${jobId}/runs`)) assert.equal(run.status, status);
        await ask(program, "DELETE", `/jobs/${jobId}?force=true`, { headers: { "if-match": "*" } });
      }
    }
    console.log(`${unanswered} of ${CONTROL_KILLS * 4} requests were committed and not answered`);
  } finally {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  }
});
