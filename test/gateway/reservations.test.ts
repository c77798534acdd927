// Commands that have memory of the machine for themselves: who waits, what that looks like in both APIs, and that all of it is
// given back. The limit makes the machine small: what is reserved is nowhere near what is used.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  call,
  createJob,
  ended,
  happens,
  runtimeApiOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const MiB = 1024 ** 2;

let gates: Gates;
let home: string;
let program: Program;
before(async () => {
  [gates, home] = await Promise.all([makeGates(), temporaryHome()]);
  program = await startGatewayHere({ home });
  await limitTo(100);
});
after(async () => {
  await program.stop();
  await gates.remove();
  await rm(home, { recursive: true });
});

const limitTo = (mebibytes: number) =>
  call(program, "PUT", "/resource", { limits: { memory_bytes: mebibytes * MiB } });

async function reservedMiB(): Promise<number> {
  const { reserved } = await call(program, "GET", "/resource");
  return ((reserved as JsonObject).memory_bytes as number) / MiB;
}

/** A run whose command has so much memory for itself until it is let go. */
async function heldRun(name: string, memory_mb: number) {
  const gate = gates.pipe(name);
  const node = { ...executor("holder", ["cat", gate]), resources: { memory_mb } };
  const runId = await startRun(program, await createJob(program, graph(name, [node])));
  return {
    runId,
    begins: () => happens(program, runId, "sandbox_job_started"),
    async end() {
      await gates.open(gate);
      return (await ended(program, runId)).run.status;
    },
  };
}

const isQueued = (runId: string) =>
  until(`${runId} is queued`, async () => {
    const run = await call(program, "GET", `/runs/${runId}`);
    return run.status === "queued" && run;
  });

const WAITS = "It waits for 50 MiB of memory of the machine.";

test("a command waits until its memory is free, its run shows that, and others that fit go on", async () => {
  const holder = await heldRun("holder", 60);
  await holder.begins();
  const waiter = await heldRun("waiter", 50);
  const run = await isQueued(waiter.runId);
  assert.deepEqual([run.reason, run.status_reason], [WAITS, WAITS]);
  assert.equal((run.progress as JsonObject).label, "Waiting for resources, 0 of 1 agents done");
  const progress = await call(program, "GET", `/jobs/${run.job_id}/workflow-progress`);
  assert.equal(progress.status_reason, WAITS);
  assert.equal((await call(program, "GET", `/jobs/${run.job_id}`)).status_reason, WAITS);
  const [requested] = await walk(program, `/runs/${waiter.runId}/events?type=executor_lease_requested`);
  assert.equal((requested!.payload as JsonObject).hint, WAITS);

  const small = await heldRun("small", 40);
  await small.begins();
  assert.equal(await reservedMiB(), 100);
  assert.equal(await small.end(), "completed");
  assert.equal(await holder.end(), "completed");
  await waiter.begins();
  assert.equal(await reservedMiB(), 50);
  const running = await call(program, "GET", `/runs/${waiter.runId}`);
  assert.deepEqual([running.status, running.status_reason], ["running", null]);
  assert.equal(await waiter.end(), "completed");
  assert.equal(await reservedMiB(), 0);
});

test("the summary of a run says whether its commands were kept within what was their own", async () => {
  const resourcesOf = async (node: JsonObject) => {
    const runId = await startRun(program, await createJob(program, graph("kept", [node])));
    await ended(program, runId);
    return (await call(program, "GET", `/runs/${runId}/observability-summary`)).resources as
      | JsonObject
      | undefined;
  };
  const node = executor("a", ["true"]);
  assert.equal(await resourcesOf(node), undefined);
  const shown = await resourcesOf({ ...node, resources: { memory_mb: 50, cpu: 0.5 } });
  assert.match(String(shown?.enforcement), /^(none|prlimit|cgroup1|cgroup2)$/);
});

test("a submitted job of the runtime API waits the same, and shows it", async () => {
  const runtime = await runtimeApiOf(program);
  const holder = await heldRun("held", 60);
  await holder.begins();
  const node = { ...executor("a", ["true"]), resources: { memory_mb: 50 } };
  const { body } = await ask(runtime, "POST", "/jobs", { body: graph("own", [node]) });
  const job = await until("the job is queued", async () => {
    const detail = (await call(runtime, "GET", `/jobs/${body.id}`)).job as JsonObject;
    return detail.status === "queued" && detail;
  });
  assert.equal(job.status_reason, WAITS);
  const progress = await call(runtime, "GET", `/jobs/${body.id}/workflow-progress`);
  assert.deepEqual(
    [progress.status_reason, (progress.progress as JsonObject).label],
    [WAITS, "Waiting for resources, 0 of 1 agents done"],
  );
  await holder.end();
  const done = await until("the job has completed", async () => {
    const detail = (await call(runtime, "GET", `/jobs/${body.id}`)).job as JsonObject;
    return detail.status === "completed" && detail;
  });
  assert.equal("status_reason" in done, false);
});

test("memory is given back by a run that is cancelled, whether it waits or runs, and by a command that fails", async () => {
  const holder = await heldRun("cancelled", 60);
  await holder.begins();
  const waiter = await heldRun("never", 50);
  await isQueued(waiter.runId);
  for (const { runId } of [waiter, holder]) {
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    await ended(program, runId);
  }
  const node = { ...executor("fails", ["false"]), resources: { memory_mb: 100 } };
  const jobId = await createJob(program, graph("failing", [node]));
  assert.equal((await ended(program, await startRun(program, jobId))).run.status, "failed");
  await until("nothing is reserved", async () => (await reservedMiB()) === 0);
});

test("after a restart what runs has its memory again, once, and what waited waits", async () => {
  const holder = await heldRun("again", 60);
  await holder.begins();
  const waiter = await heldRun("behind", 50);
  await isQueued(waiter.runId);
  await program.stop();
  program = await startGatewayHere({ home });
  const held = await until("one of the two runs", async () => {
    const runs = await walk(program, "/runs?status=running");
    return runs.length === 1 && runs[0]!;
  });
  const isHolder = held.run_id === holder.runId;
  assert.equal(await reservedMiB(), isHolder ? 60 : 50);
  const [first, second] = isHolder ? [holder, waiter] : [waiter, holder];
  await isQueued(second.runId);
  assert.equal(await first.end(), "completed");
  assert.equal(await second.end(), "completed");
  assert.equal(await reservedMiB(), 0);
});

test("more memory is granted at once when the limits allow it, and less takes none away", async () => {
  const holder = await heldRun("large", 60);
  await holder.begins();
  const waiter = await heldRun("next", 50);
  await isQueued(waiter.runId);
  await limitTo(110);
  await waiter.begins();
  await limitTo(50);
  assert.equal(await reservedMiB(), 110);
  assert.equal(await waiter.end(), "completed");
  assert.equal(await holder.end(), "completed");
  await limitTo(100);
});
