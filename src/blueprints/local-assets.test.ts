// What an addition on one node has made, on another one that lacks it: made there when a run needs it, and gone with the
// blueprint.

import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { executor, graph } from "../../test/support/graphs.ts";
import { type SharedProgram, startPrograms } from "../../test/support/shared-programs.ts";
import { until } from "../../test/support/until.ts";

const source = { kind: "blueprint", blueprintId: "digest" } as const;

/** Two programs of which the first has added a blueprint with a resource and a model; the second has its package alone. */
async function scene() {
  const outside = await mkdtemp(join(tmpdir(), "troupe-assets-"));
  const log = join(outside, "made");
  const model = join(outside, "model");
  await writeFile(model, "weights");
  const manifest = {
    ...graph("slow", [executor("work", ["true"])]),
    resources: [{ name: "words", prepare: ["sh", "-c", `echo made >> ${log}; echo word > list`] }],
    models: [{ model_id: "tiny", path: model }],
  };
  const programs = await startPrograms();
  const { a, b } = programs;
  await a.catalog("digest", manifest);
  await b.catalog("digest", manifest);
  await a.add("digest");
  await until("the blueprint to be added", async () => {
    return (await a.blueprintRecords.prepared("digest"))?.state === "added";
  });
  await b.bundles.registerFolder({ path: join(b.home, "catalog", "digest") });
  return {
    a,
    b,
    model,
    timesMade: async () => (await readFile(log, "utf8")).trim().split("\n").length,
    async [Symbol.asyncDispose]() {
      await programs[Symbol.asyncDispose]();
      await rm(outside, { recursive: true });
    },
  };
}

/** What a home has of resources and models. */
async function assetsIn({ home }: SharedProgram): Promise<readonly string[]> {
  const found = await Promise.all(
    ["resources", "models"].map((folder) => readdir(join(home, folder), { recursive: true }).catch(() => [])),
  );
  return found.flat();
}

test("a run makes the resources and models of its blueprint where they are not, once", async () => {
  await using s = await scene();
  const job = await s.b.create(source);
  const run = await s.b.start(job.jobId);
  await s.b.whenRun(run.runId, (one) => one.launched);
  const root = join(s.b.home, "runs", run.runId, "prepared");
  assert.equal(await readFile(join(root, "resources/words/list"), "utf8"), "word\n");
  assert.deepEqual(await readdir(join(root, "models")), ["tiny"]);
  assert.equal(await readFile(join(root, "models/tiny"), "utf8"), "weights");
  assert.equal(await s.timesMade(), 2, "one time on each node");
  const next = await s.b.start(job.jobId);
  await s.b.whenRun(next.runId, (one) => one.launched);
  assert.equal(await s.timesMade(), 2);
});

test("two runs at one moment make a resource once", async () => {
  await using s = await scene();
  const job = await s.b.create(source);
  const runs = [await s.b.accept(job.jobId), await s.b.accept(job.jobId)];
  for (const run of runs) s.b.runs.accepted(run);
  for (const run of runs) await s.b.whenRun(run.runId, (one) => one.launched);
  assert.equal(await s.timesMade(), 2);
});

test("a run fails where a model is another one than the blueprint was added with, and it is not kept", async () => {
  await using s = await scene();
  await writeFile(s.model, "other");
  const job = await s.b.create(source);
  const run = await s.b.start(job.jobId);
  const failed = await s.b.ended(run.runId);
  assert.match(failed.failureJson ?? "", /preparation\.requirement_unmet.*tiny/);
  const files = await readdir(join(s.b.home, "models"), { recursive: true, withFileTypes: true });
  assert.deepEqual(
    files.filter((entry) => entry.isFile()),
    [],
  );
});

test("what a removal on one node has let go of is removed on the others too, and nothing else is", async () => {
  await using s = await scene();
  const job = await s.b.create(source);
  const run = await s.b.start(job.jobId);
  await s.b.whenRun(run.runId, (one) => one.launched);
  const before = await assetsIn(s.b);
  await s.b.blueprints.sweepAssets();
  assert.deepEqual(await assetsIn(s.b), before);
  await s.b.endCommand(run.runId);
  await s.b.ended(run.runId);
  const request = { dry_run: false, keep_resources: false, keep_models: false };
  const removal = await s.a.records.write(await s.a.blueprints.prepareRemoval("digest", request));
  s.a.blueprints.begin(removal);
  await until("the removal's end", async () => (await s.a.blueprintRecords.prepared("digest")) === null);
  assert.deepEqual(await assetsIn(s.b), before);
  await s.b.blueprints.sweepAssets();
  assert.deepEqual(await assetsIn(s.b), []);
});
