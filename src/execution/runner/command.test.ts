// Commands as real processes: how they end, what they find, what they leave.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { commandOf, executorConfig, failedWith, RunnerFixture } from "../../../test/support/execution.ts";

/** Everything below a folder, by relative path. */
function tree(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
}

describe("how a command ends", () => {
  it("succeeds with exit code 0 and carries what it printed", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh("echo out; echo err >&2");
    assert.equal(outcome.kind, "succeeded");
    const { exitCode, signal, stdout, stderr } = commandOf(outcome);
    assert.deepEqual(
      { exitCode, signal, stdout, stderr },
      { exitCode: 0, signal: null, stdout: "out\n", stderr: "err\n" },
    );
  });

  it("fails with another exit code, and quotes the last line of stderr", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh("echo first >&2; echo 'no such table' >&2; exit 3");
    assert.match(
      failedWith(outcome, "executor.exit_nonzero"),
      /"sh" ended with exit code 3\. It said: no such table$/,
    );
    assert.equal(commandOf(outcome).exitCode, 3);
  });

  it("is prepared in a turn of the event loop of its own, however many start together", async () => {
    await using fixture = new RunnerFixture();
    let turn = 0;
    let isOver = false;
    const countTurns = () => {
      turn++;
      if (!isOver) setImmediate(countTurns);
    };
    countTurns();
    const turns: number[] = [];
    fixture.onStaging = () => turns.push(turn);
    fixture.write("data", "x");
    const uploads = { uploadPaths: [{ path: "data", as: "data" }] };
    const COMMANDS = 16;
    await Promise.all(
      Array.from({ length: COMMANDS }, (_, i) =>
        fixture.sh("true", uploads, { agentId: `worker-${i}`, bundleFingerprint: "a bundle" }),
      ),
    );
    isOver = true;
    assert.equal(new Set(turns).size, COMMANDS);
  });

  it("fails by the signal that ended it", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh("kill -SEGV $$");
    assert.match(failedWith(outcome, "executor.killed_by_signal"), /SIGSEGV/);
    assert.equal(commandOf(outcome).signal, "SIGSEGV");
  });

  it("fails with the reason when it cannot be started", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("tool.sh", "#!/bin/sh\n", 0o644);
    fixture.write("broken.sh", "#!/no/such/interpreter\n", 0o755);
    const uploadPaths = [
      { path: "tool.sh", as: "tool.sh" },
      { path: "broken.sh", as: "broken.sh" },
    ];
    const cases: [string[], RegExp][] = [
      [["no-such-program"], /"no-such-program" could not be started.*not on PATH.*\(ENOENT\)/],
      [["./tool.sh"], /chmod \+x.*\(EACCES\)/],
      [["./broken.sh"], /interpreter that is missing.*\(ENOENT\)/],
      // Longer than Linux takes a word, however large its pages are.
      [["true", "x".repeat(2_200_000)], /too large.*\(E2BIG\)/],
      [["a\0b"], /null bytes/],
      [[""], /could not be started/],
    ];
    for (const [command, expected] of cases) {
      const outcome = await fixture.run({
        bundleFingerprint: "f",
        config: executorConfig({ command, uploadPaths }),
      });
      const message = failedWith(outcome, "executor.spawn_failed");
      assert.match(message, expected);
      assert.ok(!message.includes(fixture.home), "no path of this machine is told");
    }
    assert.equal((await fixture.sh("exit 0")).kind, "succeeded");
  });

  it("fails when the runner is none of ours, whatever its module path", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh("true", { runnerModule: "Some.Runner.Podman" });
    assert.match(failedWith(outcome, "executor.runner_unavailable"), /Some\.Runner\.Podman/);
    assert.equal((await fixture.sh("true", { runnerModule: "Some.Runner.HostLocal" })).kind, "succeeded");
  });

  it("leaves no attempt folder, and reports 20 commands at once, each exactly once", async () => {
    await using fixture = new RunnerFixture();
    const scripts = Array.from({ length: 20 }, (_, i) =>
      fixture.sh(`echo ${i}; echo x > "$SVC_WORKDIR/kept"`, {}, { agentId: `agent ${i}` }),
    );
    const outcomes = await Promise.all(scripts);
    assert.deepEqual(
      outcomes.map((outcome) => commandOf(outcome).stdout),
      Array.from({ length: 20 }, (_, i) => `${i}\n`),
    );
    assert.ok([...fixture.listener.outcomes.values()].every((list) => list.length === 1));
    const left = tree(join(fixture.home, "runs"));
    assert.equal(left.filter((path) => path.endsWith("work/kept")).length, 20);
    assert.deepEqual(
      left.filter((path) => /attempts\/./.test(path)),
      [],
    );
    assert.deepEqual(fixture.warnings, []);
  });
});

describe("what a command finds", () => {
  it("has exactly the promised environment", async () => {
    await using fixture = new RunnerFixture();
    Object.assign(fixture.runtimeEnv, {
      LANG: "C.UTF-8",
      TZ: "UTC",
      TMPDIR: "/tmp",
      HOME: "/home/x",
      UNRELATED: "hidden",
      WANTED: "passed",
    });
    const outcome = await fixture.sh("env", {
      environment: { GIVEN: "by config", SVC_ATTEMPT: "no" },
      passEnv: ["WANTED", "ABSENT"],
    });
    const names = commandOf(outcome).stdout.trimEnd().split("\n");
    const found = Object.fromEntries(
      names.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    // A shell adds its own.
    for (const own of ["PWD", "OLDPWD", "SHLVL", "_"]) delete found[own];
    assert.deepEqual(Object.keys(found).sort(), [
      "GIVEN",
      "HOME",
      "LANG",
      "PATH",
      "SVC_AGENT_ID",
      "SVC_ATTEMPT",
      "SVC_BLUEPRINT_CONFIG_JSON",
      "SVC_BODY_FILE",
      "SVC_CONTEXT_FILE",
      "SVC_EVENT_STREAM",
      "SVC_HUMAN_RESPONSES",
      "SVC_IDEMPOTENCY_KEY",
      "SVC_INPUT_FILE",
      "SVC_JOB_ID",
      "SVC_MESSAGE_FILE",
      "SVC_OUTPUT_DIR",
      "SVC_RUN_DIR",
      "SVC_RUN_ID",
      "SVC_TRACEPARENT",
      "SVC_WORKDIR",
      "TMPDIR",
      "TRACEPARENT",
      "TZ",
      "WANTED",
    ]);
    assert.equal(found.GIVEN, "by config");
    assert.equal(found.WANTED, "passed");
    assert.equal(found.SVC_ATTEMPT, "1");
    assert.equal(found.SVC_AGENT_ID, "worker");
    assert.equal(found.SVC_JOB_ID, "graph-1");
    assert.equal(found.SVC_RUN_ID, "run_1");
    assert.equal(found.SVC_BLUEPRINT_CONFIG_JSON, "{}");
    assert.equal(found.SVC_WORKDIR, join(fixture.home, "runs/run_1/agents/worker/work"));
  });

  it("is given no secret of the runtime itself, also by a graph that was stored with its name", async () => {
    await using fixture = new RunnerFixture();
    const names = ["SVC_API_TOKEN", "SVC_SECRET_KEY", "SVC_DATABASE_URL", "SVC_RUNTIME_API_TOKEN"].flatMap(
      (name) => [name, `${name}_FILE`],
    );
    for (const name of names) fixture.runtimeEnv[name] = "withheld-value";
    fixture.runtimeEnv.GIVEN = "given";
    const outcome = await fixture.sh("env", { passEnv: [...names, "GIVEN"] });
    const { stdout } = commandOf(outcome);
    assert.match(stdout, /^GIVEN=/m);
    assert.doesNotMatch(stdout, new RegExp(`^(?:${names.join("|")})=`, "m"));
  });

  it("finds its message as input, envelope, body and context", async () => {
    await using fixture = new RunnerFixture();
    const script =
      'cat "$SVC_INPUT_FILE"; echo; cat "$SVC_BODY_FILE"; echo; cat "$SVC_MESSAGE_FILE"; echo; cat "$SVC_CONTEXT_FILE"';
    const outcome = await fixture.sh(
      script,
      {},
      { body: "two\nlines", agentState: { n: 1 }, configurationJson: '{"a":1}' },
    );
    const [input, body1, body2, message = "", context = ""] = commandOf(outcome).stdout.split("\n");
    assert.equal(input, '"two\\nlines"');
    assert.deepEqual([body1, body2], ["two", "lines"]);
    assert.equal(JSON.parse(message).body, "two\nlines");
    const parsed = JSON.parse(context);
    assert.deepEqual(parsed.agent_state, { n: 1 });
    assert.equal(parsed.attempt, 1);
    assert.deepEqual(parsed.job, { job_id: "graph-1", run_id: "run_1", graph_id: "graph", job_name: null });
    assert.equal(parsed.workflow.type, "batch");

    const object = await fixture.sh(
      'cmp "$SVC_INPUT_FILE" "$SVC_BODY_FILE" && cat "$SVC_BODY_FILE"',
      {},
      { body: { a: [1] } },
    );
    assert.equal(commandOf(object).stdout, '{"a":[1]}');
    const large = await fixture.sh('wc -c < "$SVC_BODY_FILE"', {}, { body: "x".repeat(300_000) });
    assert.equal(commandOf(large).stdout.trim(), "300000");
  });

  it("has placeholders and the sandbox's path replaced in its words", async () => {
    await using fixture = new RunnerFixture();
    const work = join(fixture.home, "runs/run_1/agents/worker/work");
    const words = [
      "{agent_id}",
      "x{attempt}y",
      "{input_file}",
      "{unknown}",
      `\${attempt}`,
      "/sandbox/job/a",
      "/sandbox/jobs",
      "/up/b",
    ];
    const listed = await fixture.run({
      config: executorConfig({ command: ["printf", "%s\\n", ...words], sandboxUploadPath: "/up/" }),
    });
    const [agent, attempt, input, ...rest] = commandOf(listed).stdout.trimEnd().split("\n");
    assert.deepEqual([agent, attempt], ["worker", "x1y"]);
    assert.match(input ?? "", /attempts\/\d+-1\/input\.json$/);
    assert.deepEqual(rest, ["{unknown}", `\${attempt}`, join(work, "a"), "/sandbox/jobs", join(work, "b")]);
  });

  it("runs a string through the shell, values quoted where they must be", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.run({
      agentId: "it's; exit 9",
      config: executorConfig({ command: "printf '%s\\n' {agent_id} /sandbox/job \"$SVC_AGENT_ID\" | cat" }),
    });
    const [agent, workspace, fromEnv] = commandOf(outcome).stdout.split("\n");
    assert.equal(agent, "it's; exit 9");
    assert.equal(fromEnv, "it's; exit 9");
    assert.match(workspace ?? "", /work$/);
  });

  it("can open its own stdout and event stream by path", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh("echo via-path > /dev/stdout; echo err > /dev/stderr");
    assert.equal(commandOf(outcome).stdout, "via-path\n");
    assert.equal(commandOf(outcome).stderr, "err\n");
  });

  it("shares SVC_RUN_DIR with the run's other workers", async () => {
    await using fixture = new RunnerFixture();
    await fixture.sh('echo shared > "$SVC_RUN_DIR/x"', {}, { agentId: "a" });
    assert.equal(
      commandOf(await fixture.sh('cat "$SVC_RUN_DIR/x"', {}, { agentId: "b" })).stdout,
      "shared\n",
    );
    assert.equal(
      (await fixture.sh('test ! -e "$SVC_RUN_DIR/x"', {}, { agentId: "b", runId: "run_2" })).kind,
      "succeeded",
    );
  });
});

describe("what a command leaves", () => {
  it("becomes artifacts with size, hash, type and kind; links and special files are refused with a warning", async () => {
    await using fixture = new RunnerFixture();
    fixture.outputs = [{ path: "declared.md", title: "Declared", primary: true }];
    const outcome = await fixture.sh(
      `cd "$SVC_OUTPUT_DIR"; mkdir sub; printf abc > sub/data.json; printf md > declared.md; printf n > named.html
       printf f > final_artifact.txt; ln -s /etc/passwd link; mkfifo pipe
       echo '{"outputs": [{"path": "./named.html", "title": "Named"}, {"path": "gone.md"}]}'`,
    );
    assert.equal(outcome.kind, "succeeded");
    if (outcome.kind !== "succeeded") return;
    const shown = outcome.artifacts.map(({ name, kind, title, primary, size, contentType }) => [
      name,
      kind,
      title,
      primary,
      size,
      contentType,
    ]);
    assert.deepEqual(shown.sort(), [
      ["declared.md", "output", "Declared", true, 2, "text/markdown; charset=utf-8"],
      ["final_artifact.txt", "output", null, false, 1, "text/plain; charset=utf-8"],
      ["named.html", "output", "Named", false, 1, "text/html; charset=utf-8"],
      ["sub/data.json", "artifact", null, false, 3, "application/json"],
    ]);
    const data = outcome.artifacts.find(({ name }) => name === "sub/data.json");
    assert.equal(data?.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert.equal(new Set(outcome.artifacts.map(({ artifactId }) => artifactId)).size, 4);
    const blob = await fixture.blobs.open(data?.sha256 ?? "");
    assert.equal(readFileSync(blob?.path ?? "", "utf8"), "abc");
    const warnings = fixture.listener.logs("worker").join("\n");
    for (const part of [
      '"link" in SVC_OUTPUT_DIR is a symlink',
      '"pipe" in SVC_OUTPUT_DIR is a special file',
      '"gone.md"',
    ]) {
      assert.ok(warnings.includes(part), warnings);
    }
  });

  it("is kept also when the command fails", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh('echo why > "$SVC_OUTPUT_DIR/why.log"; exit 1');
    failedWith(outcome, "executor.exit_nonzero");
    assert.deepEqual(outcome.kind === "failed" && outcome.artifacts.map(({ name }) => name), ["why.log"]);
  });

  it("acts through its result object", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh(
      `echo note; echo '{"emit_messages": [{"type": "found", "body": {"n": 1}}], "next_state": 2, "complete_step": "s"}'`,
    );
    assert.equal(outcome.kind, "succeeded");
    assert.deepEqual(outcome.kind === "succeeded" && outcome.actions, {
      events: [],
      emits: [{ type: "found", body: { n: 1 }, to: null }],
      nextState: 2,
      completeStep: "s",
      completeRun: undefined,
    });
  });

  it("fails on a result of the wrong shape, and only when the command succeeded", async () => {
    await using fixture = new RunnerFixture();
    const bad = `echo '{"emit_messages": 1, "events": 2}'`;
    const message = failedWith(await fixture.sh(bad), "executor.invalid_output");
    assert.match(message, /events must be a list; emit_messages must be a list/);
    failedWith(await fixture.sh(`${bad}; exit 4`), "executor.exit_nonzero");
  });

  it("reports an artifact that cannot be kept as an infrastructure failure", async () => {
    await using fixture = new RunnerFixture();
    fixture.blobs.put = () => Promise.reject(new Error("ENOSPC: no space left"));
    const outcome = await fixture.sh('echo x > "$SVC_OUTPUT_DIR/x"');
    assert.match(failedWith(outcome, "executor.artifact_failed"), /ENOSPC/);
  });

  it("reports a payload that another machine has, and that cannot be fetched, as an infrastructure failure", async () => {
    await using fixture = new RunnerFixture();
    fixture.fetching = () => Promise.reject(new Error("The store of files did not answer."));
    fixture.write("data", "x");
    const uploads = { uploadPaths: [{ path: "data", as: "data" }] };
    const outcome = await fixture.sh("true", uploads, { bundleFingerprint: "a bundle" });
    assert.match(failedWith(outcome, "executor.workspace_failed"), /did not answer/);
  });
});
