// What workers of prepared runs find: the runtime's Node, the blueprint's resources, models, and the run's
// live events.

import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { commandOf, executorConfig, RunnerFixture } from "../../../test/support/execution.ts";
import { preparedFolders } from "./paths.ts";

test("{node} is the Node that the runtime runs on, in a list and in a script", async () => {
  await using fixture = new RunnerFixture();
  fixture.runtimeEnv.PATH = "/nowhere";
  for (const command of [["{node}", "-p", "process.execPath"], '{node} -p "process.execPath"']) {
    const outcome = await fixture.run({ config: executorConfig({ command }) });
    assert.equal(commandOf(outcome).stdout.trim(), process.execPath);
  }
});

test("a run with a payload of its own uploads from it, and finds the resources that were linked beside it", async () => {
  await using fixture = new RunnerFixture();
  const { payload, resources } = preparedFolders(fixture.home, "run_1");
  const made = join(fixture.home, "made");
  for (const folder of [join(payload, "worker"), resources, made]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(payload, "worker/staged.txt"), "staged ");
  writeFileSync(join(made, "data.txt"), "prepared");
  symlinkSync(made, join(resources, "index"));
  const config = executorConfig({
    command: ["sh", "-c", 'cat staged.txt "$SVC_RESOURCES_DIR/index/data.txt"'],
    uploadPaths: [{ path: "worker", as: "worker" }],
    workdir: "worker",
  });
  const outcome = await fixture.run({ config, hasOwnPayload: true, bundleFingerprint: "f" });
  assert.equal(commandOf(outcome).stdout, "staged prepared");
});

test("a run with models finds the links to them", async () => {
  await using fixture = new RunnerFixture();
  const { models } = preparedFolders(fixture.home, "run_1");
  mkdirSync(models, { recursive: true });
  writeFileSync(join(fixture.home, "file"), "weights");
  symlinkSync(join(fixture.home, "file"), join(models, "tiny"));
  const outcome = await fixture.sh('cat "$SVC_MODELS_DIR/tiny"', {}, { hasOwnPayload: true });
  assert.equal(commandOf(outcome).stdout, "weights");
});

test("without resources and models, or without a payload of its own, a run has no folders for them", async () => {
  await using fixture = new RunnerFixture();
  const script = "printenv SVC_RESOURCES_DIR SVC_MODELS_DIR || echo absent";
  assert.equal(commandOf(await fixture.sh(script, {}, { hasOwnPayload: true })).stdout, "absent\n");
  const { resources, models } = preparedFolders(fixture.home, "run_1");
  for (const folder of [resources, models]) mkdirSync(folder, { recursive: true });
  assert.equal(commandOf(await fixture.sh(script)).stdout, "absent\n");
});

const shown = `for name in URL TOKEN; do printenv SVC_BLUEPRINT_RUN_EVENTS_$name || echo absent; done
echo token-of-run >&2`;

test("only a node that asks for its run's events is told where they are, and its token is shown nowhere", async () => {
  await using fixture = new RunnerFixture();
  fixture.runEvents = (runId) => ({ url: `http://127.0.0.1:1/runs/${runId}`, token: "token-of-run" });
  const asking = commandOf(await fixture.sh(shown, { runEvents: true }));
  assert.equal(asking.stdout, "http://127.0.0.1:1/runs/run_1\n[redacted]\n");
  assert.equal(asking.stderr, "[redacted]\n");
  assert.equal(commandOf(await fixture.sh(shown)).stdout, "absent\nabsent\n");
});

test("an agent gets its variables as they are on the machine that runs it", async () => {
  await using fixture = new RunnerFixture();
  fixture.environmentHere = (agentId, declared) => ({ ...declared, PLACE: `${agentId} here` });
  const environment = { PLACE: "there", OTHER: "as declared" };
  const { stdout } = commandOf(await fixture.sh('echo "$PLACE, $OTHER"', { environment }));
  assert.match(stdout, /^\w+ here, as declared\n$/);
});

test("events without a token, and no events at all, leave the variables out", async () => {
  await using fixture = new RunnerFixture();
  fixture.runEvents = () => ({ url: "http://127.0.0.1:1/", token: null });
  assert.equal(
    commandOf(await fixture.sh(shown, { runEvents: true })).stdout,
    "http://127.0.0.1:1/\nabsent\n",
  );
  fixture.runEvents = () => null;
  assert.equal(commandOf(await fixture.sh(shown, { runEvents: true })).stdout, "absent\nabsent\n");
});

test("a command is told what of the machine is its own, and CUDA which GPUs; others are told nothing", async () => {
  await using fixture = new RunnerFixture();
  const script =
    "printenv SVC_ALLOCATION_JSON CUDA_VISIBLE_DEVICES SVC_PORT_ADMIN_UI SVC_PORT_WEB || echo absent";
  assert.equal(commandOf(await fixture.sh(script)).stdout, "absent\n");
  const claims = [{ kind: "device", name: "/dev/x", isShared: false } as const];
  const amounts = { cpuMillis: 1_500, memoryBytes: 512 * 1024 ** 2, diskBytes: 0, gpus: 2 };
  const demand = { ...amounts, named: { claims, freePorts: 0 } };
  const lease = { leaseId: "lease_1", pool: "default", slots: 1, gpus: [0, 3], ports: [20_007] };
  const ports = [
    { label: "web", port: 8080 },
    { label: "admin-ui", port: null },
  ];
  const outcome = await fixture.sh(script, { demand, ports }, { lease });
  assert.equal(
    commandOf(outcome).stdout,
    '{"cpu":1.5,"memory_mb":512,"disk_mb":0,"gpu_indices":[0,3],"ports":{"web":8080,"admin-ui":20007},"volumes":{},"devices":["/dev/x"]}\n0,3\n20007\n8080\n',
  );
});
