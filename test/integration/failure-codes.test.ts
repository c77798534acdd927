// The catalogue of failures against the program: every code reaches its readers, as the whole object that
// was promised. The last test finds codes that nobody meets, and codes that were put together from parts.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Failure } from "../../src/engine/failure.ts";
import { type FailureCode, failureCatalogue } from "../../src/engine/failure-catalogue.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { limits } from "../../src/engine/limits.ts";
import { type Files, writeFolder } from "../support/bundle-files.ts";
import { EngineHarness } from "../support/engine-harness.ts";
import * as gateway from "../support/gateway-api.ts";
import { executor, graph, module, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { ended, happens, type Run, submit } from "../support/job-watch.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { submitFolder } from "../support/runtime-api.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

const sandboxes = {
  why: "needs a machine with sandboxes, or one without",
  test: "src/execution/sandbox/sandboxes.test.ts",
};

const accepted = {
  why: "needs something that changes between the acceptance of a run and its launch",
  test: "src/launch/preparation-queue.test.ts",
};

/** Codes whose cause is not for a whole program, and the tests that show them. */
const shownElsewhere: Readonly<
  Partial<Record<FailureCode, { readonly why: string; readonly test: string }>>
> = {
  "executor.input_unread": {
    why: "needs 160 MiB of messages",
    test: "src/execution/runner/long-lived.test.ts",
  },
  "executor.runner_unavailable": {
    why: "needs a job that was accepted by another version",
    test: "src/execution/runner/command.test.ts",
  },
  "resource.exhausted": {
    why: "needs a machine without processes or memory",
    test: "src/execution/runner/command-failure.test.ts",
  },
  "resource.memory_exceeded": {
    why: "needs control groups, which not every machine has",
    test: "src/execution/runner/own-resources.test.ts",
  },
  "resource.volume_elsewhere": {
    why: "needs two nodes that make a volume of one name in the same moment",
    test: "src/execution/runner/volumes.test.ts",
  },
  "runtime.record_damaged": {
    why: "needs a damaged database",
    test: "src/engine/store-refusals.test.ts",
  },
  "runtime.bundle_missing": {
    why: "needs a crash between the acceptance of a run and its launch",
    test: "src/launch/launcher.test.ts",
  },
  "inputs.invalid": {
    why: "needs a run that was accepted by another version",
    test: "src/launch/launcher.test.ts",
  },
  "blueprint.not_prepared": {
    why: "needs a blueprint whose addition fails",
    test: "src/launch/blueprint-jobs.test.ts",
  },
  "sandbox.unavailable": sandboxes,
  "sandbox.required": sandboxes,
  "sandbox.not_made": sandboxes,
  "sandbox.policy_invalid": sandboxes,
  "sandbox.policy_unmet": sandboxes,
  "sandbox.network_unreachable": { ...sandboxes, test: "src/execution/sandbox/network.test.ts" },
  "preparation.folder_failed": accepted,
  "preparation.input_invalid": accepted,
  "preparation.requirement_unmet": accepted,
  "preparation.no_free_port": accepted,
  "preparation.unexpected_error": {
    why: "needs a machine that fails sixty times in a row",
    test: "src/launch/preparation-queue.test.ts",
  },
  "service.required_unavailable": accepted,
};

const met = new Set<FailureCode>();

/** Asserts that a failure is whole, and of this code. */
function assertFailure(found: unknown, code: FailureCode): Failure {
  const failure = found as Failure | null;
  assert.equal(failure?.code, code, JSON.stringify(failure));
  const { category, retryable, remediation } = failureCatalogue[code];
  assert.equal(failure.schema_version, "svc.error.v1");
  assert.equal(failure.remediation, remediation);
  assert.deepEqual([failure.details.category, failure.details.retryable], [category, retryable]);
  assert.ok(failure.desc.length > 0 && failure.details.message.startsWith(failure.desc.replace(/…$/, "")));
  assert.match(failure.trace_id, /^[0-9a-f]{32}$/);
  assert.match(failure.span_id, /^[0-9a-f]{16}$/);
  assert.ok(Number(failure.event_id) > 0 && !Number.isNaN(Date.parse(failure.occurred_at)));
  assert.match(failure.links.find(({ rel }) => rel === "run")?.url ?? "", /^\/api\/v1\/runs\/./);
  met.add(code);
  return failure;
}

describe("a failing run names its cause", () => {
  let home: string;
  let program: Program;
  let runtime: Program;
  before(async () => {
    home = await temporaryHome();
    program = await gateway.startGateway({ home });
    runtime = await gateway.runtimeApiOf(program);
  });
  after(async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  });

  /** Submits a graph of one node. @param more further fields of the manifest */
  const one = (node: JsonObject, more: JsonObject = {}) =>
    submit(runtime, graph("failing", [node], [], more));
  const command = (script: string, config: JsonObject = {}) => one(executor("worker", script, config));

  /** Waits for a job's failure, and for the event that reported it first. */
  async function assertFails(jobId: string, code: FailureCode): Promise<Run> {
    const run = await ended(runtime, jobId);
    assert.equal(run.status, "failed");
    const failure = assertFailure((run.detail.job as JsonObject).failure, code);
    const reported = run.events.find(({ id }) => String(id) === failure.event_id);
    assert.equal((reported?.error as Failure | undefined)?.code, code, JSON.stringify(reported));
    assert.equal((run.events.at(-1)?.error as Failure | undefined)?.code, code);
    return run;
  }

  const commands: readonly (readonly [FailureCode, () => Promise<string>])[] = [
    ["executor.exit_nonzero", () => command("echo why >&2; exit 3")],
    ["executor.killed_by_signal", () => command("kill -SEGV $$")],
    ["executor.timeout", () => command("sleep 1000", { timeout_seconds: 0.2 })],
    ["executor.spawn_failed", () => one(executor("worker", ["no-such-program"]))],
    ["executor.staging_failed", () => command("true", { upload_path: "absent" })],
    ["executor.invalid_output", () => command(`echo '{"emit_messages": 1}'`)],
    // The folder of the agent's attempts becomes a file, and a file in the workspace keeps the agent's folder: what the
    // machine then refuses is nobody's command.
    [
      "executor.workspace_failed",
      () => {
        const script = ': > kept; d=$(dirname "$(dirname "$SVC_OUTPUT_DIR")"); mv "$d" "$d.away"; : > "$d"';
        return one(executor("worker", script), { initial_inputs: { worker: [1, 2] } });
      },
    ],
    [
      "resource.volume_full",
      () => {
        const volumes = [{ name: "full", path: "full", size_mb: 1 }];
        const node = executor("worker", "head -c 2000000 /dev/urandom > full/file");
        return one({ ...node, resources: { volumes } }, { initial_inputs: { worker: [1, 2] } });
      },
    ],
    ["sensor.file_invalid", () => one(sensor("worker", { file: "relative.txt" }))],
    ["resource.unsatisfiable", () => command("true", { pool: "absent" })],
    ["job.timeout", () => one(executor("worker", "sleep 1000"), { policies: { timeout_seconds: 0.2 } })],
    ["executor.outcome_lost", () => command("kill -9 $PPID; sleep 1000")],
  ];
  for (const [code, start] of commands) {
    test(code, async () => {
      const run = await assertFails(await start(), code);
      const isOfAttempt = !["job.timeout", "resource.unsatisfiable", "sensor.file_invalid"].includes(code);
      if (isOfAttempt) assert.equal(run.of("sandbox_job_failed").length, 1);
    });
  }

  test("executor.artifact_failed", async () => {
    const blobs = join(home, "blobs");
    await rm(blobs, { recursive: true, force: true });
    await writeFile(blobs, "");
    try {
      await assertFails(await command('echo x > "$SVC_OUTPUT_DIR/x"'), "executor.artifact_failed");
    } finally {
      await rm(blobs);
    }
  });

  const modules: readonly (readonly [FailureCode, string, JsonObject?])[] = [
    ["module.threw", "throw new Error('no luck');"],
    ["module.load_failed", "", { module: "absent.mjs" }],
    ["module.timeout", "for (;;) {}", { timeout_seconds: 0.2 }],
    ["module.invalid_output", "return 5;"],
    ["module.out_of_memory", "const kept = []; for (;;) kept.push(new Array(1_000_000).fill(0));"],
    ["message.body_too_large", "return { emit: [{ type: 'large', body: 'x'.repeat(5_000_000) }] };"],
  ];
  for (const [code, body, config = {}] of modules) {
    test(code, async () => {
      const files: Files = {
        "manifest.json": graph("modular", [module("m", { module: "m.mjs", ...config })]),
        "payloads/m.mjs": `export async function handle() { ${body} }`,
      };
      const folder = await writeFolder(join(home, "tmp", code), files);
      await assertFails(await submitFolder(runtime, folder), code);
    });
  }

  test("configuration.variable_missing", async () => {
    const configuration = { resolved_configuration: { region: { $env: "ACME_ABSENT" } } };
    const jobId = await gateway.createJob(program, graph("env", [executor("worker", "true")]), configuration);
    const { run, events } = await gateway.ended(program, await gateway.startRun(program, jobId));
    assertFailure(run.failure, "configuration.variable_missing");
    assertFailure(events.at(-1)?.error, "configuration.variable_missing");
  });

  test("configuration.variable_withheld: of a package's own configuration, which nobody sent", async () => {
    const folder = await writeFolder(join(home, "tmp", "withheld"), {
      "manifest.json": graph("withheld", [executor("worker", "true")]),
      "config/default.json": { url: { $env: "SVC_API_TOKEN" } },
    });
    const run = await assertFails(await submitFolder(runtime, folder), "configuration.variable_withheld");
    assert.match(JSON.stringify(run.detail), /SVC_API_TOKEN at \/url/);
  });

  test("after a restart: runtime.recovered_interrupted, configuration.unreadable", async () => {
    const once = { safe_to_retry: false };
    const interrupted = await one(executor("worker", "echo up; sleep 1000", once));
    await happens(runtime, interrupted, "log");
    const withSecret = await gateway.createJob(program, graph("sealed", [router("in")]), {
      resolved_configuration: { api_key: "correct-horse-battery-staple" },
    });
    await program.kill();
    const env = { SVC_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
    program = await startGatewayHere({ home, env });
    runtime = await gateway.runtimeApiOf(program);
    await assertFails(interrupted, "runtime.recovered_interrupted");
    const { run, events } = await gateway.ended(program, await gateway.startRun(program, withSecret));
    assertFailure(run.failure, "configuration.unreadable");
    assertFailure(events.at(-1)?.error, "configuration.unreadable");
  });
});

describe("a job that comes back after a restart", () => {
  /** A job that waits, whose stored form is changed before the next start. */
  async function changed(change: (job: ReturnType<EngineHarness["job"]>) => void): Promise<unknown> {
    const harness = new EngineHarness();
    const jobId = await harness.submit({ entrypoints: ["s"], nodes: [sensor("s"), router("r")] });
    change(harness.job(jobId));
    await harness.restart();
    if (harness.status(jobId) === "running") await harness.deliver(jobId, "r", {});
    assert.equal(harness.status(jobId), "failed");
    assertFailure(
      harness.events(jobId).at(-1)?.error,
      harness.events(jobId).at(-1)?.payload.code as FailureCode,
    );
    return JSON.parse(harness.job(jobId).progress.failureJson ?? "null");
  }

  test("with a manifest that this version refuses: manifest.invalid", async () => {
    const failure = await changed((job) => Object.assign(job.insert, { manifestJson: '{"nodes": []}' }));
    assertFailure(failure, "manifest.invalid");
  });

  test("and has sent too many messages: job.message_limit", async () => {
    const failure = await changed((job) => {
      job.progress = { ...job.progress, messageSeq: limits.batchJobMessagesMax };
    });
    assertFailure(failure, "job.message_limit");
  });
});

describe("the catalogue", () => {
  test("has no code that nobody meets", () => {
    for (const [code, { test: file }] of Object.entries(shownElsewhere)) {
      assert.ok(
        readFileSync(join(root, file), "utf8").includes(`"${code}"`),
        `${file} does not show ${code}`,
      );
    }
    const shown = [...met, ...Object.keys(shownElsewhere)].sort();
    assert.deepEqual(shown, Object.keys(failureCatalogue).sort());
  });

  test("has every code that the program spells, and the program makes none from parts", () => {
    const subjects = new Set(Object.keys(failureCatalogue).map((code) => code.split(".", 1)[0]));
    const word = new RegExp(`["'\`](${[...subjects].join("|")})\\.([a-z_]+|\\$\\{[^}]*\\})["'\`]`, "g");
    // Attributes of traces have names of the same form.
    const files = globSync("src/**/*.ts", { cwd: root, exclude: ["src/observability/traces/**"] }).filter(
      (file) => !/test(-[a-z]+)?\.ts$/.test(file),
    );
    const unknown = files.flatMap((file) =>
      [...readFileSync(join(root, file), "utf8").matchAll(word)]
        .map(([, subject, rest]) => `${subject}.${rest}`)
        // "runtime.sock" and "job.json" are names of files.
        .filter((code) => !Object.hasOwn(failureCatalogue, code) && !/\.(json|sock)$/.test(code))
        .map((code) => `${file}: ${code}`),
    );
    assert.deepEqual(unknown, []);
  });
});
