// Trigger events of the real program: killed at any moment, each event that was sent until it was answered is in one run of
// every schedule that reacts to it.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { ask, call, createJob, ended, startGateway, walk } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const EVENTS = 60;
const SENDERS = 6;
const KILLS = 4;
const BATCH = 7;

const home = await temporaryHome();
after(() => rm(home, { recursive: true, force: true }));

test("a program that is killed again and again while events come starts one run for each, and puts each in one batch", async () => {
  let program = await startGateway({ home });
  const listening = async (event: JsonObject, inputs: JsonObject) => {
    const jobId = await createJob(program, graph("react", [router("in")]));
    const body = { job_id: jobId, event: { type: "order", ...event }, inputs, overlap: "allow" };
    await call(program, "POST", "/schedules", body);
    return jobId;
  };
  const single = await listening({}, { n: { $event: "/payload" } });
  const batched = await listening({ batch: { max: BATCH, seconds: 1 } }, { all: { $event: "/events" } });

  let sent = 0;
  const left = Array.from({ length: EVENTS }, (_, n) => n);
  const send = async () => {
    for (let n = left.shift(); n !== undefined; n = left.shift()) {
      await until(`event ${n} is answered`, async () => {
        const body = { type: "order", payload: n, event_id: `order-${n}` };
        const answer = await ask(program, "POST", "/events", { body }).catch(() => null);
        return answer?.status === 202;
      });
      sent++;
    }
  };
  const sending = Array.from({ length: SENDERS }, send);
  for (let kill = 1; kill <= KILLS; kill++) {
    await until(`enough events are sent for kill ${kill}`, async () => sent >= (kill * EVENTS) / (KILLS + 2));
    await program.kill();
    program = await startGateway({ home });
  }
  await Promise.all(sending);

  const expected = Array.from({ length: EVENTS }, (_, n) => n);
  const inputsOf = async (jobId: string) => {
    const runs = await walk(program, `/runs?job_id=${jobId}`);
    for (const { run_id: runId } of runs)
      assert.equal((await ended(program, String(runId))).run.status, "completed");
    return runs.map(({ inputs }) => inputs as JsonObject);
  };
  const events = await until("all events are in runs", async () => {
    const all = await walk(program, "/events?type=order");
    const matches = all.flatMap(({ matched }) => matched as readonly JsonObject[]);
    return matches.length === 2 * EVENTS && matches.every(({ run_id }) => run_id !== undefined) && all;
  });
  assert.deepEqual(
    events.map(({ payload }) => Number(payload)).toSorted((a, b) => a - b),
    expected,
  );
  const singles = (await inputsOf(single)).map(({ n }) => Number(n));
  assert.deepEqual(
    singles.toSorted((a, b) => a - b),
    expected,
  );
  const batches = (await inputsOf(batched)).map(({ all }) => all as readonly JsonObject[]);
  assert.ok(batches.every(({ length }) => length <= BATCH));
  const inBatches = batches.flat().map(({ payload }) => Number(payload));
  assert.deepEqual(
    inBatches.toSorted((a, b) => a - b),
    expected,
  );
  const ends = await until("the ends of all runs are told", async () => {
    const told = await walk(program, "/events?type=run.completed");
    return told.length >= singles.length + batches.length && told;
  });
  const runIds = (await walk(program, "/runs")).map(({ run_id: runId }) => runId);
  assert.deepEqual(
    ends.map(({ payload }) => (payload as JsonObject).run_id).toSorted(),
    runIds.toSorted(),
    "each end is told once",
  );
  await program.stop();
});
