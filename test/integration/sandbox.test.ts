// Sandboxes of the real program: jobs that run in them, what of them is left when it is killed, and jobs that are refused.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { bundlePrefix } from "../../src/execution/sandbox/gvisor.ts";
import { writeFolder } from "../support/bundle-files.ts";
import { testedEngine } from "../support/engines.ts";
import { eventually } from "../support/execution.ts";
import { graph } from "../support/manifests.ts";
import { withoutPrivileges } from "../support/privileges.ts";
import { startProgram, temporaryHome } from "../support/program.ts";
import { call, historyOf, jobDetail, request, submitFolder } from "../support/runtime-api.ts";
import { noSandboxes } from "../support/sandboxes.ts";

/** A job of one command in a sandbox. */
function boxed(command: string, sandbox: JsonObject = {}): JsonObject {
  const config = { runner_module: "Sandbox", command, sandbox };
  return graph("boxed", [{ node_id: "worker", agent_type: "executor", config }]);
}

/** A job of one module. */
function moduleIn(isolation: string): JsonObject {
  return graph("called", [
    { node_id: "worker", agent_type: "module", config: { module: "m.mjs", isolation } },
  ]);
}

const bare = graph("bare", [{ node_id: "worker", agent_type: "executor", config: { command: "true" } }]);

function processesWith(word: string): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word);
    } catch {
      return false;
    }
  }).length;
}

describe("sandboxes of the program", { skip: noSandboxes, concurrency: 2 }, () => {
  test("run jobs, which leave nothing in the home when they are removed", async () => {
    await using program = await startProgram();
    const command =
      'id -u; cat "$SVC_INPUT_FILE"; echo file >"$SVC_OUTPUT_DIR/a.txt"; mkdir -m 0 closed; echo >f';
    const { id } = await call(program, "POST", "/jobs", boxed(command));
    const events = await historyOf(program, String(id));
    assert.equal(events.at(-1)?.type, "job_completed", JSON.stringify(events.at(-1)));
    const output = events.filter(({ type }) => type === "log").map(({ payload }) => payload.message);
    assert.deepEqual(output, ["65534", "{}"]);
    assert.ok(events.some(({ type }) => type === "sandbox_job_completed"));
    await call(program, "POST", "/jobs/cleanup");
    assert.deepEqual(readdirSync(join(program.home, "runs")), []);
  });

  test("end at once when the program is killed, and run again when it is started", async () => {
    const home = await temporaryHome();
    try {
      const word = `boxed-${process.pid}`;
      await using first = await startProgram({ home });
      const command = `[ "$SVC_ATTEMPT" = 1 ] && sleep 600; : ${word}`;
      const { id } = await call(first, "POST", "/jobs", boxed(command, { limits: { processes: 99 } }));
      // The machine sees gVisor's own processes only, and these by where they find their descriptions.
      const words =
        testedEngine === "gvisor" ? [bundlePrefix(join(home, "tmp/sandbox"))] : [word, "sleep\x00600"];
      await eventually(() => words.every((one) => processesWith(one) > 0));
      let found: JsonObject = {};
      await eventually(async () => {
        [found = {}] = (await call(first, "GET", `/jobs/${id}`)).sandboxes as JsonObject[];
        // The first look may have come before the shell has started anything.
        return ((found.peaks as { processes?: number } | null)?.processes ?? 0) > 1;
      });
      const { engine, network_allow: allow, limits, peaks } = found;
      assert.deepEqual(
        [engine, allow, limits],
        [testedEngine, [], { processes: 99, file_mb: 16_384, tmp_mb: 256 }],
      );
      const { processes, memory_bytes: memory } = peaks as Readonly<Record<string, number>>;
      // The shell and what it waits for, and nothing that only holds the sandbox.
      if (testedEngine === "bubblewrap") assert.equal(processes, 2);
      assert.ok(memory! > 0);
      await first.kill();
      await eventually(() => words.every((one) => processesWith(one) === 0));
      await using second = await startProgram({ home });
      assert.equal((await historyOf(second, String(id))).at(-1)?.type, "job_completed");
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  test("are all that there is where they are required", async () => {
    await using program = await startProgram({ env: { SVC_REQUIRE_SANDBOX: "true" } });
    const refused = await request(program, "POST", "/jobs", bare);
    assert.equal(refused.status, 400);
    assert.match(String(refused.body.error), /Node "worker" runs its command without a sandbox/);
    const { id } = await call(program, "POST", "/jobs", boxed("true"));
    assert.equal((await historyOf(program, String(id))).at(-1)?.type, "job_completed");
    assert.match(
      String((await request(program, "POST", "/jobs", moduleIn("thread"))).body.error),
      /is a module, which runs without a sandbox.*isolation to "process"/,
    );
    const folder = await writeFolder(join(program.home, "package"), {
      "manifest.json": JSON.stringify(moduleIn("process")),
      "payloads/m.mjs": "export const handle = () => console.log(process.getuid());",
    });
    const ofModule = await submitFolder(program, folder);
    const events = await historyOf(program, String(ofModule));
    assert.equal(events.at(-1)?.type, "job_completed", JSON.stringify(events.at(-1)));
    assert.ok(events.some(({ type }) => type === "sandbox_job_completed"));
    assert.ok(events.some(({ type, payload }) => type === "log" && payload.message === "65534"));
    assert.equal(events.find(({ type }) => type === "agent_started")?.payload.agent_type, "module");
  });

  test("keep a memory bomb within its policy, where control groups can be had", async () => {
    await using program = await startProgram();
    const bomb = boxed("/usr/bin/python3 -c 'x = bytearray(512 << 20)'", { limits: { memory_mb: 64 } });
    const { id } = await call(program, "POST", "/jobs", bomb);
    const last = (await historyOf(program, String(id))).at(-1);
    const { run_id: runId } = (await jobDetail(program, String(id))).job;
    const summary = await call(program, "GET", `/runs/${runId}/observability-summary`);
    if ((summary.resources as { enforcement?: string } | undefined)?.enforcement === "none")
      assert.equal(last?.type, "job_completed");
    else assert.equal((last?.error as { code?: string } | undefined)?.code, "resource.memory_exceeded");
  });
});

const isPowerless = withoutPrivileges.length > 0;
test("without sandboxes a job is refused, with what to do", {
  skip: isPowerless ? false : "not root",
}, async () => {
  // Root that may not give its rights up: one sandbox made with them would be no sandbox.
  await using program = await startProgram({ through: withoutPrivileges });
  const marker = join(program.home, "ran");
  const refused = await request(program, "POST", "/jobs", boxed(`touch '${marker}'`));
  assert.equal(refused.status, 400);
  assert.match(
    String(refused.body.error),
    /Node "worker" runs in a sandbox, and this machine has none: .*ordinary user/,
  );
  assert.equal(existsSync(marker), false);
});
