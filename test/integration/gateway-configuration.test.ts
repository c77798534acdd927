// A job's configuration: what clients see of it, and what workers get. Sentences in quotes are the specification's
// own, shortened.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  pathsOf,
  startGateway,
  startRun,
  uploadBundle,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import type { Program } from "../support/program.ts";

const SECRET = "s3cret-value-of-the-client";
const FROM_ENV = "value-from-the-environment";
const MASK = "********";

let program: Program;
before(async () => {
  program = await startGateway({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4", ACME_REGION: FROM_ENV } });
});
after(() => program.stop());

/** The digest, not the text: what a worker prints of its secrets is not shown. */
const digest = (text: string) => createHash("sha256").update(text).digest("hex");
const tell = `printf %s "$SVC_BLUEPRINT_CONFIG_JSON" | sha256sum | cut -c1-64 > $SVC_OUTPUT_DIR/digest`;
const manifest = graph("configured", [executor("in", tell)]);

const jobWith = (configuration: JsonObject, files: Readonly<Record<string, JsonObject>> = {}) =>
  createJob(program, manifest, { resolved_configuration: configuration }, files);

/** Asserts what configuration a worker of a new run gets. */
async function assertGiven(jobId: string, expected: JsonObject): Promise<void> {
  const { run } = await completed(program, jobId);
  const [file] = await walk(program, `/runs/${run.run_id}/artifacts?evidence=false`);
  const { text } = await ask(program, "GET", String(file?.url));
  assert.equal(text.trim(), digest(JSON.stringify(expected)), JSON.stringify(expected));
}

const patch = (jobId: string, resolved_configuration: JsonObject) =>
  ask(program, "PATCH", `/jobs/${jobId}`, {
    body: { resolved_configuration },
    headers: { "if-match": "*" },
  });

/** The files of the home that have this text in them. */
function filesWith(text: string, folder = program.home): readonly string[] {
  // Not `recursive`, which fails when a folder goes before its turn has come.
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesWith(text, path);
    return entry.isFile() && bytesOf(path).includes(text) ? [path] : [];
  });
}

/** Nothing when it is gone: what an ended attempt leaves is removed at any time. */
function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    return nothingWhenGone(error) ?? [];
  }
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    return nothingWhenGone(error) ?? Buffer.of();
  }
}

function nothingWhenGone(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  return null;
}

describe("resolved_configuration", () => {
  test('"Job configuration": it reaches workers as SVC_BLUEPRINT_CONFIG_JSON', async () => {
    const configuration = {
      language: "en",
      deep: { list: [1, { a: null }], on: true },
      text: 'quote " and ü',
    };
    await assertGiven(await jobWith(configuration), configuration);
  });

  test("it is laid over the bundle's own, key by key", async () => {
    const files = { "config/default.json": { a: 1, deep: { b: 2, c: 3 }, list: [1] } };
    const jobId = await jobWith({ deep: { c: 4 }, list: [2], d: 5 }, files);
    await assertGiven(jobId, { a: 1, deep: { b: 2, c: 4 }, list: [2], d: 5 });
    assert.deepEqual((await call(program, "GET", `/jobs/${jobId}`)).resolved_configuration, {
      deep: { c: 4 },
      list: [2],
      d: 5,
    });
  });

  test('"Supplied when creating or updating a definition": later runs get the new one', async () => {
    const jobId = await jobWith({ version: 1 });
    await assertGiven(jobId, { version: 1 });
    assert.equal((await patch(jobId, { version: 2 })).status, 200);
    await assertGiven(jobId, { version: 2 });
  });

  test('"SVC_JOB_ID" is the job\'s public id, "SVC_RUN_ID" the run\'s', async () => {
    const command = "echo $SVC_JOB_ID $SVC_RUN_ID > $SVC_OUTPUT_DIR/ids";
    const jobId = await createJob(program, graph("ids", [executor("in", command)]));
    const { run } = await completed(program, jobId);
    const [file] = await walk(program, `/runs/${run.run_id}/artifacts?evidence=false`);
    assert.equal((await ask(program, "GET", String(file?.url))).text, `${jobId} ${run.run_id}\n`);
  });
});

describe("secrets", () => {
  const configuration = {
    api_key: SECRET,
    nested: { db_password: SECRET, tokens: 3 },
    list: [{ access_token: SECRET }],
    public: "shown",
  };
  const shown = {
    api_key: MASK,
    nested: { db_password: MASK, tokens: 3 },
    list: [{ access_token: MASK }],
    public: "shown",
  };

  test('"shown as "********" in every answer and event, and given in plaintext to workers only"', async () => {
    const created = await ask(program, "POST", "/jobs", {
      body: { bundle_id: await uploadBundle(program, manifest), resolved_configuration: configuration },
      headers: { "idempotency-key": "secrets" },
    });
    const jobId = String(created.body.job_id);
    assert.deepEqual(created.body.resolved_configuration, shown);
    await assertGiven(jobId, configuration);
    const [run] = await walk(program, `/jobs/${jobId}/runs`);
    for (const path of [
      `/jobs/${jobId}`,
      `/jobs/${jobId}?view=full`,
      "/jobs",
      `/runs/${run?.run_id}`,
      `/runs/${run?.run_id}/events`,
      `/runs/${run?.run_id}/stream`,
    ]) {
      const { text } = await ask(program, "GET", path);
      assert.ok(!text.includes(SECRET), path);
      assert.ok(!text.includes("$sealed"), path);
    }
  });

  test('"stored sealed": no file of the home has it in plaintext', async () => {
    await assertGiven(await jobWith(configuration), configuration);
    assert.deepEqual(filesWith(SECRET), []);
  });

  test("what a worker prints of it is not shown", async () => {
    const loud = `echo "$SVC_BLUEPRINT_CONFIG_JSON"; echo "$SVC_BLUEPRINT_CONFIG_JSON" >&2; exit 1`;
    const bundle = await uploadBundle(program, graph("loud", [executor("in", loud)]));
    const { job_id } = await call(program, "POST", "/jobs", {
      bundle_id: bundle,
      resolved_configuration: { api_key: SECRET },
    });
    const { run, events } = await ended(program, await startRun(program, String(job_id)));
    assert.equal(run.status, "failed");
    assert.ok(!JSON.stringify([run, events]).includes(SECRET));
    const logs = await walk(program, `/runs/${run.run_id}/logs`);
    assert.ok(logs.length > 0 && !JSON.stringify(logs).includes(SECRET));
  });

  test('""********" in a PATCH keeps the stored value"; another value replaces it, null takes it away', async () => {
    const jobId = await jobWith(configuration);
    const kept = await patch(jobId, {
      api_key: MASK,
      nested: { db_password: MASK, tokens: 4 },
      public: "new",
    });
    assert.deepEqual(kept.body.resolved_configuration, {
      ...shown,
      nested: { ...shown.nested, tokens: 4 },
      public: "new",
    });
    await assertGiven(jobId, {
      ...configuration,
      nested: { db_password: SECRET, tokens: 4 },
      public: "new",
    });
    const changed = await patch(jobId, { api_key: `${SECRET}-2`, nested: null, list: null });
    assert.deepEqual(changed.body.resolved_configuration, { api_key: MASK, public: "new" });
    await assertGiven(jobId, { api_key: `${SECRET}-2`, public: "new" });
    const gone = await patch(jobId, { api_key: null });
    assert.deepEqual(gone.body.resolved_configuration, { public: "new" });
    await assertGiven(jobId, { public: "new" });
  });

  test("a mask where nothing is stored, or an encrypted value from outside: 422 at that path", async () => {
    const jobId = await jobWith({ api_key: SECRET });
    for (const [sent, path] of [
      [{ other_key: { api_key: MASK } }, "/resolved_configuration/other_key/api_key"],
      [{ a: { $sealed: "x" } }, "/resolved_configuration/a"],
    ] as const) {
      const answer = await patch(jobId, sent);
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), [path]);
    }
    const body = {
      bundle_id: await uploadBundle(program, manifest),
      resolved_configuration: { api_key: MASK },
    };
    assertProblem(await ask(program, "POST", "/jobs", { body }), 422, "validation_failed");
  });
});

describe("too many secrets", () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`token${n}`, "s"]));

  test("are refused as one mistake, in configurations and inputs; below one key they are one", async () => {
    const jobId = await jobWith(many(500));
    const bundle_id = await uploadBundle(program, manifest);
    for (const [path, body] of [
      ["/jobs", { bundle_id, resolved_configuration: many(80_000) }],
      [`/jobs/${jobId}/runs`, { inputs: many(501) }],
      [`/jobs/${jobId}/runs`, { inputs: { $entrypoints: { in: [many(400), many(101)] } } }],
    ] as const) {
      const answer = await ask(program, "POST", path, { body });
      const { errors } = assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(
        (errors as JsonObject[]).map(({ code }) => code),
        ["too_many_secrets"],
      );
    }
    await jobWith({ secrets: many(2_000) });
  });

  test("are not looked at in a job of a bundle that is not there, which is said too", async () => {
    const body = { bundle_id: "none", resolved_configuration: many(80_000) };
    const answer = await ask(program, "POST", "/jobs", { body });
    assertProblem(answer, 422, "validation_failed");
    assert.ok(pathsOf(answer).includes("/bundle_id"));
  });

  test("in a package make it wrong", async () => {
    const files = { "config/default.json": many(501) };
    await assert.rejects(createJob(program, manifest, {}, files), /too_many_secrets/);
  });
});

describe('{"$env": "NAME"}', () => {
  test('"is resolved from the runtime\'s environment at launch and never stored"', async () => {
    const configuration = { region: { $env: "ACME_REGION" }, api_key: { $env: "ACME_REGION" } };
    const jobId = await jobWith(configuration);
    const { resolved_configuration } = await call(program, "GET", `/jobs/${jobId}`);
    assert.deepEqual(resolved_configuration, configuration, "shown as it is");
    await assertGiven(jobId, { region: FROM_ENV, api_key: FROM_ENV });
    assert.deepEqual(filesWith(FROM_ENV), []);
  });

  test("that names a secret of the runtime itself is refused, and named", async () => {
    const body = {
      bundle_id: await uploadBundle(program, manifest),
      resolved_configuration: { url: { $env: "SVC_DATABASE_URL" } },
    };
    const answer = await ask(program, "POST", "/jobs", { body });
    assertProblem(answer, 422, "validation_failed");
    assert.deepEqual(pathsOf(answer), ["/resolved_configuration/url"]);
    assert.match(JSON.stringify(answer.body), /SVC_DATABASE_URL/);
  });

  test("a variable that is not set fails the run, and says which", async () => {
    const jobId = await jobWith({ region: { $env: "ACME_ABSENT" } });
    const { run } = await ended(program, await startRun(program, jobId));
    assert.equal(run.status, "failed");
    assert.equal((run.failure as JsonObject).code, "configuration.variable_missing");
    assert.match(JSON.stringify(run.failure), /ACME_ABSENT/);
  });
});
