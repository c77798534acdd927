// Definitions: creation, change and deletion against everything that may happen between check and write.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Gate, restarted, startCore, type TestCore } from "../../test/support/core.ts";
import { executor, graph, router, sensor } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import type { JsonObject } from "../engine/json.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { JobView } from "./records.ts";

const quick = graph("quick", [router("in")]);
const held = graph("held", [sensor("wait")]);
const slow = graph("slow", [executor("work", ["true"])]);

const refused = (code: string) => (error: unknown) => error instanceof DomainError && error.code === code;
const force = { force: true };

async function find(core: TestCore, jobId: string): Promise<JobView> {
  const job = await core.records.job(jobId);
  assert.ok(job !== null);
  return job;
}

const stored = (job: JobView) => JSON.parse(job.configurationJson) as JsonObject;

describe("creating a job", () => {
  test("names every mistake at once, and writes nothing", async () => {
    await using core = await startCore();
    const configuration = { api_key: "********", deep: { token: "********" } };
    await assert.rejects(
      core.definitions.prepareCreate({
        source: { kind: "bundle", bundleId: "nothing" },
        name: null,
        configuration,
      }),
      (error: DomainError) => {
        const paths = error.errors.map(({ path }) => path);
        assert.deepEqual(paths.sort(), [
          "/bundle_id",
          "/resolved_configuration/api_key",
          "/resolved_configuration/deep/token",
        ]);
        return error.code === "validation_failed";
      },
    );
  });

  test("is refused when the bundle is deleted between the check and the write", async () => {
    await using core = await startCore();
    const { bundleId } = await core.bundle(quick);
    const source = { kind: "bundle", bundleId } as const;
    const draft = await core.definitions.prepareCreate({ source, name: null, configuration: {} });
    await core.bundles.delete(bundleId);
    await assert.rejects(core.records.write(draft.insert), refused("validation_failed"));
  });

  test("holds the snapshot that the bundle had then", async () => {
    await using core = await startCore();
    const job = await core.job(quick);
    const { bundleId } = job.source as { readonly bundleId: string };
    await core.database.kysely.deleteFrom("bundles").where("bundle_id", "=", bundleId).execute();
    const run = await core.start(job.jobId);
    assert.equal((await core.ended(run.runId)).status, "completed");
  });

  test("keeps no secret in plaintext, also not one in a list or deeper down", async () => {
    await using core = await startCore();
    const job = await core.job(quick, { api_key: "s3cret-one", list: [{ password: "s3cret-two" }] });
    assert.doesNotMatch(job.configurationJson, /s3cret/);
    assert.deepEqual(await core.secrets.decrypt(stored(job)), {
      api_key: "s3cret-one",
      list: [{ password: "s3cret-two" }],
    });
  });
});

describe("changing a job", () => {
  test("merges the configuration, keeps a masked secret, and adds one to the revision", async () => {
    await using core = await startCore();
    const before = await core.job(quick, { api_key: "s3cret-one", a: 1, b: { c: 2 } });
    const job = await core.definitions.update(before, {
      name: "New",
      resolved_configuration: { api_key: "********", a: null, b: { d: 3 } },
    });
    assert.deepEqual(await core.secrets.decrypt(stored(job)), { api_key: "s3cret-one", b: { c: 2, d: 3 } });
    assert.deepEqual([job.name, job.revision], ["New", 2]);
    assert.deepEqual(await find(core, job.jobId), job);
  });

  test("without a field leaves it, and with null takes the whole configuration away", async () => {
    await using core = await startCore();
    const before = await core.job(quick, { a: 1 });
    const same = await core.definitions.update(before, {});
    assert.deepEqual([same.name, stored(same), same.revision], [before.name, { a: 1 }, 2]);
    const none = await core.definitions.update(same, { resolved_configuration: null });
    assert.deepEqual(stored(none), {});
  });

  test("lands on the revision it was made for or not at all", async () => {
    await using core = await startCore();
    const before = await core.job(quick);
    const answers = await Promise.allSettled(
      ["one", "two", "three"].map((name) => core.definitions.update(before, { name })),
    );
    assert.deepEqual(answers.map((one) => one.status).sort(), ["fulfilled", "rejected", "rejected"]);
    for (const one of answers) {
      if (one.status === "rejected") assert.ok(refused("precondition_failed")(one.reason));
    }
    assert.equal((await find(core, before.jobId)).revision, 2);
  });

  test("that was deleted meanwhile: job_not_found", async () => {
    await using core = await startCore();
    const before = await core.job(quick);
    const gate = new Gate();
    core.records.gates.push(gate);
    const updated = core.definitions.update(before, { name: "late" });
    updated.catch(() => {});
    await gate.reached;
    await core.definitions.delete(before, force);
    gate.open();
    await assert.rejects(updated, refused("job_not_found"));
  });

  test("shows in later runs: their workers get the new configuration", async () => {
    await using core = await startCore();
    const before = await core.job(slow, { language: "en" });
    const old = await core.start(before.jobId);
    await core.whenRun(old.runId, (run) => run.launched);
    await core.definitions.update(before, { resolved_configuration: { language: "de" } });
    const young = await core.start(before.jobId);
    await until("both commands", () => core.starts.length === 2);
    const configurationOf = (runId: string) =>
      core.starts.find((one) => one.runId === runId)?.configurationJson;
    assert.equal(configurationOf(old.runId), '{"language":"en"}');
    assert.equal(configurationOf(young.runId), '{"language":"de"}');
  });
});

describe("deleting a job", () => {
  test("with open runs is refused, and changes nothing", async () => {
    await using core = await startCore();
    const job = await core.job(held);
    const run = await core.accept(job.jobId);
    await assert.rejects(core.definitions.delete(job, { force: false }), refused("active_runs"));
    assert.equal((await core.find(run.runId)).status, "pending");
  });

  test("by force cancels what runs, what is paused and what waits, and all of it is gone", async () => {
    await using core = await startCore();
    const job = await core.job(held);
    const [running, paused, waiting] = [
      await core.start(job.jobId),
      await core.start(job.jobId),
      await core.accept(job.jobId),
    ];
    for (const { runId } of [running, paused]) await core.whenRun(runId, (run) => run.launched);
    await core.runs.control(paused.runId, "paused");
    await core.definitions.delete(job, force);
    assert.equal(core.engine.openJobs, 0);
    assert.equal(await core.records.job(job.jobId), null);
    for (const run of [running, paused, waiting]) assert.equal(await core.records.run(run.runId), null);
    await until(
      "the rows to be removed",
      async () => (await core.journal.find(running.runtimeJobId)) === null,
    );
    await until("the files to be removed", () => core.garbage.collected > 0);
  });

  test("by force goes on when the runs end by themselves meanwhile", async () => {
    await using core = await startCore();
    const job = await core.job(slow);
    const run = await core.start(job.jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    const gate = new Gate();
    core.records.gates.push(null, gate);
    const deleted = core.definitions.delete(job, force);
    // It has seen that a run is open, and is about to cancel it.
    await gate.reached;
    await core.endCommand(run.runId);
    await core.ended(run.runId);
    gate.open();
    await deleted;
    assert.equal(await core.records.job(job.jobId), null);
  });

  test("by force during a launch cancels what was launched", async () => {
    await using core = await startCore();
    const job = await core.job(held);
    const gate = new Gate();
    core.plans.gate = gate;
    await core.start(job.jobId);
    await gate.reached;
    const deleted = core.definitions.delete(job, force);
    gate.open();
    await deleted;
    assert.equal(core.engine.openJobs, 0);
  });

  test("twice at the same moment: one deletes, the other does not find it", async () => {
    await using core = await startCore();
    const job = await core.job(held);
    await Promise.all(Array.from({ length: 20 }, () => core.accept(job.jobId)));
    const answers = await Promise.allSettled([
      core.definitions.delete(job, force),
      core.definitions.delete(job, force),
    ]);
    const lost = answers.find((one) => one.status === "rejected");
    assert.ok(refused("job_not_found")(lost?.reason), String(lost?.reason));
    assert.ok(answers.some((one) => one.status === "fulfilled"));
  });

  test("of another revision than the present one: precondition_failed, whatever runs it has", async () => {
    await using core = await startCore();
    const before = await core.job(held);
    const run = await core.accept(before.jobId);
    await core.definitions.update(before, { name: "New" });
    await assert.rejects(core.definitions.delete(before, force), refused("precondition_failed"));
    assert.equal((await core.find(run.runId)).status, "pending");
  });

  test("leaves nothing behind when the process ends before the removal", async () => {
    await using first = await startCore();
    const job = await first.job(quick);
    const run = await first.start(job.jobId);
    await first.ended(run.runId);
    // The deletion alone, as if the process had been killed right after it.
    await first.records.write((writes) => writes.deleteJob(job.jobId, 1));
    await using core = await restarted(first);
    assert.equal(await core.records.run(run.runId), null);
    core.definitions.purge();
    await until("the rows to be removed", async () => (await core.journal.find(run.runtimeJobId)) === null);
    const left = core.database.connection.prepare("SELECT count(*) AS n FROM job_definitions").get();
    assert.equal(left?.n, 0);
  });

  test("is followed by its removal also when another removal is just ending", async () => {
    await using core = await startCore();
    const [first, second] = [await core.job(quick), await core.job(quick)];
    const gate = new Gate();
    core.garbage.gate = gate;
    await core.definitions.delete(first, force);
    // The rows of the first are gone, and its files are being removed.
    await gate.reached;
    await core.definitions.delete(second, force);
    gate.open();
    const rows = core.database.connection.prepare("SELECT count(*) AS n FROM job_definitions");
    await until("all rows to be removed", () => rows.get()?.n === 0);
  });
});
