// Preparations of launches: what they hold up and what not, and what is left of them, whatever happens meanwhile.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Gate, restarted, startCore, type TestCore } from "../../test/support/core.ts";
import { executor, graph, router } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import type { JsonObject } from "../engine/json.ts";
import { preparedFolders } from "../execution/runner/paths.ts";
import type { DomainError } from "../lib/domain-error.ts";
import type { JobView } from "./records.ts";

const quick = graph("quick", [router("in")]);
const work = executor("work", ["true"], { upload_path: "input", workdir: "input" });
const reader = graph("reader", [work]);
const source = { kind: "blueprint", blueprintId: "reader" } as const;

const files: Readonly<Record<string, JsonObject | string>> = {
  "payloads/input/own.txt": "the package's own",
  "config/default.json": {
    documents: { folder: "" },
    local_inputs: {
      folders: [
        {
          config_path: "documents.folder",
          payload_path: "input/documents",
          runtime_path: "documents",
          allowed_extensions: [".txt"],
        },
      ],
    },
  },
};

/** Where the user's own folders are: none of them may be in the runtime's. */
const users = await mkdtemp(join(tmpdir(), "troupe-users-"));
after(() => rm(users, { recursive: true }));

/** A job whose runs take a folder along. */
async function readingJob(core: TestCore): Promise<{ readonly job: JobView; readonly folder: string }> {
  const folder = await mkdtemp(join(users, "chosen-"));
  await writeFile(join(folder, "a.txt"), "hello");
  await core.catalog("reader", reader, files);
  return { job: await ready(core, await core.create(source, { documents: { folder } })), folder };
}

const ready = (core: TestCore, { jobId }: JobView) =>
  until(`job ${jobId} to be ready`, async () => {
    const found = await core.records.job(jobId);
    return found?.status === "ready" && found;
  });

/** Holds preparations until they are released, or aborted. */
function held(core: TestCore) {
  const opened = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  core.preparation.hold = async (_runId, signal) => {
    signals.push(signal);
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await Promise.race([opened.promise, aborted]);
  };
  return {
    /** Of the preparations that have begun. */
    signals,
    open: () => opened.resolve(),
    begun: (count: number) => until(`${count} preparations`, () => core.preparation.begun.length >= count),
  };
}

const begunOf = (core: TestCore, runId: string) =>
  until(`the command of ${runId}`, () => core.starts.find((one) => one.runId === runId) ?? null);

const leavesNothing = (core: TestCore, runId: string) =>
  until(`nothing of ${runId} on disk`, () => {
    const { root } = preparedFolders(core.home, runId);
    return !existsSync(root) && !existsSync(`${root}.tmp`);
  });

test("a run of a package that needs it is prepared, and its worker gets what was prepared", async () => {
  await using core = await startCore();
  const { job } = await readingJob(core);
  const run = await core.start(job.jobId);
  const start = await begunOf(core, run.runId);
  assert.equal(start.hasOwnPayload, true);
  assert.equal(start.bundleFingerprint, job.bundleFingerprint);
  assert.equal(JSON.parse(start.configurationJson ?? "{}").documents.folder, "documents");
  assert.ok(existsSync(join(preparedFolders(core.home, run.runId).payload, "input/documents/a.txt")));
  await core.endCommand(run.runId);
  assert.equal((await core.ended(run.runId)).status, "completed");
  await leavesNothing(core, run.runId);
});

test("a run of a package that does not is launched without, from the snapshot that all share", async () => {
  await using core = await startCore();
  await core.catalog("reader", reader);
  const job = await core.create(source);
  const run = await core.start(job.jobId);
  const start = await begunOf(core, run.runId);
  assert.equal(start.hasOwnPayload, false);
  assert.deepEqual(core.preparation.begun, []);
});

test("four slow preparations hold up the fifth, and no run that needs none", async () => {
  await using core = await startCore();
  const { job } = await readingJob(core);
  const hold = held(core);
  const runs = [];
  for (let n = 0; n < 6; n++) runs.push(await core.start(job.jobId));
  await hold.begun(4);
  const plain = await core.start((await core.job(quick)).jobId);
  assert.equal((await core.ended(plain.runId)).status, "completed");
  assert.equal(core.preparation.underWay, 4);
  // The first four; among themselves they begin as their files are read.
  assert.deepEqual(
    core.preparation.begun.toSorted(),
    runs
      .slice(0, 4)
      .map(({ runId }) => runId)
      .toSorted(),
  );
  hold.open();
  await Promise.all(runs.map(({ runId }) => core.endCommand(runId)));
  for (const { runId } of runs) assert.equal((await core.ended(runId)).status, "completed");
  assert.equal(core.preparation.begun.length, 6);
});

describe("while a run is being prepared", () => {
  test("its label shows what is being done, and is gone when it is launched", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    core.database.connection.exec(`
      CREATE TABLE told (label TEXT);
      CREATE TRIGGER tell AFTER UPDATE OF label ON runs BEGIN INSERT INTO told VALUES (new.label); END;
    `);
    core.clock.firesByItself = true;
    const run = await core.start(job.jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    const told = core.database.connection.prepare("SELECT label FROM told").all();
    assert.equal(typeof told[0]?.label, "string");
    assert.equal(told.at(-1)?.label, null);
    assert.equal((await core.find(run.runId)).label, null);
  });

  test("a request to cancel it is answered at once, and nothing of it is left", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const hold = held(core);
    const run = await core.start(job.jobId);
    await hold.begun(1);
    assert.equal((await core.runs.control(run.runId, "cancelled")).status, "cancelled");
    assert.ok(hold.signals[0]?.aborted);
    await until("the end of the preparation", () => core.preparation.underWay === 0);
    await leavesNothing(core, run.runId);
    await core.launched();
    assert.equal(await core.journal.find(run.runtimeJobId), null);
  });

  test("a pause lets it finish, and it is launched when the run is resumed", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const hold = held(core);
    const run = await core.start(job.jobId);
    await hold.begun(1);
    await core.runs.control(run.runId, "paused");
    hold.open();
    await core.launched();
    const paused = await core.find(run.runId);
    assert.deepEqual([paused.status, paused.launched, paused.label], ["paused", false, null]);
    assert.ok(existsSync(preparedFolders(core.home, run.runId).payload));
    await core.runs.control(run.runId, "running");
    await begunOf(core, run.runId);
    assert.equal(core.preparation.begun.length, 1, "it was not prepared again");
    await core.runs.control(run.runId, "cancelled");
    await leavesNothing(core, run.runId);
  });

  test("a pause and a cancellation leave nothing of what was prepared", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const hold = held(core);
    const run = await core.start(job.jobId);
    await hold.begun(1);
    await core.runs.control(run.runId, "paused");
    hold.open();
    await core.launched();
    await core.runs.control(run.runId, "cancelled");
    await leavesNothing(core, run.runId);
  });

  test("however often it is paused and resumed, it is launched in the end", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const runs = await Promise.all(Array.from({ length: 12 }, () => core.start(job.jobId)));
    await Promise.all(
      runs.map(async ({ runId }) => {
        for (let n = 0; n < 6; n++) {
          await core.runs.control(runId, n % 2 === 0 ? "paused" : "running");
        }
      }),
    );
    await Promise.all(runs.map(({ runId }) => core.endCommand(runId)));
    for (const { runId } of runs) assert.equal((await core.ended(runId)).status, "completed");
  });

  test("a run that is resumed while its preparation finds it paused is prepared after all", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const hold = held(core);
    const others = [];
    for (let n = 0; n < 4; n++) others.push(await core.start(job.jobId));
    await hold.begun(4);
    const run = await core.start(job.jobId);
    await until("a place in the line", () => core.launcher.waiting === 5);
    await core.runs.control(run.runId, "paused");
    const gate = new Gate();
    core.records.readGate = { runId: run.runId, gate };
    hold.open();
    await gate.reached;
    await core.runs.control(run.runId, "running");
    await until("nothing else under way", () => core.launcher.waiting === 1);
    gate.open();
    await Promise.all([...others, run].map(({ runId }) => core.endCommand(runId)));
    assert.equal((await core.ended(run.runId)).status, "completed");
  });

  test("deleting its job ends it", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const hold = held(core);
    const run = await core.start(job.jobId);
    await hold.begun(1);
    await core.definitions.delete((await core.records.job(job.jobId)) ?? job, { force: true });
    await until("the end of the preparation", () => core.preparation.underWay === 0);
    await leavesNothing(core, run.runId);
    assert.equal(await core.records.run(run.runId), null);
  });

  test("the end of the process aborts it, and the next one prepares it again", async () => {
    await using first = await startCore();
    const { job } = await readingJob(first);
    const hold = held(first);
    const run = await first.start(job.jobId);
    await hold.begun(1);
    await using core = await restarted(first);
    await core.recover();
    await begunOf(core, run.runId);
    assert.deepEqual(core.preparation.begun, [run.runId]);
  });

  test("a store that takes nothing delays the launch, and what was prepared is used then", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const hold = held(core);
    const run = await core.start(job.jobId);
    await hold.begun(1);
    core.broken.journal = true;
    hold.open();
    await until("a launch that has to wait", () => core.launcher.waiting === 1 && core.clock.timers > 0);
    core.broken.journal = false;
    await until("a store that takes writes", () => core.engine.unavailable === null);
    core.clock.fire();
    await begunOf(core, run.runId);
    assert.equal(core.preparation.begun.length, 1);
  });
});

test("after an unexpected error it is retried, and the others continue", async () => {
  await using core = await startCore();
  const { job } = await readingJob(core);
  core.preparation.hold = async () => {
    throw new TypeError("the test has broken this preparation");
  };
  const run = await core.start(job.jobId);
  await until("the retry", () => core.clock.timers === 1 && core.preparation.underWay === 0);
  const plain = await core.start((await core.job(quick)).jobId);
  assert.equal((await core.ended(plain.runId)).status, "completed");
  assert.equal((await core.find(run.runId)).status, "pending");
  core.preparation.hold = null;
  core.clock.fire();
  await begunOf(core, run.runId);
});

test("a permanent error shows in the label, and fails the run at the last try", async () => {
  await using core = await startCore();
  const { job } = await readingJob(core);
  core.preparation.hold = async () => {
    throw Object.assign(new Error("EIO: i/o error, read '/a/place'"), {
      code: "EIO",
      errno: -constants.errno.EIO,
    });
  };
  const run = await core.start(job.jobId);
  await core.whenRun(run.runId, ({ label }) => label === "Preparing again after EIO (i/o error)");
  core.clock.firesByItself = true;
  const triesMax = 60;
  const ended = await core.whenRun(
    run.runId,
    ({ finishedAtMs }) => finishedAtMs !== null || core.preparation.begun.length > triesMax,
  );
  assert.equal(ended.status, "failed");
  const { code, details } = JSON.parse(ended.failureJson ?? "{}");
  assert.equal(code, "preparation.unexpected_error");
  assert.match(details.message, /in 60 tries, the last time because of EIO \(i\/o error\)\.$/);
  assert.equal(core.preparation.begun.length, triesMax);
  await leavesNothing(core, run.runId);
});

describe("a run whose services are not there yet, such as after a restart", () => {
  const missing = [
    { service: "index", reason: "Its job is only being recovered." },
    { service: "pages", reason: "So is its." },
  ];

  /** More runs that wait for their services than are prepared at a time. */
  async function waitingRuns(core: TestCore) {
    await core.catalog("needy", { ...quick, required_services: ["index", "pages"] });
    const { jobId } = await ready(core, await core.create({ kind: "blueprint", blueprintId: "needy" }));
    const runs = [];
    for (let n = 0; n < 5; n++) runs.push(await core.accept(jobId));
    core.unmet.services = missing;
    for (const run of runs) core.runs.accepted(run);
    for (const { runId } of runs) {
      await core.whenRun(runId, ({ label }) => label === "Waiting for service index and 1 more");
    }
    await until("five waits", () => core.launcher.waiting === 5 && core.clock.timers === 1);
    return runs;
  }

  test("waits for them with a label, and holds up no preparation of others", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const runs = await waitingRuns(core);
    const other = await core.start(job.jobId);
    await begunOf(core, other.runId);
    assert.deepEqual(core.preparation.begun, [other.runId]);
    core.unmet.services = [];
    core.clock.firesByItself = true;
    for (const { runId } of runs) {
      const { status, label } = await core.ended(runId);
      assert.deepEqual([status, label], ["completed", null]);
    }
  });

  test("fails when it has looked for them often enough", async () => {
    await using core = await startCore();
    const runs = await waitingRuns(core);
    for (let round = 0; round < 100 && core.launcher.waiting > 0; round++) {
      core.clock.fire();
      await until("the next look", () => core.clock.timers === 1 || core.launcher.waiting === 0);
    }
    for (const { runId } of runs) assert.equal((await core.find(runId)).status, "failed");
  });

  test("is cancelled at once, and waits no more", async () => {
    await using core = await startCore();
    const [run, ...others] = await waitingRuns(core);
    assert.equal((await core.runs.control(run!.runId, "cancelled")).label, null);
    assert.equal(core.launcher.waiting, others.length);
  });

  test("may be paused meanwhile, and waits again when it is resumed", async () => {
    await using core = await startCore();
    const runs = await waitingRuns(core);
    const { runId } = runs[0]!;
    assert.equal((await core.runs.control(runId, "paused")).label, null);
    core.clock.firesByItself = true;
    for (const run of runs.slice(1)) assert.equal((await core.ended(run.runId)).status, "failed");
    await core.launched();
    core.clock.firesByItself = false;
    assert.equal((await core.find(runId)).status, "paused");
    await core.runs.control(runId, "running");
    await core.whenRun(runId, ({ label }) => label?.startsWith("Waiting for service") ?? false);
    core.unmet.services = [];
    await until("its wait", () => core.clock.timers === 1);
    core.clock.fire();
    assert.equal((await core.ended(runId)).status, "completed");
  });

  test("is found waiting by the end of the process, and by the next one", async () => {
    await using first = await startCore();
    const runs = await waitingRuns(first);
    await using core = await restarted(first);
    core.unmet.services = missing;
    await core.recover();
    await until("five waits", () => core.preparation.underWay === 0 && core.clock.timers === 1);
    core.unmet.services = [];
    core.clock.firesByItself = true;
    for (const { runId } of runs) assert.equal((await core.ended(runId)).status, "completed");
  });
});

describe("what has changed since a run was accepted fails it with the reason, and leaves nothing", () => {
  /** A run that is launched after a change. @returns its failure */
  async function failureAfter(core: TestCore, jobId: string, change: () => unknown) {
    const run = await core.accept(jobId);
    await change();
    core.runs.accepted(run);
    const ended = await core.ended(run.runId);
    assert.equal(ended.status, "failed");
    await leavesNothing(core, run.runId);
    const { code, details } = JSON.parse(ended.failureJson ?? "{}");
    return { code, message: String(details.message) };
  }

  test("a folder that is gone", async () => {
    await using core = await startCore();
    const { job, folder } = await readingJob(core);
    const failure = await failureAfter(core, job.jobId, () => rm(folder, { recursive: true }));
    assert.equal(failure.code, "preparation.folder_failed");
    assert.ok(failure.message.includes(folder), failure.message);
  });

  test("a configuration that the package does not take", async () => {
    await using core = await startCore();
    const manifest = { ...quick, config_schema: { properties: { pages: { type: "integer" } } } };
    await core.catalog("reader", manifest);
    const job = await ready(core, await core.create(source, { pages: 1 }));
    const failure = await failureAfter(core, job.jobId, () =>
      core.definitions.update(job, { resolved_configuration: { pages: "many" } }),
    );
    assert.equal(failure.code, "preparation.input_invalid");
    assert.match(failure.message, /pages/);
  });

  test("a variable that is not set any more", async () => {
    await using core = await startCore();
    await core.catalog("reader", { ...quick, requirements: { environment: ["TROUPE_TEST_NEEDED"] } });
    const job = await ready(core, await core.create(source));
    process.env.TROUPE_TEST_NEEDED = "here";
    const failure = await failureAfter(core, job.jobId, () => {
      delete process.env.TROUPE_TEST_NEEDED;
    });
    assert.equal(failure.code, "preparation.requirement_unmet");
    assert.match(failure.message, /TROUPE_TEST_NEEDED/);
  });

  test("a service that is not passing any more, once it was waited for long enough", async () => {
    await using core = await startCore();
    await core.catalog("reader", { ...quick, required_services: ["index"] });
    const job = await ready(core, await core.create(source));
    core.clock.firesByItself = true;
    const failure = await failureAfter(core, job.jobId, () => {
      core.unmet.services = [{ service: "index", reason: "It has just ended." }];
    });
    assert.equal(failure.code, "service.required_unavailable");
    assert.match(failure.message, /index.*It has just ended/);
    await assert.rejects(
      core.accept(job.jobId),
      (error: DomainError) => error.code === "requirements_not_met" && /just ended/.test(error.message),
    );
  });

  test("the last port, which a dashboard needs that was not asked for before", async () => {
    await using core = await startCore();
    await core.catalog("reader", quick);
    const job = await ready(core, await core.create(source));
    const failure = await failureAfter(core, job.jobId, async () => {
      await core.definitions.update(job, { resolved_configuration: { web_ui: { enabled: true } } });
      // The range has two ports.
      for (let n = 0; n < 2; n++) await core.accept(job.jobId);
    });
    assert.equal(failure.code, "preparation.no_free_port");
    assert.match(failure.message, /SVC_BLUEPRINT_WEB_UI_PORT_END/);
  });
});

describe("before a run is accepted", () => {
  test("a folder that is not there is refused, with its place in the request", async () => {
    await using core = await startCore();
    const { job } = await readingJob(core);
    const overrides = { documents: { folder: "/nowhere/at/all" } };
    await assert.rejects(core.accept(job.jobId, {}, overrides), (error: DomainError) => {
      assert.equal(error.code, "validation_failed");
      assert.deepEqual(
        error.errors.map(({ path }) => path),
        ["/config_overrides/documents/folder"],
      );
      return true;
    });
  });

  test("a program that is not there is refused as a requirement that is not met", async () => {
    await using core = await startCore();
    await core.catalog("reader", { ...quick, requirements: { commands: ["no-such-program"] } });
    await assert.rejects(
      core.launches.prepare("reader", { inputs: {}, configOverrides: null, name: null, trace: null }),
      (error: DomainError) => error.code === "requirements_not_met" && /no-such-program/.test(error.message),
    );
  });

  test("a validation reports everything that is wrong at once, and makes nothing", async () => {
    await using core = await startCore();
    const manifest = { ...reader, requirements: { commands: ["no-such-program"] } };
    await core.catalog("reader", manifest, files);
    const { errors, warnings } = await core.launches.validate("reader", {
      inputs: { $entrypoints: { nobody: [] } },
      config: { documents: { folder: "/nowhere/at/all" }, token: "********" },
    });
    const places = errors.map(({ path, code }) => `${code} ${path}`);
    assert.deepEqual(places.slice(0, 2), ["nothing_to_keep /config/token", "invalid_inputs /inputs"]);
    assert.ok(
      places.some((place) => place.endsWith("/config/documents/folder")),
      places.join(),
    );
    assert.ok(
      places.some((place) => place.startsWith("command_missing")),
      places.join(),
    );
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ["not_added"],
    );
    assert.deepEqual((await core.records.jobs({ includeTerminal: true, limit: 9, after: null })).rows, []);
  });
});

describe("a run with a dashboard", () => {
  const webUi = { "config/default.json": { web_ui: { enabled: true, output: { title: "Progress" } } } };

  test("has a port from its acceptance on; without a free one it is refused, and leaves no job", async () => {
    await using core = await startCore();
    await core.catalog("reader", reader, webUi);
    const { jobId } = await ready(core, await core.create(source));
    // The range has two ports.
    const runs = [await core.accept(jobId), await core.accept(jobId)];
    const ports = await Promise.all(runs.map(({ runId }) => core.portRecords.portsOf(runId)));
    assert.deepEqual(ports.map((one) => one.get("web_ui")).sort(), [1, 2]);
    const jobs = { includeTerminal: true, limit: 9, after: null };
    const count = (await core.records.jobs(jobs)).rows.length;
    const launch = { inputs: {}, configOverrides: null, name: null, trace: null };
    await assert.rejects(
      core.launches.prepare("reader", launch),
      (error: DomainError) => error.code === "no_free_port",
    );
    assert.equal((await core.records.jobs(jobs)).rows.length, count);
    const asked = await core.launches.validate("reader", { inputs: {}, config: {} });
    assert.ok(asked.warnings.some(({ code }) => code === "no_free_port"));
  });

  test("that the job's configuration asks for only later gets its port at the launch", async () => {
    await using core = await startCore();
    await core.catalog("reader", reader, { "config/default.json": {}, "payloads/input/own.txt": "own" });
    const before = await ready(core, await core.create(source));
    const { jobId } = before;
    const run = await core.accept(jobId);
    assert.equal((await core.portRecords.portsOf(run.runId)).size, 0);
    await core.definitions.update(before, { resolved_configuration: { web_ui: { enabled: true } } });
    core.runs.accepted(run);
    await core.whenRun(run.runId, (one) => one.launched);
    assert.equal((await core.portRecords.portsOf(run.runId)).size, 1);
  });
});
