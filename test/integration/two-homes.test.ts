// Two machines with one database and one store of files, one after the other: what the first has left, the second one
// serves, runs and continues, although it has nothing of the first one's home.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import type { JsonObject } from "../../src/engine/json.ts";
import { completed, createJob, ended, happens, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { onPostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const worker = (script: string) =>
  graph("shared", [executor("worker", script, { upload_path: "worker", workdir: "worker" })], [], {
    // Another machine need not wait for the one that had it.
    policies: { recovery_mode: "cluster_recover" },
  });

const files = {
  "payloads/worker/data.txt": "of the bundle",
};

async function outputOf(program: Program, runId: string): Promise<string> {
  const [found] = (await walk(program, `/runs/${runId}/artifacts`)).filter(({ kind }) => kind !== "evidence");
  return (await fetch(program.url + String(found?.url))).text();
}

test("a second machine downloads, runs and continues what the first one has begun, without its home", () =>
  onPostgres(async (databaseUrl) => {
    const shared = await mkdtemp(join(tmpdir(), "troupe-shared-"));
    const go = join(shared, "go");
    await mkdir(join(shared, "files"));
    const env = {
      SVC_DATABASE_URL: databaseUrl,
      SVC_BLOB_URL: pathToFileURL(join(shared, "files")).href,
      SVC_SECRET_KEY: "0a".repeat(32),
    };
    const [oneHome, otherHome] = [await temporaryHome(), await temporaryHome()];
    try {
      await using one = await startGatewayHere({ home: oneHome, env });
      const copies = 'cp data.txt "$SVC_OUTPUT_DIR/copy.txt"';
      const jobId = await createJob(one, worker(copies), {}, files);
      const { run } = await completed(one, jobId);
      const waits = `while [ ! -e ${go} ]; do sleep 0.05; done; ${copies}`;
      // A package with a validator is given a payload of its own.
      const checked = { ...files, "payloads/validators/any.sh": "#!/bin/sh\nexit 0\n" };
      const waiting = await startRun(one, await createJob(one, worker(waits), {}, checked));
      await happens(one, waiting, "sandbox_job_started");
      assert.ok((await readdir(join(shared, "files/runs"))).length === 1, "its payload is shared");
      await one.stop();
      await rm(oneHome, { recursive: true, force: true });

      await using other = await startGatewayHere({ home: otherHome, env });
      assert.equal(await outputOf(other, String(run.run_id)), "of the bundle");
      const again = await completed(other, jobId);
      assert.equal(await outputOf(other, String(again.run.run_id)), "of the bundle");
      await writeFile(go, "");
      const continued = await ended(other, waiting);
      assert.equal(continued.run.status, "completed", JSON.stringify(continued.run.failure as JsonObject));
      assert.equal(await outputOf(other, waiting), "of the bundle");
    } finally {
      for (const folder of [shared, oneHome, otherHome]) await rm(folder, { recursive: true, force: true });
    }
  }));
