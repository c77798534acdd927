// Three real programs on one PostgreSQL: every door opens to everything, attempts run where there are slots, and what a killed
// program had is carried on by another one.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, happens, startGateway, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { returnPostgres, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const NAMES = ["a", "b", "c"] as const;
type Name = (typeof NAMES)[number];

let url: string;
let folder: string;
let gates: Gates;
const homes = {} as Record<Name, string>;
const nodes = {} as Record<Name, Program>;

before(async () => {
  [url, gates, folder] = await Promise.all([
    takePostgres(),
    makeGates(),
    mkdtemp(join(tmpdir(), "troupe-shared-")),
  ]);
  for (const name of NAMES) {
    homes[name] = await temporaryHome();
    nodes[name] = await start(name);
  }
});
after(async () => {
  await Promise.all(Object.values(nodes).map((node) => node.stop()));
  await Promise.all([
    returnPostgres(url),
    gates.remove(),
    ...[folder, ...Object.values(homes)].map((path) => rm(path, { recursive: true, force: true })),
  ]);
});

const start = (name: Name): Promise<Program> =>
  startGateway({
    home: homes[name],
    env: {
      SVC_DATABASE_URL: url,
      SVC_BLOB_URL: pathToFileURL(folder).href,
      SVC_SECRET_KEY: "00".repeat(32),
      SVC_NODE_NAME: name,
      SVC_NODE_LEASE_SECONDS: "10",
      SVC_EXECUTOR_MAX_CONCURRENCY: "2",
    },
  });

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
    const jobId = await createJob(nodes.a, waiter("waiter", [gate]));
    const runId = await startRun(nodes.a, jobId);
    await happens(nodes.b, runId, "sandbox_job_started");
    await call(nodes.c, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    for (const name of NAMES) {
      const { run, events } = await ended(nodes[name], runId);
      assert.equal(run.status, "cancelled");
      assert.deepEqual(
        events.map(({ id }) => id),
        events.map((_, n) => n + 1),
      );
    }
  });

  test("run the attempts of a job wherever slots are free", async () => {
    const paths = Array.from({ length: 6 }, (_, n) => gates.pipe(`fan-${n}`));
    const jobId = await createJob(nodes.a, waiter("fan", paths));
    const runId = await startRun(nodes.b, jobId);
    // Two slots on each node: one node alone would never run all of them at once.
    let started = 0;
    await happens(nodes.a, runId, ({ type }) => type === "sandbox_job_started" && ++started === paths.length);
    for (const path of paths) await gates.open(path);
    assert.equal((await ended(nodes.c, runId)).run.status, "completed");
  });

  test("carry on what a killed one had, and the killed one comes back", async () => {
    const gate = gates.pipe("killed");
    const policies = { recovery_mode: "cluster_recover" };
    const jobId = await createJob(nodes.a, waiter("killed", [gate], { policies }));
    const runId = await startRun(nodes.a, jobId);
    await happens(nodes.b, runId, "sandbox_job_started");
    await nodes.a.kill();
    await happens(nodes.b, runId, "job_recovered");
    await gates.open(gate);
    const { run, events } = await ended(nodes.c, runId);
    assert.equal(run.status, "completed");
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, n) => n + 1),
    );
    nodes.a = await start("a");
    assert.equal((await ended(nodes.a, runId)).run.status, "completed");
  });
});
