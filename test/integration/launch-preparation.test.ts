// Launch preparation through the real program: the layers of a configuration as a worker sees them, what a blueprint
// brings along, folders that must not be taken, and large folders whose copy is stopped or interrupted.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, open, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { labelIs, readyJob, type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import type { Files } from "../support/bundle-files.ts";
import { ask, assertProblem, call, ended, pathsOf, startGateway, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { slowReads } from "../support/slow-reads.ts";
import { until } from "../support/until.ts";

/** Gives its configuration, the files that it finds and its resources as the run's result. */
const worker = `
import { existsSync, readdirSync, readFileSync } from "node:fs";
const config = JSON.parse(process.env.SVC_BLUEPRINT_CONFIG_JSON);
const folder = config.documents?.folder;
const resources = process.env.SVC_RESOURCES_DIR;
const models = process.env.SVC_MODELS_DIR;
console.log(JSON.stringify({ complete_run: {
  config,
  files: folder && existsSync(folder) ? readdirSync(folder).sort() : null,
  index: resources ? readFileSync(resources + "/index/words.txt", "utf8") : null,
  models: models ? readdirSync(models).map((name) => name + ": " + readFileSync(models + "/" + name)) : null,
} }));
`;
const reader = graph("reader", [
  executor("work", ["{node}", "worker.mjs"], { upload_path: "input", workdir: "input" }),
]);
const folders = [
  {
    config_path: "documents.folder",
    payload_path: "input/mn_local_inputs/documents",
    runtime_path: "mn_local_inputs/documents",
    allowed_extensions: [".txt", ".bin"],
    linked_config_paths: ["reader.source"],
  },
];
const files: Files = {
  "config/default.json": {
    by: { all: "default", job: "default", run: "default" },
    local_inputs: { folders },
  },
  "config/overwrite.json": { by: { all: "overwrite" }, reader: { source: "", depth: 1 } },
  "payloads/input/worker.mjs": worker,
  "payloads/words.txt": "prepared once",
};
const prepares = 'read word < words.txt; echo "$word for all" > words.txt';

let catalog: TestCatalog;
let users: string;
let program: Program;
const env = () => ({ SVC_BLUEPRINT_CATALOG: catalog.folder });
before(async () => {
  catalog = await testCatalog();
  users = await mkdtemp(join(tmpdir(), "troupe users "));
  await catalog.write("reader", reader, files);
  const resources = [{ name: "index", from: "words.txt", prepare: ["/bin/sh", "-c", prepares] }];
  await catalog.write("indexed", { ...reader, resources }, files);
  const models = [{ model_id: "org/own", path: "words.txt" }];
  await catalog.write("modelled", { ...reader, models }, files);
  const requirements = { models: ["org/own"] };
  await catalog.write("borrowing", { ...reader, requirements }, files);
  const native = `[ "$SVC_VALIDATION_STAGE" = staged ] || echo '{"errors": ["not from there"]}'\n`;
  await catalog.write("particular", reader, { ...files, "payloads/validators/place.sh": native });
  program = await startGateway({ env: { ...env(), ...slowReads } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
  await rm(users, { recursive: true });
});

async function folderWith(...names: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(users, "docs "));
  for (const name of names) await writeFile(join(folder, name), name);
  return folder;
}

/** A folder with one file that takes no room. */
async function largeFolder(sizeBytes: number): Promise<string> {
  const folder = await folderWith();
  await using file = await open(join(folder, "large.bin"), "w");
  await file.truncate(sizeBytes);
  return folder;
}

async function resultOf(gateway: Program, runId: string): Promise<JsonObject> {
  const { run } = await ended(gateway, runId);
  assert.equal(run.status, "completed", JSON.stringify(run.failure));
  return run.result as JsonObject;
}

const nothingPrepared = (home: string, runId: string) =>
  until("nothing that was prepared", () => {
    const prepared = join(home, "runs", runId, "prepared");
    return !existsSync(prepared) && !existsSync(`${prepared}.tmp`);
  });

test("a worker sees the layers in their order, and its folder under the name that it was staged under", async () => {
  const folder = await folderWith("a.txt", "b.TXT", "c.png", "-rf.txt", "line\nend.txt");
  const jobId = await readyJob(program, "reader", {
    resolved_configuration: { by: { job: "job", run: "job" }, documents: { folder } },
  });
  const overrides = { by: { run: "run" }, documents: { folder: " " } };
  const runId = await startRun(program, jobId, { config_overrides: overrides });
  const result = await resultOf(program, runId);
  assert.deepEqual(result.config, {
    by: { all: "overwrite", job: "job", run: "run" },
    local_inputs: { folders },
    reader: { source: "mn_local_inputs/documents", depth: 1 },
    documents: { folder: "mn_local_inputs/documents" },
  });
  assert.deepEqual(result.files, ["-rf.txt", "a.txt", "b.TXT", "line\nend.txt"]);
  await nothingPrepared(program.home, runId);
});

test("a worker finds what was prepared once for its blueprint", async () => {
  const runId = await startRun(program, await readyJob(program, "indexed"));
  assert.deepEqual((await resultOf(program, runId)).index, "prepared once for all\n");
});

test("a worker finds the models that its package brings along, and those that it requires of others", async () => {
  for (const blueprintId of ["modelled", "borrowing"]) {
    const runId = await startRun(program, await readyJob(program, blueprintId));
    assert.deepEqual((await resultOf(program, runId)).models, ["org%2Fown: prepared once"]);
    await nothingPrepared(program.home, runId);
  }
});

test("a folder from which a link leads away is refused before the run is there, and the link is named", async () => {
  const folder = await folderWith("a.txt");
  await mkdir(join(folder, "sub"));
  await symlink("../../../../etc/passwd", join(folder, "sub", "notes.txt"));
  const jobId = await readyJob(program, "reader");
  const body = { config_overrides: { documents: { folder } } };
  const refused = await ask(program, "POST", `/jobs/${jobId}/runs`, { body });
  const problem = assertProblem(refused, 422, "validation_failed");
  assert.deepEqual(pathsOf(refused), ["/config_overrides/documents/folder"]);
  assert.match(String(problem.detail), /symlink "sub\/notes\.txt" leads out of it/);
});

test("a folder of the runtime's own is refused, and the answer says nothing of where it is", async () => {
  const jobId = await readyJob(program, "reader");
  const body = { config_overrides: { documents: { folder: "/" } } };
  const refused = await ask(program, "POST", `/jobs/${jobId}/runs`, { body });
  assertProblem(refused, 422, "validation_failed");
  assert.ok(!refused.text.includes(program.home));
});

test("validators are asked about native paths at the first run too, whose blueprint is added only then", async () => {
  const first = await ask(program, "POST", "/blueprints/particular/runs", { body: {} });
  assert.equal(first.status, 202, first.text);
  const { run } = await ended(program, String(first.body.run_id));
  const { code } = run.failure as JsonObject;
  assert.equal(code, "preparation.input_invalid");
  assert.match(JSON.stringify(run.failure), /not from there/);
  const second = await ask(program, "POST", "/blueprints/particular/runs", { body: {} });
  assert.match(String(assertProblem(second, 422, "validation_failed").detail), /not from there/);
});

test("the copy of a large folder tells how far it is, and ends soon after its run is cancelled", async () => {
  const folder = await largeFolder(8 * 1024 ** 3);
  const jobId = await readyJob(program, "reader");
  const runId = await startRun(program, jobId, { config_overrides: { documents: { folder } } });
  await labelIs(program, runId, /^Copying docs .*: 0 of 1 files, [\d.]+ [kMG]?B(ytes)? of 8\.6 GB$/);
  const run = await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  assert.equal(run.status, "cancelled");
  await nothingPrepared(program.home, runId);
});

test("a program that is killed in the middle of a copy leaves nothing that counts: the next one copies anew", async () => {
  const folder = await largeFolder(64 * 1024 ** 2);
  const home = await temporaryHome();
  const go = join(users, "go on");
  // Holds what is there of it, should the copy be faster than the one that waits for its beginning.
  await catalog.write("held", reader, { ...files, "payloads/validators/wait.sh": waitFor(go) });
  try {
    await using first = await startGateway({ env: env(), home });
    const runId = await startRun(first, await readyJob(first, "held"), {
      config_overrides: { documents: { folder } },
    });
    await until("the copy has begun", () =>
      existsSync(join(home, "runs", runId, "prepared.tmp/payload/input/mn_local_inputs")),
    );
    await first.kill();
    await writeFile(go, "");
    await using second = await startGatewayHere({ env: env(), home });
    assert.deepEqual((await resultOf(second, runId)).files, ["large.bin"]);
    await nothingPrepared(home, runId);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("a run that waits for its launch when the program is killed waits for its services after the restart", async () => {
  const home = await temporaryHome();
  const go = join(users, "go");
  try {
    const listen = `require("node:net").createServer().listen(0, "127.0.0.1", function () {
      require("node:fs").writeFileSync(process.argv[1], String(this.address().port));
    })`;
    const portFile = join(users, "port");
    const worker = executor("listen", ["{node}", "-e", listen, portFile], { lifecycle: "long_lived" });
    const check = { type: "script", command: ["test", "-s", portFile], interval_ms: 1_000 };
    const service = { name: "index", checks: [check] };
    await catalog.write(
      "offering",
      graph("offering", [{ ...worker, services: [service] }], [], { type: "service" }),
      { "payloads/about.txt": "for its checks to start in" },
    );
    await catalog.write(
      "needy",
      { ...graph("needy", [router("in")]), required_services: ["index"] },
      // Holds the launch at a moment when its services have been looked at.
      { "payloads/validators/wait.sh": waitFor(go) },
    );
    await using first = await startGateway({ env: env(), home });
    await startRun(first, await readyJob(first, "offering"));
    await until("a service that passes", async () => {
      return (await ask(first, "GET", "/services/index/resolve")).status === 200;
    });
    const runId = await startRun(first, await readyJob(first, "needy"));
    await labelIs(first, runId, /validators/);
    await first.kill();
    await rm(portFile);
    await writeFile(go, "");
    await using second = await startGatewayHere({ env: env(), home });
    const { run } = await ended(second, runId);
    assert.equal(run.status, "completed", JSON.stringify(run.failure));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

function waitFor(file: string): string {
  return `if [ "$SVC_VALIDATION_STAGE" = staged ]; then until [ -e '${file}' ]; do sleep 0.02; done; fi\n`;
}
