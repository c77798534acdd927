// Jobs of blueprints: what they are made of, whatever happens to the blueprint before, between and after; and what
// becomes of their runs.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Gate, restarted, startCore, type TestCore } from "../../test/support/core.ts";
import { fc } from "../../test/support/fast-check.ts";
import { executor, graph, router } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import type { JsonObject } from "../engine/json.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { JobDefinition } from "./records.ts";

const quick = graph("quick", [router("in")]);
const newer = graph("newer", [router("in"), router("out")], [["in", "out"]], {
  extensions: ["svc.response"],
});
const slow = graph("slow", [executor("work", ["true"])]);
const source = { kind: "blueprint", blueprintId: "digest" } as const;
/** Fails an addition: a folder that is not in the payload. */
const failing = { ...quick, resources: [{ name: "index", prepare: ["false"] }] };

const refused = (code: string) => (error: unknown) => error instanceof DomainError && error.code === code;

const jobIs = (core: TestCore, jobId: string, status: JobDefinition["status"]) =>
  until(`job ${jobId} to be ${status}`, async () => {
    const job = await core.records.job(jobId);
    return job?.status === status && job;
  });

const stateIs = (core: TestCore, state: string) =>
  until(`the blueprint to be ${state}`, async () => {
    const prepared = await core.blueprintRecords.prepared("digest");
    return prepared?.state === state && prepared;
  });

describe("a job of a blueprint", () => {
  test("that is added is ready, with the package's fingerprint, graph and features", async () => {
    await using core = await startCore();
    await core.catalog("digest", newer);
    await core.add("digest");
    const { fingerprint } = await stateIs(core, "added");
    const job = await core.create(source);
    assert.deepEqual(
      [job.status, job.bundleFingerprint, job.graphId, job.extensions],
      ["ready", fingerprint, "newer", ["svc.response"]],
    );
    assert.deepEqual((await core.records.job(job.jobId))?.source, source);
  });

  test("that is not added waits for the addition, which it asks for once", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    // All are on disk before the addition begins, which may take no time at all.
    const created = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const draft = await core.definitions.prepareCreate({ source, name: null, configuration: {} });
        return core.records.write(draft.insert);
      }),
    );
    for (const { job } of created) {
      assert.deepEqual([job.status, job.bundleFingerprint], ["preparing", null]);
    }
    for (const one of created) core.definitions.created(one);
    for (const { job } of created) {
      const { jobId } = job;
      const ready = await jobIs(core, jobId, "ready");
      assert.deepEqual([ready.graphId, ready.revision], ["quick", 2]);
      assert.equal(typeof ready.bundleFingerprint, "string");
    }
  });

  test("of an unknown blueprint, or of a broken one, is refused", async () => {
    await using core = await startCore();
    await assert.rejects(
      core.create(source),
      (error: DomainError) => error.code === "validation_failed" && error.errors[0]?.path === "/blueprint_id",
    );
    await core.catalog("digest", { graph_id: "no nodes" });
    await assert.rejects(core.create(source), refused("validation_failed"));
  });

  test("whose package is removed between the check and the write waits for the next one", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    await core.add("digest");
    await stateIs(core, "added");
    const draft = await core.definitions.prepareCreate({ source, name: null, configuration: {} });
    const removal = await core.blueprints.prepareRemoval("digest", {
      dry_run: false,
      keep_resources: false,
      keep_models: false,
    });
    core.blueprints.begin(await core.records.write(removal));
    await until(
      "the removal",
      async () => (await core.blueprintRecords.prepared("digest"))?.state !== "added",
    );
    const created = await until("no operation that is open", () =>
      core.records.write(draft.insert).catch((error: unknown) => {
        assert.ok(refused("blueprint_busy")(error), String(error));
        return null;
      }),
    );
    assert.deepEqual([draft.job.status, created.job.status], ["ready", "preparing"]);
    core.definitions.created(created);
    const ready = await jobIs(core, created.job.jobId, "ready");
    assert.equal((await core.ended((await core.start(ready.jobId)).runId)).status, "completed");
  });

  test("is prepared by the next process when this one ends before", async () => {
    await using first = await startCore();
    await first.catalog("digest", quick);
    const draft = await first.definitions.prepareCreate({ source, name: null, configuration: {} });
    // On disk, and nothing of its addition was begun.
    const { job } = await first.records.write(draft.insert);
    const run = await first.accept(job.jobId);
    await using core = await restarted(first);
    await core.recover();
    assert.equal((await core.ended(run.runId)).status, "completed");
    assert.equal((await jobIs(core, job.jobId, "ready")).graphId, "quick");
  });
});

describe("runs of a job whose blueprint is not added", () => {
  test("wait with a label, are not read again and again, and are launched when it is added", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    const draft = await core.definitions.prepareCreate({ source, name: null, configuration: {} });
    const created = await core.records.write(draft.insert);
    const { jobId } = created.job;
    const runs = [await core.start(jobId), await core.start(jobId)];
    await core.launched();
    for (const { runId } of runs) {
      const run = await core.find(runId);
      assert.deepEqual([run.status, run.label], ["pending", "Waiting for the blueprint to be added"]);
    }
    assert.deepEqual(await core.records.unsettledRuns({ jobId: null, limit: 9, after: null }), []);
    core.definitions.created(created);
    for (const { runId } of runs) {
      const run = await core.ended(runId);
      assert.deepEqual([run.status, run.label], ["completed", null]);
    }
  });

  test("can be cancelled and paused while they wait", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    const draft = await core.definitions.prepareCreate({ source, name: null, configuration: {} });
    const created = await core.records.write(draft.insert);
    const [cancelled, paused] = [await core.start(created.job.jobId), await core.start(created.job.jobId)];
    await core.runs.control(cancelled.runId, "cancelled");
    await core.runs.control(paused.runId, "paused");
    core.definitions.created(created);
    await jobIs(core, created.job.jobId, "ready");
    await core.launched();
    assert.equal((await core.find(cancelled.runId)).status, "cancelled");
    assert.equal((await core.find(paused.runId)).status, "paused");
    await core.runs.control(paused.runId, "running");
    assert.equal((await core.ended(paused.runId)).status, "completed");
  });

  test("fail with the operation's reason when it cannot be added, and later ones run once it can", async () => {
    await using core = await startCore();
    await core.catalog("digest", failing);
    const job = await core.create(source);
    const waiting = await core.start(job.jobId);
    const failed = await core.ended(waiting.runId);
    const failure = JSON.parse(failed.failureJson ?? "{}");
    assert.deepEqual([failed.status, failure.code], ["failed", "blueprint.not_prepared"]);
    const prepared = await stateIs(core, "failed");
    assert.ok(failure.details.message.includes(prepared.operationId), failure.details.message);
    assert.equal((await core.ended((await core.start(job.jobId)).runId)).status, "failed");
    await core.catalog("digest", quick);
    await core.add("digest");
    await jobIs(core, job.jobId, "ready");
    assert.equal((await core.ended((await core.start(job.jobId)).runId)).status, "completed");
  });
});

describe("a run of a job whose blueprint is being removed", () => {
  const asked = {
    inputs: {},
    configOverrides: null,
    trigger: { kind: "api", id: null },
    trace: null,
  } as const;
  const stored = { ...slow, resources: [{ name: "words" }] };
  const nothingKept = { dry_run: false, keep_resources: false, keep_models: false };

  async function readyJob(core: TestCore, manifest: JsonObject): Promise<string> {
    await core.catalog("digest", manifest);
    const { jobId } = await core.create(source);
    await jobIs(core, jobId, "ready");
    return jobId;
  }

  const removal = async (core: TestCore, request = nothingKept) =>
    core.records.write(await core.blueprints.prepareRemoval("digest", request));

  const ended = (core: TestCore) =>
    until("the end of the operation", () =>
      core.records.write(async (writes) => (await writes.operations.open("digest")) === null),
    );

  async function remove(core: TestCore, request = nothingKept): Promise<void> {
    core.blueprints.begin(await removal(core, request));
    await ended(core);
  }

  /** Writes what the removal's own first transaction writes, and holds it there. */
  const heldRemoval = (core: TestCore) =>
    core.records.write(async ({ blueprints }) => {
      const before = await blueprints.prepared("digest");
      assert.ok(before !== null);
      await blueprints.save({ ...before, state: "removing" });
    });

  test("is refused before its check, and when the removal begins after the check", async () => {
    await using core = await startCore();
    for (const manifest of [slow, stored]) {
      const jobId = await readyJob(core, manifest);
      const insert = await core.runs.prepare(jobId, asked);
      await heldRemoval(core);
      await assert.rejects(core.records.write(insert), refused("blueprint_busy"));
      await assert.rejects(core.runs.prepare(jobId, asked), refused("blueprint_busy"));
      await remove(core);
    }
  });

  test("is refused when what it needs is gone, also when it was removed after the check", async () => {
    await using core = await startCore();
    const jobId = await readyJob(core, stored);
    const insert = await core.runs.prepare(jobId, asked);
    await remove(core);
    await assert.rejects(core.records.write(insert), refused("requirements_not_met"));
    await assert.rejects(core.runs.prepare(jobId, asked), refused("requirements_not_met"));
  });

  test("that needs nothing which went is accepted: its job has its package", async () => {
    await using core = await startCore();
    const jobId = await readyJob(core, quick);
    const insert = await core.runs.prepare(jobId, asked);
    await remove(core);
    const run = await core.records.write(insert);
    core.runs.accepted(run);
    assert.equal((await core.ended(run.runId)).status, "completed");
  });

  test("of a launch waits for the next addition once the removal has ended", async () => {
    await using core = await startCore();
    await readyJob(core, { ...quick, resources: [{ name: "words" }] });
    const insert = await core.launches.prepare("digest", { ...asked, name: null });
    await remove(core);
    const launched = await core.records.write(insert);
    core.launches.launched(launched);
    assert.equal((await core.ended(launched.run.runId)).status, "completed");
  });

  test("is refused too when an earlier removal has left its resources alone", async () => {
    await using core = await startCore();
    const jobId = await readyJob(core, stored);
    await remove(core, { ...nothingKept, keep_resources: true });
    const insert = await core.runs.prepare(jobId, asked);
    // It begins, and is not let further than its first write.
    const [first, second] = [new Gate(), new Gate()];
    const operation = await removal(core);
    core.records.gates.push(null, null, first, second);
    core.blueprints.begin(operation);
    await first.reached;
    first.open();
    await second.reached;
    await assert.rejects(core.records.write(insert), refused("blueprint_busy"));
    second.open();
    await ended(core);
    assert.equal(await core.blueprintRecords.prepared("digest"), null);
  });

  test("of many at once is accepted and keeps its resources, or is refused: never half of each", async () => {
    await using core = await startCore();
    const [rounds, runsAtOnce] = [6, 12];
    const seen = { accepted: 0, refused: 0 };
    for (let round = 0; round < rounds; round++) {
      const jobId = await readyJob(core, stored);
      const start = async (_: unknown, i: number) => {
        for (let turn = 0; turn < i * 2; turn++) await new Promise(setImmediate);
        return core.accept(jobId).catch((error: unknown) => {
          assert.ok(
            refused("blueprint_busy")(error) || refused("requirements_not_met")(error),
            String(error),
          );
          return null;
        });
      };
      const begun = () =>
        removal(core).then(
          (operation) => core.blueprints.begin(operation),
          (error: unknown) => assert.ok(refused("blueprint_in_use")(error), String(error)),
        );
      // In the first round the removal is first, in the last one a run is; in between both come at once.
      if (round === 0) {
        await begun();
        await ended(core);
      }
      const first = round === rounds - 1 ? [await start(null, 0)] : [];
      const starts = Array.from({ length: runsAtOnce }, start);
      await Promise.all([...starts, round === 0 ? null : begun()]);
      const runs = [...first, ...(await Promise.all(starts))].filter((run) => run !== null);
      await ended(core);
      const assets = await core.blueprintRecords.assets("digest");
      assert.equal(assets.length, runs.length > 0 ? 1 : 0, `round ${round}`);
      for (const run of runs) {
        core.runs.accepted(run);
        await core.endCommand(run.runId);
        assert.equal((await core.ended(run.runId)).status, "completed");
      }
      seen.accepted += runs.length;
      seen.refused += runsAtOnce + first.length - runs.length;
      if (runs.length > 0) await remove(core);
    }
    assert.ok(seen.accepted > 0 && seen.refused > 0, JSON.stringify(seen));
  });
});

describe("a run with configuration overrides", () => {
  test("gives its workers the layers in their order, and stores no secret in plaintext", async () => {
    await using core = await startCore();
    const config = { a: "package", b: "package", c: "package", api_key: "s3cret-one" };
    await core.catalog("digest", slow, { "config/default.json": config });
    const job = await core.create(source, { b: "job", c: "job" });
    await jobIs(core, job.jobId, "ready");
    const run = await core.start(job.jobId, {}, { c: "run", token: "s3cret-two" });
    const start = await until(
      "the command",
      () => core.starts.find(({ runId }) => runId === run.runId) ?? null,
    );
    assert.deepEqual(await core.secrets.decrypt(JSON.parse(start.configurationJson ?? "{}")), {
      a: "package",
      b: "job",
      c: "run",
      api_key: "s3cret-one",
      token: "s3cret-two",
    });
    assert.doesNotMatch(start.configurationJson ?? "", /s3cret/);
    assert.doesNotMatch((await core.find(run.runId)).configOverridesJson ?? "", /s3cret/);
  });

  test("brings the job up to the blueprint's present package; one without them leaves it", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    const { jobId } = await core.create(source, { kept: true });
    const before = await jobIs(core, jobId, "ready");
    await core.catalog("digest", newer);
    await core.add("digest", { force: true });
    const { fingerprint } = await until("the newer package", async () => {
      const prepared = await core.blueprintRecords.prepared("digest");
      return prepared?.fingerprint !== before.bundleFingerprint && prepared;
    });
    await core.ended((await core.start(jobId)).runId);
    assert.equal((await core.records.job(jobId))?.revision, before.revision);
    const run = await core.start(jobId, {}, {});
    const job = await core.records.job(jobId);
    assert.deepEqual(
      [job?.bundleFingerprint, job?.graphId, job?.extensions, job?.revision, job?.configurationJson],
      [fingerprint, "newer", ["svc.response"], before.revision + 1, '{"kept":true}'],
    );
    const ended = await core.ended(run.runId);
    assert.deepEqual([ended.status, ended.agentsTotal], ["completed", 2]);
    await core.start(jobId, {}, {});
    assert.equal((await core.records.job(jobId))?.revision, before.revision + 1, "once");
  });

  test("uses the job's own package when the catalog has lost the blueprint", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    const { jobId } = await core.create(source);
    await jobIs(core, jobId, "ready");
    await core.catalog("digest", { graph_id: "broken" });
    assert.equal((await core.ended((await core.start(jobId, {}, { a: 1 })).runId)).status, "completed");
  });

  test("is refused with the place of each mask that has no stored secret", async () => {
    await using core = await startCore();
    await core.catalog("digest", quick);
    const { jobId } = await core.create(source, { api_key: "s3cret" });
    await jobIs(core, jobId, "ready");
    await core.accept(jobId, {}, { api_key: "********" });
    await assert.rejects(
      core.accept(jobId, {}, { token: "********" }),
      (error: DomainError) => error.errors[0]?.path === "/config_overrides/token",
    );
  });
});

test("any order of additions, failures and new jobs leaves each job as the additions so far have left it", async () => {
  await using core = await startCore();
  const step = fc.constantFrom<"create" | "fail" | "fix">("create", "fail", "fix");
  let blueprints = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), async (steps) => {
      const blueprintId = `digest-${++blueprints}`;
      const version = (manifest: JsonObject, n: number) =>
        core.catalog(blueprintId, manifest, { "config/default.json": { n } });
      await version(failing, 0);
      const jobIds: string[] = [];
      // The model: once the blueprint was added, its jobs are ready; a failure afterwards takes nothing back.
      let isFixed = false;
      let wasAdded = false;
      for (const [n, one] of steps.entries()) {
        if (one === "create") {
          jobIds.push((await core.create({ kind: "blueprint", blueprintId })).jobId);
          wasAdded ||= isFixed;
        } else {
          isFixed = one === "fix";
          wasAdded ||= isFixed;
          await version(isFixed ? quick : failing, n + 1);
          await core.add(blueprintId, { force: true });
        }
        await until("the end of the operation", () =>
          core.records.write(async (writes) => (await writes.operations.open(blueprintId)) === null),
        );
        for (const jobId of jobIds) {
          const job = await core.records.job(jobId);
          assert.equal(job?.status, wasAdded ? "ready" : "failed_preparation", `after ${one}`);
          assert.equal(job?.bundleFingerprint !== null, wasAdded);
        }
      }
    }),
    { numRuns: 15 },
  );
});

test("a launch creates a job and its run atomically", async () => {
  await using core = await startCore();
  await core.catalog("digest", { ...quick, metadata: { name: "A digest" } });
  const request = { inputs: {}, configOverrides: null, name: null, trace: null };
  const insert = await core.launches.prepare("digest", request);
  await assert.rejects(
    core.records.write(async (writes) => {
      await insert(writes);
      throw new Error("the test ends the transaction");
    }),
  );
  assert.deepEqual((await core.records.jobs({ includeTerminal: true, limit: 9, after: null })).rows, []);
  const launched = await core.records.write(insert);
  core.launches.launched(launched);
  const run = await core.ended(launched.run.runId);
  assert.deepEqual(
    [run.status, run.trigger, run.jobId],
    ["completed", { kind: "blueprint", id: "digest" }, launched.created.job.jobId],
  );
  assert.equal((await core.records.job(run.jobId))?.name, "A digest");
  await assert.rejects(core.launches.prepare("nothing", request), refused("blueprint_not_found"));
});

test("a job that is created while its blueprint's addition ends is not forgotten", async () => {
  await using core = await startCore();
  await core.catalog("digest", quick);
  const draft = await core.definitions.prepareCreate({ source, name: null, configuration: {} });
  const first = await core.create(source);
  const gate = new Gate();
  core.records.gates.push(gate);
  const late = core.records.write(draft.insert);
  await gate.reached;
  await jobIs(core, first.jobId, "ready");
  gate.open();
  core.definitions.created(await late);
  await jobIs(core, draft.job.jobId, "ready");
});
