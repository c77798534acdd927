// Launches of blueprints through the real program: what is checked before they are accepted, what their workers get,
// and what is left of a launch that ends before it has begun.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { labelIs, readyJob, type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import type { Files } from "../support/bundle-files.ts";
import {
  ask,
  assertProblem,
  call,
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

/** Prints the names of its files and its configuration as the run's result. */
const report =
  'process.stdout.write(JSON.stringify({ complete_run: { files: fs.readdirSync("documents"), config: JSON.parse(process.env.SVC_BLUEPRINT_CONFIG_JSON) } }))';
const reader = graph("reader", [
  executor("work", [process.execPath, "-e", report], { upload_path: "input", workdir: "input" }),
]);
const config = {
  greeting: "package",
  documents: { folder: "" },
  local_inputs: {
    folders: [
      { config_path: "documents.folder", payload_path: "input/documents", runtime_path: "documents" },
    ],
  },
};
const files: Files = {
  "config/default.json": config,
  "payloads/input/own.txt": "own",
};

let catalog: TestCatalog;
let users: string;
let program: Program;
before(async () => {
  catalog = await testCatalog();
  users = await mkdtemp(join(tmpdir(), "troupe users "));
  await catalog.write("reader", reader, files);
  await catalog.write("needy", { ...reader, requirements: { commands: ["no-such-program"] } });
  await catalog.write("unsound", { graph_id: "unsound" });
  await catalog.write("plain", graph("plain", [router("in")]));
  await catalog.write("cancelled", reader, waiting("never"));
  await catalog.write("killed", reader, waiting("open"));
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
  await rm(users, { recursive: true });
});

/** A launch whose staged validation lasts until the user has a file with this name. */
const waiting = (gate: string): Files => ({
  ...files,
  "payloads/validators/wait.sh": `[ "$SVC_VALIDATION_STAGE" = native ] || until [ -e '${join(users, gate)}' ]; do sleep 0.02; done\n`,
});

/** A folder of the user's with one file. */
async function folderWith(name: string): Promise<string> {
  const folder = join(users, `of ${name}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, name), name);
  return folder;
}

const preparedIn = (home: string, runId: string) => join(home, "runs", runId, "prepared");

describe("POST /blueprints/{id}/runs", () => {
  test("makes a job and a run at once, adds the blueprint first, and takes the user's folder along", async () => {
    const folder = await folderWith("a.txt");
    const body = { config_overrides: { documents: { folder } }, name: "Letters" };
    const answer = await ask(program, "POST", "/blueprints/reader/runs", { body });
    assert.equal(answer.status, 202, answer.text);
    const { run_id: runId, job_id: jobId, status } = answer.body;
    assert.equal(status, "pending");
    assert.equal(answer.headers.get("location"), `/api/v1/runs/${runId}`);
    const { run } = await ended(program, String(runId));
    assert.equal(run.status, "completed", JSON.stringify(run.failure));
    assert.deepEqual(run.trigger, { kind: "blueprint", id: "reader" });
    const result = run.result as { readonly files: unknown; readonly config: JsonObject };
    assert.deepEqual(result.files, ["a.txt"]);
    assert.deepEqual(result.config.documents, { folder: "documents" });
    const job = await call(program, "GET", `/jobs/${jobId}`);
    assert.deepEqual([job.name, job.resolved_configuration], ["Letters", {}]);
  });

  test("under a key launches once; the same key with another body is refused", async () => {
    const folder = await folderWith("once.txt");
    const body = { config_overrides: { documents: { folder } }, name: "Once only" };
    const headers = { "idempotency-key": "launch" };
    const [first, second] = await Promise.all([
      ask(program, "POST", "/blueprints/reader/runs", { body, headers }),
      ask(program, "POST", "/blueprints/reader/runs", { body, headers }),
    ]);
    assert.equal(second.text, first.text);
    assert.equal(second.headers.get("location"), first.headers.get("location"));
    const jobs = await walk(program, "/jobs?blueprint_id=reader");
    assert.equal(jobs.filter(({ name }) => name === "Once only").length, 1);
    const other = await ask(program, "POST", "/blueprints/reader/runs", { body: {}, headers });
    assertProblem(other, 409, "idempotency_key_reused");
    await ended(program, String(first.body.run_id));
  });

  test("refuses what cannot be, and makes nothing", async () => {
    const before = (await walk(program, "/jobs")).length;
    const body = { config_overrides: { documents: { folder: "/nowhere" } } };
    const missing = await ask(program, "POST", "/blueprints/reader/runs", { body });
    assertProblem(missing, 422, "validation_failed");
    assert.deepEqual(pathsOf(missing), ["/config_overrides/documents/folder"]);
    assertProblem(
      await ask(program, "POST", "/blueprints/nothing/runs", { body: {} }),
      404,
      "blueprint_not_found",
    );
    assertProblem(
      await ask(program, "POST", "/blueprints/reader/runs", { body: { config: {} } }),
      422,
      "validation_failed",
    );
    const needy = await ask(program, "POST", "/blueprints/needy/runs", { body: {} });
    const { errors } = assertProblem(needy, 409, "requirements_not_met") as { readonly errors: JsonObject[] };
    assert.match(String(errors[0]?.message), /no-such-program/);
    assert.equal((await walk(program, "/jobs")).length, before);
  });
});

describe("POST /blueprints/{id}/validate", () => {
  const validate = (blueprintId: string, body: JsonObject) =>
    call(program, "POST", `/blueprints/${blueprintId}/validate`, body);

  test("says that all is well, or everything that is not, and makes nothing", async () => {
    const before = (await walk(program, "/jobs")).length;
    const folder = await folderWith("v.txt");
    const fine = await validate("reader", { config: { documents: { folder } } });
    assert.deepEqual([fine.valid, fine.errors], [true, []]);
    const wrong = await validate("reader", {
      config: { documents: { folder: "/nowhere" }, token: "********" },
      inputs: { $entrypoints: { nobody: [] } },
    });
    assert.equal(wrong.valid, false);
    const paths = (wrong.errors as JsonObject[]).map(({ path }) => path).toSorted();
    assert.deepEqual(paths, ["/config/documents/folder", "/config/token", "/inputs"]);
    assert.equal((await walk(program, "/jobs")).length, before);
  });

  test("of a broken blueprint says what is wrong with it", async () => {
    const answer = await validate("unsound", {});
    assert.equal(answer.valid, false);
    assert.ok((answer.errors as JsonObject[]).length > 0);
  });
});

describe("a run with configuration overrides", () => {
  test("shows its secrets masked, in every answer and in its files", async () => {
    const folder = await folderWith("s.txt");
    const jobId = await readyJob(program, "reader");
    const overrides = { documents: { folder }, api_key: "s3cret-of-the-run" };
    const accepted = await ask(program, "POST", `/jobs/${jobId}/runs`, {
      body: { config_overrides: overrides },
    });
    const masked = { documents: { folder }, api_key: "********" };
    assert.deepEqual(accepted.body.config_overrides, masked);
    const runId = String(accepted.body.run_id);
    const { run } = await ended(program, runId);
    assert.deepEqual(run.config_overrides, masked);
    const { items } = await call(program, "GET", `/runs/${runId}/artifacts`);
    const record = (items as JsonObject[]).find(({ name }) => name === "run.json");
    const text = (await ask(program, "GET", String(record?.url))).text;
    assert.ok(text.includes("********") && !text.includes("s3cret-of-the-run"), text);
  });

  test("twenty at once each get their own configuration and files", async () => {
    const jobId = await readyJob(program, "reader");
    const names = Array.from({ length: 20 }, (_, n) => `file-${n}.txt`);
    const runIds = await Promise.all(
      names.map(async (name) => {
        const folder = await folderWith(name);
        return startRun(program, jobId, { config_overrides: { greeting: name, documents: { folder } } });
      }),
    );
    for (const [n, runId] of runIds.entries()) {
      const { run } = await ended(program, runId);
      assert.equal(run.status, "completed", JSON.stringify(run.failure));
      const result = run.result as { readonly files: unknown; readonly config: JsonObject };
      assert.deepEqual([result.files, result.config.greeting], [[names[n]], names[n]]);
    }
    for (const runId of runIds) {
      await until("nothing that was prepared", () => !existsSync(preparedIn(program.home, runId)));
    }
  });
});

describe("a launch that is being prepared", () => {
  test("that is cancelled leaves no file, and its run is cancelled at once", async () => {
    const folder = await folderWith("c.txt");
    const jobId = await readyJob(program, "cancelled");
    const runId = await startRun(program, jobId, { config_overrides: { documents: { folder } } });
    await labelIs(program, runId, /validators/);
    const run = await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    assert.equal(run.status, "cancelled");
    const prepared = preparedIn(program.home, runId);
    await until("nothing on disk", () => !existsSync(prepared) && !existsSync(`${prepared}.tmp`));
  });

  test("by a program that is killed is prepared anew by the next one", async () => {
    const folder = await folderWith("k.txt");
    const home = await temporaryHome();
    const env = { SVC_BLUEPRINT_CATALOG: catalog.folder };
    try {
      await using first = await startGateway({ env, home });
      const jobId = await readyJob(first, "killed", { resolved_configuration: { documents: { folder } } });
      const runId = await startRun(first, jobId);
      await labelIs(first, runId, /validators/);
      await first.kill();
      await writeFile(join(users, "open"), "");
      await using second = await startGatewayHere({ env, home });
      const { run } = await ended(second, runId);
      assert.equal(run.status, "completed", JSON.stringify(run.failure));
      assert.deepEqual((run.result as JsonObject).files, ["k.txt"]);
      await until("nothing that was prepared", () => !existsSync(preparedIn(home, runId)));
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

test("a run that needs nothing of this is launched from the shared snapshot", async () => {
  const runId = await startRun(program, await readyJob(program, "plain"));
  assert.equal((await ended(program, runId)).run.status, "completed");
  assert.ok(!existsSync(preparedIn(program.home, runId)));
});
