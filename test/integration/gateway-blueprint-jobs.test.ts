// Jobs of catalog blueprints through the real program: ready at once or when the blueprint has been added, whatever
// happens to the program meanwhile.

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { jobIs, labelIs, readyJob, type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import { succeed } from "../support/blueprint-operations.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  ended,
  pathsOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const quick = graph("quick", [router("in")]);
const services = { name: "whole", port: 4711 };
const offering = {
  ...quick,
  nodes: [{ ...executor("in", ["true"]), services: [{ name: "part", port: 4712 }] }],
  services,
};
/** Its addition lasts until there is a file with this name in the catalog. */
const waiting = (gate: string) => {
  const prepare = ["/bin/sh", "-c", `until [ -e '${gate}' ]; do sleep 0.02; done`];
  return { ...quick, resources: [{ name: "index", prepare }] };
};

const failing = executor("work", ["false"]);

let catalog: TestCatalog;
let program: Program;
before(async () => {
  catalog = await testCatalog();
  const blueprints = {
    digest: { ...quick, metadata: { name: "A digest" } },
    offering,
    listed: quick,
    grown: graph("grown", [router("in"), failing], [["in", "work"]]),
    slow: waiting(join(catalog.folder, "open")),
    broken: { graph_id: "broken" },
  };
  for (const [id, manifest] of Object.entries(blueprints)) await catalog.write(id, manifest);
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

describe("POST /jobs with a blueprint_id", () => {
  test("of a blueprint that is not added answers at once; the job is ready when it is", async () => {
    const created = await ask(program, "POST", "/jobs", { body: { blueprint_id: "digest" } });
    assert.equal(created.status, 201, created.text);
    const { job_id: jobId, source, name, status, graph_id } = created.body;
    assert.deepEqual(
      [source, name, status, graph_id],
      [{ blueprint_id: "digest" }, "A digest", "preparing", "quick"],
    );
    assert.equal(created.headers.get("location"), `/api/v1/jobs/${jobId}`);
    const ready = await jobIs(program, String(jobId), "ready");
    assert.ok(Number(ready.revision) > Number(created.body.revision), "its ETag changes");
    await completed(program, String(jobId));
  });

  test("of a blueprint that is added is ready at once, with its manifest and services", async () => {
    await readyJob(program, "offering");
    const job = await call(program, "POST", "/jobs", { blueprint_id: "offering", name: "Mine" });
    assert.deepEqual([job.status, job.name], ["ready", "Mine"]);
    const full = await call(program, "GET", `/jobs/${job.job_id}?view=full`);
    assert.deepEqual(full.services, [services, { name: "part", port: 4712, node_id: "in" }]);
    assert.equal((full.manifest as JsonObject).graph_id, "quick");
  });

  test("of an unknown blueprint is refused at its place; of a broken one with what is wrong", async () => {
    const unknown = await ask(program, "POST", "/jobs", { body: { blueprint_id: "nothing" } });
    assertProblem(unknown, 422, "validation_failed");
    assert.deepEqual(pathsOf(unknown), ["/blueprint_id"]);
    const broken = await ask(program, "POST", "/jobs", { body: { blueprint_id: "broken" } });
    assertProblem(broken, 422, "validation_failed");
    const mistakes = await ask(program, "GET", "/blueprints/broken");
    const placed = ({ path, code }: JsonObject) => `${path} ${code}`;
    const listed = (mistakes.body.errors as JsonObject[]).map(placed);
    assert.deepEqual((broken.body.errors as JsonObject[]).map(placed), listed);
    const judged = await ask(program, "POST", "/blueprints/broken/validate", { body: {} });
    assert.deepEqual((judged.body.errors as JsonObject[]).map(placed), listed);
    const both = { blueprint_id: "digest", bundle_id: "bundle_1" };
    assertProblem(await ask(program, "POST", "/jobs", { body: both }), 422, "validation_failed");
  });

  test("under a key makes one job, also when it is sent again after the addition", async () => {
    const headers = { "idempotency-key": "one-job" };
    const body = { blueprint_id: "digest", name: "Once" };
    const first = await ask(program, "POST", "/jobs", { body, headers });
    const again = await ask(program, "POST", "/jobs", { body, headers });
    assert.equal(again.text, first.text);
    const jobs = await walk(program, "/jobs?blueprint_id=digest");
    assert.equal(jobs.filter(({ name }) => name === "Once").length, 1);
  });
});

test("GET /jobs shows the jobs of one blueprint when it is asked for, and its pages hold together", async () => {
  const made = [];
  for (let n = 0; n < 3; n++) made.push(await readyJob(program, "listed"));
  await completed(program, made[0] ?? "");
  const ids = async (query: string) => (await walk(program, `/jobs?${query}`, 2)).map(({ job_id }) => job_id);
  assert.deepEqual(await ids("blueprint_id=listed"), made.toReversed());
  assert.deepEqual(await ids("blueprint_id=listed&include_terminal=false"), made.slice(1).toReversed());
  assert.deepEqual(await ids("blueprint_id=nothing"), []);
});

test("the grid of a job whose blueprint was added again with another graph has the agents of now, found in old runs by their ids", async () => {
  const jobId = await readyJob(program, "grown");
  const first = await startRun(program, jobId);
  await ended(program, first);
  const edges = [
    ["in", "check"],
    ["check", "work"],
  ] as const;
  await catalog.write(
    "grown",
    graph("grown", [failing, router("check"), router("in")], edges, { entrypoints: ["in"] }),
  );
  const isSeen = async () => (await call(program, "GET", "/blueprints/grown")).modified === true;
  await until("the change of the folder is seen", isSeen);
  await succeed(program, "grown", "additions");
  // With changes of the configuration, even none, it is of the blueprint as it is now.
  const second = await startRun(program, jobId, { config_overrides: {} });
  await ended(program, second);
  const { items, runs } = (await call(program, "GET", `/jobs/${jobId}/grid`)) as never as {
    readonly items: readonly JsonObject[];
    readonly runs: readonly JsonObject[];
  };
  assert.deepEqual(
    runs.map(({ run_id }) => run_id),
    [second, first],
  );
  assert.deepEqual(
    items.map(({ agent_id, states }) => [agent_id, states]),
    [
      ["work", ["failed", "failed"]],
      ["check", ["done", null]],
      ["in", ["done", "done"]],
    ],
  );
});

test("a job whose blueprint is being added is shown and run; a killed program's successor sees it through", async () => {
  const home = await temporaryHome();
  const env = { SVC_BLUEPRINT_CATALOG: catalog.folder };
  try {
    await using first = await startGateway({ env, home });
    const jobId = String((await call(first, "POST", "/jobs", { blueprint_id: "slow" })).job_id);
    const runId = await startRun(first, jobId);
    await labelIs(first, runId, /^Waiting for the blueprint to be added$/);
    const full = await call(first, "GET", `/jobs/${jobId}?view=full`);
    assert.deepEqual([full.status, full.manifest], ["preparing", undefined]);
    const progress = await call(first, "GET", `/jobs/${jobId}/workflow-progress`);
    assert.equal((progress.progress as JsonObject).label, "Waiting for the blueprint to be added");
    await first.kill();
    await using second = await startGatewayHere({ env, home });
    assert.equal((await call(second, "GET", `/jobs/${jobId}`)).status, "preparing");
    await writeFile(join(catalog.folder, "open"), "");
    assert.equal((await ended(second, runId)).run.status, "completed");
    await jobIs(second, jobId, "ready");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
