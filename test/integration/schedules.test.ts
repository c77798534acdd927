// Schedules of the real program: killed at any moment, it starts one run for each due time.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { call, createJob, ended, startGateway } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const RUNS = 6;

const home = await temporaryHome();
after(() => rm(home, { recursive: true, force: true }));

/** The due time that a run was started for: its id begins with it. */
function dueOf({ run_id: runId }: JsonObject): number {
  const [, time = ""] = /^run_(.{10})/.exec(String(runId)) ?? [];
  return [...time].reduce((ms, digit) => ms * 32 + ALPHABET.indexOf(digit), 0);
}

test("a program that is killed again and again starts one run for each second, and makes up for those it missed", async () => {
  let program = await startGateway({ home });
  const jobId = await createJob(program, graph("tick", [executor("a", ["true"])], []));
  const { schedule_id: id } = await call(program, "POST", "/schedules", {
    job_id: jobId,
    cron: { expressions: ["* * * * * *"] },
    overlap: "allow",
    missed: "run_all",
    max_runs: RUNS,
  });
  const dispatched = async () => {
    const { counts, status } = await call(program, "GET", `/schedules/${id}`);
    return { count: Number((counts as JsonObject).dispatched), status };
  };
  for (const count of [1, 2, 4]) {
    await until(`${count} runs are started`, async () => (await dispatched()).count >= count);
    await program.kill();
    program = await startGateway({ home });
  }
  await until("all runs are started", async () => (await dispatched()).status === "completed");
  const { items } = await call(program, "GET", `/runs?job_id=${jobId}`);
  const dues = (items as readonly JsonObject[]).map(dueOf).toSorted((a, b) => a - b);
  const [first = 0] = dues;
  assert.deepEqual(
    dues,
    Array.from({ length: RUNS }, (_, n) => first + n * 1_000),
  );
  for (const { run_id: runId, trigger } of items as readonly JsonObject[]) {
    assert.equal((await ended(program, String(runId))).run.status, "completed");
    assert.deepEqual(trigger, { kind: "schedule", id });
  }
  await program.stop();
});
