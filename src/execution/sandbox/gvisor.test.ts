// Sandboxes made by gVisor: the contract of workers, how they end, what is refused, and what is left. The tests of the other
// files run with it, too, when TROUPE_TEST_ENGINE is gvisor.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  commandOf,
  eventually,
  executorConfig,
  failedWith,
  RunnerFixture,
  systemNetworks,
  taskStart,
} from "../../../test/support/execution.ts";
import { sandboxed } from "../../../test/support/sandboxes.ts";
import { bundlePrefix } from "./gvisor.ts";
import { Sandboxes } from "./sandboxes.ts";

/** Longer than it ever takes. */
const GRACE_MS = 20_000;
const skip = spawnSync("runsc", ["--version"]).status === 0 ? false : "gVisor (runsc) is not here";

describe("a sandbox made by gVisor", { skip, concurrency: 2 }, () => {
  let home: string;
  let sandboxes: Sandboxes;
  let fixture: RunnerFixture;
  before(() => {
    home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-gvisor-"));
    sandboxes = new Sandboxes(home, systemNetworks(), "gvisor");
    fixture = new RunnerFixture(home, undefined, { sandboxes });
  });
  after(() => fixture[Symbol.asyncDispose]());

  test("has a kernel of its own, and the contract of workers", async () => {
    const script = `
      cat "$SVC_INPUT_FILE"; [ "$PWD" = /sandbox/job ] && [ "$SECRET" = plain ] || exit 3
      echo '{"type": "progress", "payload": {"percent": 5}}' >"$SVC_EVENT_STREAM" || exit 4
      echo file >"$SVC_OUTPUT_DIR/a.txt" && echo shared >"$SVC_RUN_DIR/s" || exit 5
      cat /proc/version; ls /sys /home /root 2>/dev/null; touch /x /sandbox/attempt/x 2>/dev/null; exit 0`;
    const outcome = await fixture.run({
      config: executorConfig({ command: script, ...sandboxed(), environment: { SECRET: "plain" } }),
      body: { text: "hello" },
    });
    assert.equal(outcome.kind, "succeeded", JSON.stringify(outcome));
    const { stdout } = commandOf(outcome);
    assert.match(stdout, /^\{"text":"hello"\}Linux version 4\.4\.0 [^\n]*\n$/);
    assert.notEqual(stdout, readFileSync("/proc/version", "utf8"));
    assert.deepEqual(outcome.kind === "succeeded" && outcome.artifacts.map(({ name }) => name), ["a.txt"]);
    assert.ok(fixture.listener.events.some(({ type }) => type === "progress"));
  });

  test("hears SIGTERM, and ends with the code of its command", async () => {
    const script = `trap 'echo heard >"$SVC_RUN_DIR/heard"; exit 3' TERM; : >"$SVC_RUN_DIR/ready"; while :; do sleep 0.05; done`;
    const config = executorConfig({ command: script, ...sandboxed() });
    const task = taskStart({ runId: "run_term", agentId: "term", config });
    const shared = join(home, "runs/run_term/shared");
    fixture.runner.start(task);
    await eventually(() => existsSync(join(shared, "ready")));
    fixture.runner.stop(task.ref, GRACE_MS);
    assert.equal((await fixture.listener.outcome(task.ref)).kind, "interrupted");
    assert.equal(readFileSync(join(shared, "heard"), "utf8"), "heard\n");
    const ended = await fixture.sh("exit 7", sandboxed(), { agentId: "code" });
    assert.match(failedWith(ended, "executor.exit_nonzero"), /exit code 7/);
  });

  test("reaches the hosts of its policy only", async () => {
    const server = createServer((_, response) => response.end("hello"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const allowed = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const script = `curl -sS http://${allowed}; curl -sS -o /dev/null -w ' %{http_code}' http://127.0.0.2:1/`;
      const policy = sandboxed({ network: { allow: [allowed] } });
      const outcome = await fixture.sh(script, policy, { agentId: "network" });
      assert.equal(commandOf(outcome).stdout, "hello 403", JSON.stringify(outcome));
      const without = await fixture.sh(`curl -sS http://${allowed}`, sandboxed(), { agentId: "no-network" });
      failedWith(without, "executor.exit_nonzero");
    } finally {
      server.close();
    }
  });

  test("is refused what gVisor cannot give, before the command starts", async () => {
    const outcome = await fixture.sh('touch "$SVC_RUN_DIR/ran"', sandboxed({ devices: ["/dev/full"] }), {
      ...{ runId: "run_device", agentId: "device" },
    });
    const message = failedWith(outcome, "sandbox.policy_unmet");
    assert.match(message, /devices of the machine, which gvisor cannot give it/);
    assert.equal(existsSync(join(home, "runs/run_device/shared/ran")), false);
  });

  test("leaves nothing where its description was, and nothing of a killed runtime's", async () => {
    const folder = mkdtempSync(join(realpathSync(tmpdir()), "troupe-gvisor-"));
    try {
      const prefix = bundlePrefix(join(folder, "tmp/sandbox"));
      const left = mkdtempSync(prefix);
      writeFileSync(join(left, "config.json"), "");
      assert.equal(await new Sandboxes(folder, null, "gvisor").refusal(), null);
      const found = readdirSync(dirname(prefix)).filter((name) => name.startsWith(basename(prefix)));
      assert.deepEqual(found, []);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("where gVisor is named and missing there are no sandboxes, although bubblewrap is there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-gvisor-"));
  try {
    const refusal = await new Sandboxes(folder, null, "gvisor", []).refusal();
    assert.match(refusal ?? "", /gVisor is missing, which SVC_SANDBOX_ENGINE names/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
