// Three real programs on one PostgreSQL: every door opens to everything, attempts run where there are slots, and what a killed
// program had is carried on by another one.

import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, happens, startGateway, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { temporaryHome } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";

const NAMES = ["a", "b", "c"] as const;

let gates: Gates;
let nodes: Nodes<(typeof NAMES)[number]>;
before(async () => {
  const env = () => ({ SVC_EXECUTOR_MAX_CONCURRENCY: "2" });
  [gates, nodes] = await Promise.all([makeGates(), Nodes.start(NAMES, { filesAreShared: true, env })]);
});
after(() => Promise.all([nodes[Symbol.asyncDispose](), gates.remove()]));

/** Each command waits until its gate is opened. */
const waiter = (name: string, gatesOf: readonly string[], more: JsonObject = {}) =>
  graph(
    name,
    [router("in"), ...gatesOf.map((gate, n) => executor(`wait-${n}`, ["cat", gate]))],
    gatesOf.map((_, n) => ["in", `wait-${n}`] as const),
    more,
  );

describe("three programs on one database", () => {
  test("show and control at every door what one of them runs", async () => {
    const gate = gates.pipe("control");
    const jobId = await createJob(nodes.of("a"), waiter("waiter", [gate]));
    const runId = await startRun(nodes.of("a"), jobId);
    await happens(nodes.of("b"), runId, "sandbox_job_started");
    await call(nodes.of("c"), "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    for (const name of NAMES) {
      const { run, events } = await ended(nodes.of(name), runId);
      assert.equal(run.status, "cancelled");
      assert.deepEqual(
        events.map(({ id }) => id),
        events.map((_, n) => n + 1),
      );
    }
  });

  test("run the attempts of a job wherever slots are free", async () => {
    const paths = Array.from({ length: 6 }, (_, n) => gates.pipe(`fan-${n}`));
    const jobId = await createJob(nodes.of("a"), waiter("fan", paths));
    const runId = await startRun(nodes.of("b"), jobId);
    // Two slots on each node: one node alone would never run all of them at once.
    let started = 0;
    await happens(
      nodes.of("a"),
      runId,
      ({ type }) => type === "sandbox_job_started" && ++started === paths.length,
    );
    for (const path of paths) await gates.open(path);
    assert.equal((await ended(nodes.of("c"), runId)).run.status, "completed");
  });

  test("refuse a copy of the home of one that runs, which stays as it is", async () => {
    const copy = await temporaryHome();
    await nodes.of("c").stop();
    await cp(nodes.homes.c, copy, { recursive: true });
    await nodes.start("c");
    await assert.rejects(
      startGateway({ home: copy, env: nodes.environmentOf("c") }),
      /remove node\.json from this home/,
    );
    const { items } = await call(nodes.of("a"), "GET", "/nodes");
    const states = (items as JsonObject[]).map(({ name, status }) => [name, status]);
    assert.deepEqual(
      states,
      NAMES.map((name) => [name, "ready"]),
    );
    await rm(copy, { recursive: true, force: true });
  });

  test("carry on what a killed one had, and the killed one comes back", async () => {
    const gate = gates.pipe("killed");
    const policies = { recovery_mode: "cluster_recover" };
    const jobId = await createJob(nodes.of("a"), waiter("killed", [gate], { policies }));
    const runId = await startRun(nodes.of("a"), jobId);
    await happens(nodes.of("b"), runId, "sandbox_job_started");
    await nodes.of("a").kill();
    await happens(nodes.of("b"), runId, "job_recovered");
    await gates.open(gate);
    const { run, events } = await ended(nodes.of("c"), runId);
    assert.equal(run.status, "completed");
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, n) => n + 1),
    );
    await nodes.start("a");
    assert.equal((await ended(nodes.of("a"), runId)).run.status, "completed");
  });
});
