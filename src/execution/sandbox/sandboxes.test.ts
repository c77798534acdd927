// Commands in sandboxes: what the contract of workers is there, how they end, and what is refused.

import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { testedEngine } from "../../../test/support/engines.ts";
import {
  commandOf,
  eventually,
  executorConfig,
  failedWith,
  hastyClock,
  RunnerFixture,
  taskStart,
} from "../../../test/support/execution.ts";
import { noSandboxes, sandboxed, sandboxLabels } from "../../../test/support/sandboxes.ts";
import type { ExecutorConfig } from "../../engine/graph.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";
import { machineSource } from "../process/process-table.ts";
import { preparedFolders } from "../runner/paths.ts";
import { Sandboxes } from "./sandboxes.ts";

/** What a worker printed that succeeded. */
function printed(outcome: TaskOutcome): string {
  assert.equal(outcome.kind, "succeeded", JSON.stringify(outcome));
  return commandOf(outcome).stdout;
}

/** Processes that have a word of their own among their arguments. */
async function processesWith(word: string): Promise<number> {
  const processes = await machineSource.read();
  return processes.filter(({ pid, zombie }) => !zombie && commandLine(pid).includes(word)).length;
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}

let seq = 0;
const ownWord = () => `worker-${process.pid}-${++seq}`;

describe("a command in a sandbox", { skip: noSandboxes, concurrency: 2 }, () => {
  let fixture: RunnerFixture;
  before(() => {
    fixture = new RunnerFixture(undefined, hastyClock);
  });
  after(() => fixture[Symbol.asyncDispose]());

  const sh = (script: string, policy: JsonObject = {}, changes: Partial<ExecutorConfig> = {}) =>
    fixture.sh(script, { ...sandboxed(policy), ...changes }, { agentId: ownWord() });

  test("finds all that the contract of workers promises, at paths of its own", async () => {
    const script = `
      cat "$SVC_INPUT_FILE"; cat {message_file} >/dev/null && cat "$SVC_CONTEXT_FILE" >/dev/null || exit 3
      [ "$PWD" = /sandbox/job ] && [ "$SVC_WORKDIR" = "$PWD" ] && [ {run_dir} = /sandbox/run ] || exit 4
      echo '{"type": "progress", "payload": {"percent": 5}}' >"$SVC_EVENT_STREAM" || exit 5
      echo warning >/dev/stderr && echo file >"$SVC_OUTPUT_DIR/a.txt" && echo shared >"$SVC_RUN_DIR/s" || exit 6
      [ "$({node} -p 6*7)" = 42 ] && [ "$HOME$TMPDIR" = /tmp/tmp ] && id -u`;
    const outcome = await fixture.run({
      config: executorConfig({ command: script, ...sandboxed() }),
      body: { text: "hello" },
    });
    assert.equal(printed(outcome), '{"text":"hello"}65534\n');
    assert.deepEqual(outcome.kind === "succeeded" && outcome.artifacts.map(({ name }) => name), ["a.txt"]);
    assert.equal(commandOf(outcome).stderr, "warning\n");
    const types = fixture.listener.events.map(({ type }) => type);
    assert.ok(types.includes("progress"));
  });

  test("has its uploads where the node wants them, and works there", async () => {
    fixture.write(
      "tool/run.sh",
      '#!/bin/sh\necho "$PWD"; cat data.txt; echo more >new.txt && rm data.txt\n',
      0o755,
    );
    fixture.write("tool/data.txt", "data");
    const outcome = await fixture.run({
      agentId: ownWord(),
      bundleFingerprint: "f",
      config: executorConfig({
        command: ["/sandbox/job/tool/run.sh"],
        uploadPaths: [{ path: "tool", as: "tool" }],
        workdir: "tool",
        ...sandboxed(),
        sandboxUploadPath: "/work/here",
      }),
    });
    assert.equal(printed(outcome), "/work/here/tool\ndata");
  });

  test("keeps its workspace from one message to the next", async () => {
    const agentId = ownWord();
    const config = sandboxed();
    await fixture.sh("mkdir d && echo one >d/f", config, { agentId });
    assert.equal(printed(await fixture.sh("cat d/f; echo two >d/f", config, { agentId })), "one\n");
  });

  test("shares a folder with the other commands of its run, in sandboxes or not", async () => {
    const runId = "run_shared";
    await fixture.sh('echo in >"$SVC_RUN_DIR/x"', sandboxed(), { runId, agentId: "a" });
    assert.equal(printed(await fixture.sh('cat "$SVC_RUN_DIR/x"', {}, { runId, agentId: "b" })), "in\n");
    assert.equal(
      printed(await fixture.sh('cat "$SVC_RUN_DIR/x"', sandboxed(), { runId, agentId: "c" })),
      "in\n",
    );
  });

  test("has the variables of its node and its policy, and none of the runtime's others", async () => {
    fixture.runtimeEnv.SHOWN_HERE = "shown, as the policy says";
    fixture.runtimeEnv.HIDDEN_HERE = "hidden";
    const outcome = await sh(
      "env",
      { environment: ["SHOWN_HERE"] },
      { environment: { LD_PRELOAD: "/none", A: "b" } },
    );
    const env = printed(outcome);
    // A secret that the runtime gives out, as by pass_env.
    assert.match(env, /^SHOWN_HERE=\[redacted\]$/m);
    assert.match(env, /^A=b$/m);
    assert.match(env, /^LD_PRELOAD=\/none$/m);
    assert.doesNotMatch(env, /HIDDEN_HERE|SHLVL/);
    // In effect for what is inside, which is prlimit, sh and env (and gVisor's first process), and for nothing before that.
    assert.equal(
      commandOf(outcome).stderr.match(/ld\.so/g)?.length,
      testedEngine === "gvisor" ? 4 : 3,
      commandOf(outcome).stderr,
    );
  });

  test("is not started with a variable that holds a NUL, behind which more options could be", async () => {
    const variable = "b\0--bind\0/\0/sandbox/all";
    const outcome = await sh('touch "$SVC_RUN_DIR/ran"', {}, { environment: { A: variable } });
    assert.match(
      failedWith(outcome, "executor.spawn_failed"),
      /a variable of its environment holds a NUL character/,
    );
  });

  test("shows no variable in the list of processes", {
    skip: testedEngine === "gvisor" && "its processes are not in the machine's list",
  }, async () => {
    const word = ownWord();
    const script = `until [ -e "$SVC_RUN_DIR/seen" ]; do sleep 0.02; done; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; : ${word}`;
    const plain = { ...sandboxed(), environment: { PLAIN: "value-not-listed" } };
    const running = fixture.sh(script, plain, { runId: "run_listed" });
    let seen = "";
    await eventually(async () => {
      const processes = await machineSource.read();
      seen = processes.map(({ pid }) => commandLine(pid)).join("\n");
      return seen.includes(word);
    });
    writeFileSync(join(fixture.home, "runs/run_listed/shared/seen"), "");
    assert.doesNotMatch(seen, /value-not-listed/);
    assert.doesNotMatch(printed(await running), /value-not-listed/);
  });

  test("uses its volumes: the next run finds what was written, and read-only ones stay as they are", async () => {
    const need = { name: "kept", path: "data/kept", isReadOnly: false, bytesMax: null };
    const config = { ...sandboxed(), volumes: [need] };
    const write = "umask 077; echo kept >data/kept/f; mkdir data/kept/d; echo $SVC_RUN_ID >data/kept/d/g";
    assert.equal((await fixture.sh(write, config, { runId: "run_v1" })).kind, "succeeded");
    const again = "cat data/kept/f data/kept/d/g && echo more >>data/kept/d/g";
    assert.equal(printed(await fixture.sh(again, config, { runId: "run_v2" })), "kept\nrun_v1\n");
    const reading = { ...config, volumes: [{ ...need, isReadOnly: true }] };
    const read = "cat data/kept/d/g";
    assert.equal(printed(await fixture.sh(read, reading, { runId: "run_v3" })), "run_v1\nmore\n");
    const change = "echo x >data/kept/f || echo refused";
    assert.equal(
      printed(await fixture.sh(change, reading, { runId: "run_v2", agentId: "reader" })),
      "refused\n",
    );
  });

  test("reads the resources and models of its package", async () => {
    const runId = "run_brought";
    const { resources, models, payload } = preparedFolders(fixture.home, runId);
    const elsewhere = join(fixture.home, "elsewhere");
    for (const folder of [resources, models, payload, elsewhere])
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(elsewhere, "file"), "resource", { mode: 0o600 });
    writeFileSync(join(elsewhere, "model"), "model", { mode: 0o600 });
    symlinkSync(elsewhere, join(resources, "res"));
    symlinkSync(join(elsewhere, "model"), join(models, "tiny"));
    const script =
      'cat "$SVC_RESOURCES_DIR/res/file" "$SVC_MODELS_DIR/tiny"; touch "$SVC_MODELS_DIR/x" || echo';
    const outcome = await fixture.sh(script, sandboxed(), { runId, hasOwnPayload: true });
    assert.equal(printed(outcome), "resourcemodel\n");
  });

  test("reads what its policy names of the machine, also through a symlink", async () => {
    const folder = mkdtempSync("/var/tmp/troupe-shown-");
    try {
      chmodSync(folder, 0o755);
      writeFileSync(join(folder, "file"), "shown");
      symlinkSync(folder, `${folder}.link`);
      assert.equal(printed(await sh(`cat ${folder}/file`, { read_only: [folder] })), "shown");
      assert.equal(printed(await sh(`cat ${folder}.link/file`, { read_only: [`${folder}.link`] })), "shown");
      for (const target of [fixture.home, join(fixture.home, "tmp"), "/proc", "/run"]) {
        rmSync(`${folder}.link`);
        symlinkSync(target, `${folder}.link`);
        const message = failedWith(
          await sh("true", { read_only: [`${folder}.link`] }),
          "sandbox.policy_unmet",
        );
        assert.match(message, /leads to, what no sandbox is shown/);
      }
      rmSync(`${folder}.link`);
      const message = failedWith(await sh("true", { read_only: [`${folder}.link`] }), "sandbox.policy_unmet");
      assert.match(message, /does not exist/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("uses a device that its policy names, and no other", async () => {
    const script = "[ -c /dev/null ] && [ ! -e /dev/full2 ] && [ -c /dev/ptmx ] && [ ! -e /dev/kvm ]";
    assert.equal((await sh(script)).kind, "succeeded");
    const missing = failedWith(await sh("true", { devices: ["/dev/none-such"] }), "sandbox.policy_unmet");
    assert.match(missing, /"\/dev\/none-such" does not exist/);
    const present = existsSync("/dev/kmsg") ? "/dev/kmsg" : "/dev/full";
    const outcome = await sh(`[ -c ${present} ]`, { devices: [present] });
    if (testedEngine !== "gvisor") assert.equal(outcome.kind, "succeeded");
    else assert.match(failedWith(outcome, "sandbox.policy_unmet"), /devices .*gvisor cannot give/);
  });

  test("takes its policy from a file of the payload", async () => {
    fixture.write("policy.json", JSON.stringify({ limits: { processes: 9 } }));
    const run = (policyFile: string) =>
      fixture.run({
        agentId: ownWord(),
        bundleFingerprint: "f",
        config: executorConfig({ command: "ulimit -p || ulimit -u", ...sandboxed(), policyFile }),
      });
    assert.equal(printed(await run("policy.json")), "9\n");
    assert.match(failedWith(await run("none.json"), "sandbox.policy_invalid"), /no file "none\.json"/);
    fixture.write("policy.json", '{"limits": {"processes": "many"}}');
    assert.match(failedWith(await run("policy.json"), "sandbox.policy_invalid"), /limits\.processes must be/);
  });

  test("ends with its exit code", async () => {
    assert.match(failedWith(await sh("echo why >&2; exit 7"), "executor.exit_nonzero"), /exit code 7.*why/);
    const missing = await fixture.run({
      config: executorConfig({ command: ["no-such-program"], ...sandboxed() }),
    });
    assert.match(failedWith(missing, "executor.exit_nonzero"), /exit code 127.*no-such-program/);
  });

  test("is not blamed for a sandbox that could not be made", async () => {
    const folder = mkdtempSync("/var/tmp/troupe-shown-");
    try {
      // Nothing can be put into what is read-only.
      const changes = { sandboxUploadPath: join(folder, "job") };
      const message = failedWith(await sh("exit 1", { read_only: [folder] }, changes), "sandbox.not_made");
      assert.match(message, /could not be made.*(bwrap: .*Read-only|initial working directory)/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("hears SIGTERM when its time is over, and may end by itself", async () => {
    const agentId = ownWord();
    const word = ownWord();
    const script = `trap 'sleep 0.1; echo heard >"$SVC_RUN_DIR/${word}"; exit 3' TERM; echo ready; while :; do sleep 0.05; done`;
    const outcome = await fixture.sh(script, sandboxed(), { agentId, timeoutMs: 1_000, runId: "run_term" });
    failedWith(outcome, "executor.timeout");
    assert.equal(readFileSync(join(fixture.home, "runs/run_term/shared", word), "utf8"), "heard\n");
  });

  test("leaves no process behind, whatever it started", async () => {
    const word = ownWord();
    const script = `(setsid sh -c 'exec >/dev/null 2>&1 </dev/null; sleep 600; : ${word}' &) ; echo started`;
    assert.equal(printed(await sh(script)), "started\n");
    await eventually(async () => (await processesWith(word)) === 0);
  });

  test("is ended for good when it has stopped itself", async () => {
    const word = ownWord();
    const script = `kill -STOP $$; : ${word}`;
    const outcome = await fixture.sh(script, sandboxed(), { agentId: ownWord(), timeoutMs: 300 });
    failedWith(outcome, "executor.timeout");
    await eventually(async () => (await processesWith(word)) === 0);
  });

  test("has processes of its own, also beside a fork bomb of the same user", async () => {
    const runId = "run_bombed";
    const processes = 40;
    // Each of them goes on trying, and all are gone with the sandbox.
    const bomb = `
import os, time
shared = os.environ["SVC_RUN_DIR"]
while not os.path.exists(shared + "/done"):
    try: os.fork()
    except BlockingIOError:
        open(shared + "/full", "w").close()
        time.sleep(0.02)`;
    const python = (script: string, agentId: string) => {
      const config = executorConfig({
        command: ["python3", "-S", "-c", script],
        ...sandboxed({ limits: { processes } }),
      });
      return fixture.run({ runId, agentId, config });
    };
    const bombing = python(bomb, "bomb");
    await eventually(() => existsSync(join(fixture.home, "runs", runId, "shared/full")));
    const beside = `
import os, signal
pids = []
for _ in range(${processes - 10}):
    pid = os.fork()
    if pid == 0: signal.pause()
    pids.append(pid)
for pid in pids: os.kill(pid, signal.SIGKILL)
open(os.environ["SVC_RUN_DIR"] + "/done", "w").close()
print(len(pids))`;
    assert.equal(printed(await python(beside, "beside")), `${processes - 10}\n`);
    assert.equal((await bombing).kind, "succeeded");
  });

  test("gets messages on stdin when it is long-lived, also by the name of that", async () => {
    const config = { ...sandboxed(), longLived: true };
    const script = 'read -r line </dev/stdin; [ -n "$line" ] && echo \'{"complete_step": 1}\'';
    const task = taskStart({
      agentId: ownWord(),
      config: executorConfig({ command: ["sh", "-c", script], ...config }),
    });
    fixture.runner.start(task);
    fixture.runner.send(task.ref, task.envelope);
    assert.equal((await fixture.listener.outcome(task.ref)).kind, "succeeded");
  });

  test("is not a way round what is refused: a runner that is a sandbox never runs without one", async () => {
    const outcome = await fixture.run({
      config: executorConfig({ runnerModule: "x.Sandbox", sandbox: null }),
    });
    failedWith(outcome, "executor.outcome_lost");
  });
});

test("a sandbox that lacks a file of its own fails as one that could not be made", {
  skip: noSandboxes,
}, async () => {
  await using fixture = new RunnerFixture();
  assert.equal((await fixture.sh("true", sandboxed())).kind, "succeeded");
  rmSync(join(fixture.home, "tmp/sandbox/passwd"));
  assert.match(failedWith(await fixture.sh("true", sandboxed()), "sandbox.not_made"), /ENOENT/);
});

test("sockets of networks that a killed runtime has left are gone with the next start", async () => {
  const home = mkdtempSync(join(tmpdir(), "troupe-sandboxes-"));
  const left = join(home, "tmp/sandbox/networks/left");
  mkdirSync(dirname(left), { recursive: true });
  writeFileSync(left, "");
  await new Sandboxes(home, null, testedEngine).refusal();
  assert.equal(existsSync(left), noSandboxes !== false);
  rmSync(home, { recursive: true });
});

describe("where there are no sandboxes", () => {
  test("the command fails, and is not run", async () => {
    const home = mkdtempSync(join(tmpdir(), "troupe-none-"));
    const sandboxes = new Sandboxes(home, null, "bubblewrap", []);
    await using fixture = new RunnerFixture(undefined, undefined, { sandboxes });
    const marker = join(fixture.home, "ran");
    const outcome = await fixture.sh(`touch ${marker}`, sandboxed());
    assert.match(failedWith(outcome, "sandbox.unavailable"), /apt install bubblewrap/);
    assert.equal(existsSync(marker), false);
    rmSync(home, { recursive: true });
  });

  test("a node does not say that it has any", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-none-"));
    try {
      assert.deepEqual(await new Sandboxes(folder, null, "bubblewrap", []).labels(), {});
      if (noSandboxes === false)
        assert.deepEqual(await new Sandboxes(folder, null, testedEngine).labels(), sandboxLabels);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("where commands run in sandboxes only, others fail", async () => {
  await using fixture = new RunnerFixture();
  fixture.requireSandbox = true;
  const marker = join(fixture.home, "ran");
  failedWith(await fixture.sh(`touch ${marker}`), "sandbox.required");
  assert.equal(existsSync(marker), false);
});
