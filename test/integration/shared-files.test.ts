// A program whose artifacts are in a store of their own: a folder that machines share, or a bucket.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { checkFiles } from "../../src/app/bytes.ts";
import { loadConfig } from "../../src/app/config.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { executor, graph } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { type Run, run } from "../support/job-watch.ts";
import { type Program, startProgram } from "../support/program.ts";
import { artifactsOf } from "../support/runtime-api.ts";
import { BUCKET, credentials, startS3 } from "../support/s3-server.ts";

const folder = await mkdtemp(join(tmpdir(), "troupe-shared-"));
const shared = join(folder, "of all machines");
await mkdir(shared);
const s3 = await startS3();
after(async () => {
  await s3.close();
  await rm(folder, { recursive: true, force: true });
});

const SECRET = credentials.secretAccessKey;
const inFolder = { SVC_BLOB_URL: pathToFileURL(shared).href };
const inBucket = {
  SVC_BLOB_URL: `s3://${BUCKET}/files?endpoint=${s3.endpoint}`,
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: SECRET,
};

const ran = (program: Program, script: string, config: JsonObject = {}) =>
  run(program, graph("one", [executor("worker", script, config)]));

/** The address of what a job's worker has left. */
async function artifactOf(program: Program, { detail }: Run): Promise<string> {
  const { run_id: runId } = detail.job as JsonObject;
  const left = (await artifactsOf(program, String(runId))).find(({ kind }) => kind !== "evidence");
  return program.url + String(left?.url);
}

const textAt = async (url: string, range?: string) =>
  (await fetch(url, { headers: range === undefined ? {} : { range } })).text();

const WRITES = 'printf "of all machines" > "$SVC_OUTPUT_DIR/notes.txt"';

describe("artifacts in a shared folder", () => {
  test("are served whole and in parts, and the home has none of them", async () => {
    await using program = await startRuntimeHere({ env: inFolder });
    const url = await artifactOf(program, await ran(program, WRITES));
    assert.equal(await textAt(url), "of all machines");
    assert.equal(await textAt(url, "bytes=3-5"), "all");
    assert.ok(!existsSync(join(program.home, "blobs")));
    assert.equal((await readdir(join(shared, "blobs"))).length, 1);
  });

  test("are unavailable while the folder is gone, a worker's are not lost silently, and all goes on afterwards", async () => {
    await using program = await startRuntimeHere({ env: inFolder });
    const url = await artifactOf(program, await ran(program, WRITES));
    await rename(shared, `${shared}, unmounted`);
    const answer = await fetch(url);
    assert.equal(answer.status, 503);
    assert.match(await answer.text(), /SVC_BLOB_URL.*of all machines.*ENOENT/);
    const failed = await ran(program, WRITES);
    assert.equal(failed.status, "failed");
    const { code, details } = (failed.detail.job as JsonObject).failure as JsonObject;
    assert.equal(code, "executor.artifact_failed");
    assert.match(JSON.stringify(details), /SVC_BLOB_URL/);
    assert.ok(!existsSync(shared), "it was made in the place of a mount");
    await rename(`${shared}, unmounted`, shared);
    assert.equal(await textAt(url), "of all machines");
    assert.equal((await ran(program, WRITES)).status, "completed");
  });
});

test("artifacts in a bucket are served, and workers are not given its credentials", async () => {
  await using program = await startProgram({ env: inBucket });
  const script = `printf "%s" "key: \${AWS_SECRET_ACCESS_KEY:-none}" > "$SVC_OUTPUT_DIR/notes.txt"`;
  const pass = { pass_env: ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"] };
  const url = await artifactOf(program, await ran(program, script, pass));
  assert.equal(await textAt(url), "key: none");
  s3.fault("busy", () => true, 100);
  assert.equal((await fetch(url)).status, 503);
  s3.heal();
  assert.equal(await textAt(url, "bytes=-4"), "none");
  assert.ok(!existsSync(join(program.home, "blobs")));
  assert.ok(!program.output().includes(SECRET));
});

test("the check of the place of files says what can be used, and what to set", async () => {
  const found = async (env: Record<string, string>) => {
    const loaded = loadConfig(env, "client");
    assert.ok(loaded.kind === "ok");
    const { state, text, fix } = (await checkFiles(loaded.config)) ?? {};
    return `${state}: ${text} ${fix}`;
  };
  assert.match(await found({}), /^undefined/);
  assert.match(
    await found({ SVC_DATABASE_URL: "postgres://a@h/d" }),
    /^warn: .*they go with it Set SVC_BLOB_URL/,
  );
  assert.match(await found(inFolder), /^ok: the folder .* takes files/);
  assert.match(await found({ SVC_BLOB_URL: "file:///not/there" }), /^fail: .*ENOENT/);
  assert.match(await found(inBucket), /^ok: s3:\/\/troupe-test\/files\//);
  assert.match(await found({ SVC_BLOB_URL: inBucket.SVC_BLOB_URL }), /^fail: .*AWS_SECRET_ACCESS_KEY/);
  const refused = await found({ ...inBucket, AWS_SECRET_ACCESS_KEY: "another-key" });
  assert.match(refused, /^fail: .*SignatureDoesNotMatch/);
  assert.deepEqual(await readdir(join(shared, "probes")), []);
});
