// A run, or a job, that only waits for slots is queued, on both APIs, until it has one; also over a pause and kill -9.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { makeGates } from "../support/gates.ts";
import {
  call,
  createJob,
  ended,
  runtimeApiOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import * as runtimeApi from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

test("a run is queued while its task waits for a slot and none runs", async () => {
  const gates = await makeGates();
  const gate = gates.pipe("go");
  const home = await temporaryHome();
  const env = { SVC_EXECUTOR_POOL_CAPACITIES: "default=1" };
  let program: Program = await startGateway({ home, env });
  const statusOf = async (runId: string) => (await call(program, "GET", `/runs/${runId}`)).status;
  const becomes = (runId: string, status: string) =>
    until(`${runId} is ${status}`, async () => (await statusOf(runId)) === status);
  const want = (runId: string, desired_state: string) =>
    call(program, "PATCH", `/runs/${runId}`, { desired_state });
  try {
    const holder = await createJob(program, graph("holder", [executor("a", ["cat", gate])]));
    const waiter = await createJob(program, graph("waiter", [executor("a", ["true"])]));
    const first = await startRun(program, holder);
    await becomes(first, "running");
    const second = await startRun(program, waiter);
    const third = await startRun(program, waiter);
    await becomes(second, "queued");
    await becomes(third, "queued");
    const filtered = await walk(program, "/runs?status=queued");
    assert.deepEqual(new Set(filtered.map(({ run_id }) => run_id)), new Set([second, third]));
    const { progress } = await call(program, "GET", `/runs/${second}`);
    assert.equal((progress as JsonObject).label, "Waiting for free slots, 0 of 1 agents done");
    const job = await call(program, "GET", `/jobs/${waiter}`);
    assert.equal((job.latest_run as JsonObject).status, "queued");

    await want(second, "paused");
    await becomes(second, "paused");
    assert.equal((await want(third, "running")).status, "queued", "it is wanted so already");
    await want(second, "running");
    await becomes(second, "queued");

    await program.kill();
    program = await startGatewayHere({ home, env });
    await becomes(first, "running");
    await becomes(second, "queued");
    await want(third, "cancelled");
    await ended(program, third);

    const runtime = await runtimeApiOf(program);
    const submitted = await runtimeApi.call(
      runtime,
      "POST",
      "/jobs",
      graph("own", [executor("a", ["true"])]),
    );
    const jobId = String(submitted.id);
    const { data } = await runtimeApi.call(runtime, "GET", "/jobs");
    const listed = (data as readonly JsonObject[]).find((one) => one.job_id === jobId);
    assert.equal(listed?.status, "queued");
    await gates.open(gate);
    for (const runId of [first, second]) {
      assert.equal((await ended(program, runId)).run.status, "completed");
    }
    await until("the runtime's job is completed", async () => {
      const { job: found } = await runtimeApi.jobDetail(runtime, jobId);
      return found.status === "completed";
    });
  } finally {
    await program.stop();
    await gates.remove();
    await rm(home, { recursive: true, force: true });
  }
});
