// What becomes of requests that wait, and of batches, when the program stops or is killed in the middle.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { JsonObject } from "../../src/engine/json.ts";
import { Random } from "../simulation/random.ts";
import {
  type Answer,
  ask,
  call,
  createJob,
  runtimeApiOf,
  startGateway,
  walk,
} from "../support/gateway-api.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { temporaryHome } from "../support/program.ts";
import { rowsOf } from "../support/stored-rows.ts";
import { until } from "../support/until.ts";
import { LONG, untilWaiting } from "../support/waiting.ts";

const env = { SVC_LOG_LEVEL: "error" };
const held = graph("held", [sensor("wait")]);
const quick = graph("quick", [router("in")]);
const keyed = (key: string) => ({ "idempotency-key": key });
const EACH = 10;

test("SIGTERM answers requests that wait as without waiting, and what they started carries on", async () => {
  const home = await temporaryHome();
  try {
    const program = await startGateway({ home, env });
    const runtime = await runtimeApiOf(program);
    const jobId = await createJob(program, held);
    const path = `/jobs/${jobId}/runs`;
    const runs = Array.from({ length: EACH }, (_, n) =>
      ask(program, "POST", path, { body: {}, headers: { ...LONG, ...keyed(`run-${n}`) } }),
    );
    const jobs = Array.from({ length: EACH }, () =>
      ask(runtime, "POST", "/jobs", { body: held, headers: LONG }),
    );
    const batch = ask(program, "POST", `${path}:batch`, { body: { items: [{}, {}] }, headers: LONG });
    const jobBatch = ask(runtime, "POST", "/jobs:batch", { body: { items: [held, held] }, headers: LONG });
    await untilWaiting(program, 2 * EACH + 2);
    assert.equal((await program.stop()).code, 0);
    const runIds: unknown[] = [];
    for (const answer of await Promise.all(runs)) {
      assert.equal(answer.status, 202, answer.text);
      assert.equal(answer.headers.get("preference-applied"), null);
      runIds.push(answer.body.run_id);
    }
    for (const answer of await Promise.all(jobs)) assert.equal(answer.status, 201, answer.text);
    for (const item of (await batch).body.items as readonly JsonObject[]) {
      assert.equal(item.status, 202);
      runIds.push(item.id);
    }
    for (const item of (await jobBatch).body.items as readonly JsonObject[]) assert.equal(item.status, 201);

    await using next = await startGatewayHere({ home, env });
    const found = (await walk(next, path)).map(({ run_id: id }) => id);
    assert.deepEqual(found.toSorted(), runIds.toSorted());
    const { data } = await call(await runtimeApiOf(next), "GET", "/jobs?include_terminal=false");
    assert.equal((data as readonly JsonObject[]).length, runIds.length + EACH + 2);
    await call(next, "POST", `/jobs/${jobId}/cancel`);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("kill -9 while a request waits: a retry with the same key waits for the same run", async () => {
  const home = await temporaryHome();
  try {
    const first = await startGateway({ home, env });
    const jobId = await createJob(first, held);
    const path = `/jobs/${jobId}/runs`;
    const headers = { ...LONG, ...keyed("one") };
    const lost = ask(first, "POST", path, { body: {}, headers }).then(
      () => "answered",
      () => "lost",
    );
    await untilWaiting(first, 1);
    const before = await walk(first, path);
    await first.kill();
    assert.equal(await lost, "lost");

    await using second = await startGatewayHere({ home, env });
    const retried = ask(second, "POST", path, { body: {}, headers });
    await untilWaiting(second, 1);
    await call(second, "POST", `/jobs/${jobId}/cancel`);
    const answer = await retried;
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers.get("idempotency-replayed"), "true");
    assert.equal(answer.headers.get("preference-applied"), "wait");
    assert.equal(answer.body.status, "cancelled");
    assert.deepEqual(
      [answer.body.run_id],
      before.map(({ run_id: id }) => id),
    );
    assert.equal((await walk(second, path)).length, 1);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

const KILLS = sized(2, 12);
const ITEMS = 200;

test(`${KILLS} times kill -9 around batches: all of one or nothing is there, and a retry with the same key completes it`, async () => {
  const seed = Number(process.env.KILL_SEED ?? Math.floor(Date.now() % 1_000_000));
  console.log(`kill seed ${seed}; again: KILL_SEED=${seed}`);
  const random = new Random(seed);
  const home = await temporaryHome();
  const items = Array.from({ length: ITEMS }, (_, n) => ({ inputs: { n } }));
  const seen = { nothing: 0, all: 0 };
  try {
    let program = await startGateway({ home, env });
    for (let kill = 0; kill < KILLS; kill++) {
      const runtime = await runtimeApiOf(program);
      const jobId = await createJob(program, quick);
      const path = `/jobs/${jobId}/runs:batch`;
      const headers = { ...LONG, ...keyed(`batch-${kill}`) };
      const manifest = { ...quick, graph_id: `kill-${kill}` };
      const sent: Promise<Answer | null>[] = [
        ask(program, "POST", path, { body: { items }, headers }),
        ask(runtime, "POST", "/jobs:batch", { body: { items: items.map(() => manifest) }, headers: LONG }),
      ].map((answer) => answer.catch(() => null));
      // A moment from the seed, not a wait for anything: whatever is under way is cut off somewhere.
      await delay(random.between(1, 120));
      await program.kill();
      const [runsAnswer, jobsAnswer] = await Promise.all(sent);

      const stored = (query: string, of: string) => Number(rowsOf(home, query, of)[0]?.n);
      const runs = stored("SELECT count(*) AS n FROM runs WHERE job_id = ?", jobId);
      const jobs = stored("SELECT count(*) AS n FROM jobs WHERE graph_id = ?", `kill-${kill}`);
      for (const [count, answer] of [
        [runs, runsAnswer],
        [jobs, jobsAnswer],
      ] as const) {
        assert.ok(count === 0 || count === ITEMS, `${count} of ${ITEMS} are there`);
        if (answer != null) assert.equal(count, ITEMS, "what was acknowledged is there");
        seen[count === 0 ? "nothing" : "all"]++;
      }

      // The last one is not killed.
      program = await (kill < KILLS - 1 ? startGateway : startGatewayHere)({ home, env });
      const retried = await ask(program, "POST", path, { body: { items }, headers: keyed(`batch-${kill}`) });
      assert.equal(retried.status, 200, retried.text);
      assert.equal(retried.headers.get("idempotency-replayed") === "true", runs === ITEMS);
      const ids = (retried.body.items as readonly JsonObject[]).map(({ id }) => String(id));
      assert.equal(new Set(ids).size, ITEMS);
      assert.equal((await walk(program, `/jobs/${jobId}/runs`)).length, ITEMS);
      const last = await until("all of them have ended", async () => {
        const answer = await ask(program, "POST", path, { body: { items }, headers });
        return answer.headers.get("preference-applied") === "wait" ? answer : null;
      });
      for (const { id, run } of last.body.items as readonly JsonObject[]) {
        assert.ok(ids.includes(String(id)));
        assert.equal((run as JsonObject).status, "completed");
      }
    }
    console.log(
      `of ${2 * KILLS} batches ${seen.all} were there after the kill, and ${seen.nothing} were not`,
    );
    await program.stop();
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
