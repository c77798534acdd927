// What real workers print: in bounds, in order, redacted, and as it happens.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually, executorConfig, RunnerFixture, taskStart } from "../../../test/support/execution.ts";
import { isObject } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";

describe("a worker's output", () => {
  it("becomes log events while the command still runs", async () => {
    await using fixture = new RunnerFixture();
    const { listener, runner } = fixture;
    const task = taskStart({
      config: executorConfig({
        command: ["sh", "-c", 'echo one; echo two >&2; until [ -e "$SVC_RUN_DIR/go" ]; do sleep 0.01; done'],
      }),
    });
    runner.start(task);
    await listener.until(() => listener.payloads("log").length === 2);
    assert.equal(listener.outcomes.size, 0);
    const logs = listener.payloads("log").sort((a, b) => String(a.stream).localeCompare(String(b.stream)));
    assert.deepEqual(logs, [
      { level: "info", stream: "stderr", message: "two", attempt: 1 },
      { level: "info", stream: "stdout", message: "one", attempt: 1 },
    ]);
    await fixture.sh('touch "$SVC_RUN_DIR/go"', {}, { agentId: "other" });
    assert.equal((await listener.outcome(task.ref)).kind, "succeeded");
  });

  it("keeps the last line without an end, and replaces invalid UTF-8", async () => {
    await using fixture = new RunnerFixture();
    await fixture.sh("printf 'a\\377b\\nlast'");
    assert.deepEqual(fixture.listener.logs("stdout"), ["a\ufffdb", "last"]);
  });

  it("has long lines cut, so that the event they become is never replaced whole", async () => {
    await using fixture = new RunnerFixture();
    await fixture.run({
      config: executorConfig({
        command: ["python3", "-c", "print('x' * 200000); print('\\x01' * 60000); print('end')"],
      }),
    });
    const [long, control, end] = fixture.listener.payloads("log");
    for (const log of [long, control]) {
      assert.equal(log?.truncated, true);
      const chars = JSON.stringify(log).length;
      assert.ok(
        chars <= limits.eventPayloadCharsMax && chars > limits.eventPayloadCharsMax / 2,
        String(chars),
      );
    }
    assert.equal(end?.message, "end");
    assert.equal(end?.truncated, undefined);
  });

  it("of 50 MB keeps memory flat, and is carried by its end", async () => {
    await using fixture = new RunnerFixture();
    let lines = 0;
    let peakBytes = 0;
    fixture.listener.onEvents = (events) => {
      lines += events.length;
      peakBytes = Math.max(peakBytes, process.memoryUsage().external + process.memoryUsage().arrayBuffers);
    };
    const outcome = await fixture.run({
      config: executorConfig({
        command: ["python3", "-c", "import sys\nfor i in range(500000): sys.stdout.write('%099d\\n' % i)"],
      }),
    });
    assert.equal(lines, 500_000);
    assert.ok(peakBytes < 64 * 1024 * 1024, `${peakBytes} bytes`);
    const stdout = outcome.kind === "succeeded" ? (outcome.command?.stdout ?? "") : "";
    assert.ok(stdout.startsWith("…"));
    assert.equal(Buffer.byteLength(stdout), limits.stdoutCarriedBytesMax + 3);
    assert.ok(stdout.endsWith(`${"499999".padStart(99, "0")}\n`));
  });

  it("is not read while the listener has no room, and is complete afterwards", async () => {
    await using fixture = new RunnerFixture();
    const { listener, runner } = fixture;
    let makeRoom = () => {};
    const room = new Promise<void>((resolve) => {
      makeRoom = resolve;
    });
    let asked = 0;
    listener.backpressure = () => (++asked > 0 ? room : null);
    const task = taskStart({ config: executorConfig({ command: ["sh", "-c", "seq 1 200000"] }) });
    runner.start(task);
    await listener.until(() => listener.events.length > 0);
    // A pipe holds 64 KiB and one chunk has been read: seq waits, and not a byte more comes.
    const heldAt = listener.events.length;
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(listener.events.length, heldAt);
    assert.ok(heldAt < 20_000, String(heldAt));
    assert.equal(listener.outcomes.size, 0);
    listener.backpressure = () => null;
    makeRoom();
    await listener.outcome(task.ref);
    assert.equal(listener.events.length, 200_000);
    assert.equal(asked, 1);
  });

  it("has a result line beyond the limit refused, and other long lines not", async () => {
    await using fixture = new RunnerFixture();
    const print = (text: string) => executorConfig({ command: ["python3", "-c", `print(${text})`] });
    const huge = await fixture.run({ config: print(`'{"next_state": "' + 'x' * 1200000 + '"}'`) });
    assert.equal(huge.kind === "failed" && huge.code, "executor.invalid_output");
    assert.match(huge.kind === "failed" ? huge.message : "", /longer than 1048576 bytes/);
    const plain = await fixture.run({ config: print(`'{"other": "' + 'x' * 1200000 + '"}'`) });
    assert.equal(plain.kind, "succeeded");
    const fits = await fixture.run({ config: print(`'{"next_state": "' + 'x' * 1000000 + '"}'`) });
    assert.equal(fits.kind === "succeeded" && String(fits.actions.nextState).length, 1_000_000);
  });

  it("stops being logged past the budget of an attempt, is read on, and its result still counts", async () => {
    await using fixture = new RunnerFixture();
    let bytes = 0;
    let lines = 0;
    fixture.listener.onEvents = (events) => {
      lines += events.length;
      for (const { payload } of events) bytes += isObject(payload) ? String(payload.message).length : 0;
    };
    const script =
      "import sys\nline = 'x' * 60000 + '\\n'\nfor i in range(5000): sys.stdout.write(line)\nprint('{\"next_state\": 7}')";
    const outcome = await fixture.run({ config: executorConfig({ command: ["python3", "-c", script] }) });
    assert.ok(bytes <= limits.runLogBytesMax + 60_000, String(bytes));
    assert.ok(lines > 4_000 && lines < 4_600, String(lines));
    assert.equal(outcome.kind === "succeeded" && outcome.actions.nextState, 7);

    bytes = 0;
    await fixture.run({ config: executorConfig({ command: ["python3", "-c", script], longLived: true }) });
    assert.ok(bytes <= limits.runLogBytesMax + 60_000, String(bytes));
    assert.equal(fixture.listener.actions.at(-1)?.nextState, 7);
  });

  it("shows no secret: neither in logs, events and carried output, nor in failures", async () => {
    await using fixture = new RunnerFixture();
    Object.assign(fixture.runtimeEnv, { PASSED_SECRET: "passed-value-1" });
    const config = {
      passEnv: ["PASSED_SECRET"],
      environment: {
        DB_PASSWORD: "hunter2hunter2",
        PLAIN: "visible-value",
        LONG_TOKEN: "long-token".repeat(100),
      },
    };
    const outcome = await fixture.sh(
      `echo "$PASSED_SECRET $DB_PASSWORD $PLAIN"
       printf '{"type": "note", "text": "%s", "deep": [{"%s": 1}]}\\n' "$DB_PASSWORD" "$PASSED_SECRET" > "$SVC_EVENT_STREAM"
       printf 'x%.0s' $(seq 1 64900); echo "$LONG_TOKEN"
       echo "$SVC_BLUEPRINT_CONFIG_JSON"
       echo "refused: $PASSED_SECRET" >&2
       exit 1`,
      config,
      { configurationJson: '{"llm": {"api_key": "configured-key"}}' },
    );
    const shown = JSON.stringify([fixture.listener.events, outcome]);
    for (const secret of ["passed-value", "hunter", "configured-key", "long-token"]) {
      assert.ok(!shown.includes(secret), secret);
    }
    assert.equal(fixture.listener.logs("stdout")[0], "[redacted] [redacted] visible-value");
    assert.deepEqual(fixture.listener.payloads("note"), [
      { text: "[redacted]", deep: [{ "[redacted]": 1 }] },
    ]);
    assert.match(outcome.kind === "failed" ? outcome.message : "", /It said: refused: \[redacted\]$/);
  });

  it("shows nothing of a secret that is too long for a regular expression", async () => {
    await using fixture = new RunnerFixture();
    fixture.runtimeEnv.LONG_ONE = "long-value ".repeat(5_000);
    const script = 'echo "before"; echo "$LONG_ONE"; echo "after"';
    const outcome = await fixture.sh(script, { passEnv: ["LONG_ONE"] });
    assert.equal(outcome.kind, "succeeded");
    assert.deepEqual(fixture.listener.logs("stdout"), ["before", "[redacted]", "after"]);
  });

  it("has all that a result object asks for redacted, but not the names of edges", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh(
      `printf '{"events": [{"type": "note", "payload": "%s"}], "emit_messages": [{"type": "key-value-1", "body": {"%s": 1}}],
        "next_state": "%s", "complete_step": ["%s"], "complete_run": {"a": "x%s"}}' "$K" "$K" "$K" "$K" "$K" | tr -d '\n'`,
      { environment: { API_KEY: "key-value-1", K: "key-value-1" } },
    );
    assert.ok(outcome.kind === "succeeded");
    assert.deepEqual(outcome.actions, {
      events: [{ type: "note", payload: "[redacted]" }],
      emits: [{ type: "key-value-1", body: { "[redacted]": 1 }, to: null }],
      nextState: "[redacted]",
      completeStep: ["[redacted]"],
      completeRun: { a: "x[redacted]" },
    });
  });

  it("has secrets redacted in the names of files, and shows no part of one in the names of commands", async () => {
    await using fixture = new RunnerFixture();
    const environment = { API_KEY: "key-value-1" };
    const outcome = await fixture.sh(
      `echo a > "$SVC_OUTPUT_DIR/$API_KEY.txt"; echo '{"outputs": [{"path": "'$API_KEY'.txt", "title": "of '$API_KEY'"}]}'`,
      { environment },
    );
    assert.deepEqual(
      outcome.kind === "succeeded" && outcome.artifacts.map(({ name, title, kind }) => [name, title, kind]),
      [["[redacted].txt", "of [redacted]", "output"]],
    );
    for (const command of [`: ${"x".repeat(70)} key-value-1; exit 3`, [`/${"x".repeat(73)}/key-value-1`]]) {
      const failure = await fixture.run({ config: executorConfig({ command, environment }) });
      assert.equal(failure.kind, "failed");
      assert.doesNotMatch(JSON.stringify(failure), /key-/);
    }
  });
});

describe("a worker's event stream", () => {
  it("takes lines from python, from node and from a shell's grandchild, before the command ends", async () => {
    await using fixture = new RunnerFixture();
    const { listener, runner } = fixture;
    fixture.write(
      "w.py",
      "import json, os\nwith open(os.environ['SVC_EVENT_STREAM'], 'a') as s:\n  s.write(json.dumps({'type': 'progress', 'payload': {'from': 'python'}}) + '\\n')\n",
    );
    fixture.write(
      "w.mjs",
      "import { appendFileSync } from 'node:fs'; appendFileSync(process.env.SVC_EVENT_STREAM, JSON.stringify({ type: 'progress', from: 'node' }) + '\\n');",
    );
    const script = `python3 w.py; '${process.execPath}' w.mjs
      (sh -c 'echo "{\\"type\\": \\"progress\\", \\"from\\": \\"grandchild\\"}" > "$SVC_EVENT_STREAM"')
      until [ -e go ]; do sleep 0.01; done; printf '{"type": "beacon"}' > "$SVC_EVENT_STREAM"`;
    const uploadPaths = [
      { path: "w.py", as: "w.py" },
      { path: "w.mjs", as: "w.mjs" },
    ];
    const task = taskStart({
      bundleFingerprint: "f",
      config: executorConfig({ command: ["sh", "-c", script], uploadPaths }),
    });
    runner.start(task);
    await listener.until(() => listener.payloads("progress").length === 3);
    assert.deepEqual(
      listener.payloads("progress").map(({ from }) => from),
      ["python", "node", "grandchild"],
    );
    assert.equal(listener.outcomes.size, 0);
    await fixture.sh('touch "$SVC_WORKDIR/../../worker/work/go"', {}, { agentId: "other" });
    await listener.outcome(task.ref);
    assert.equal(listener.payloads("beacon").length, 1);
  });

  it("answers bad lines with warnings and goes on", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh(
      `for i in $(seq 1 40); do echo bad; done > "$SVC_EVENT_STREAM"
       echo '{"type": "agent_failed"}' > "$SVC_EVENT_STREAM"
       head -c 70000 /dev/zero | tr '\\0' x > "$SVC_EVENT_STREAM"; echo > "$SVC_EVENT_STREAM"
       echo '{"type": "beacon", "n": 1}' > "$SVC_EVENT_STREAM"`,
    );
    assert.equal(outcome.kind, "succeeded");
    assert.equal(fixture.listener.logs("worker").length, 20);
    assert.deepEqual(fixture.listener.payloads("beacon"), [{ n: 1 }]);
    assert.equal(fixture.listener.payloads("agent_failed").length, 0);
  });

  it("leaves nothing on disk, and none of its pipes open", async () => {
    await using fixture = new RunnerFixture();
    const { readdirSync } = await import("node:fs");
    await fixture.sh("true");
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    for (let i = 0; i < 10; i++)
      await fixture.sh('echo x; echo \'{"type": "beacon"}\' > "$SVC_EVENT_STREAM"');
    for (let i = 0; i < 5; i++)
      await fixture.run({ config: executorConfig({ command: ["no-such-program"] }) });
    await eventually(() => open() <= before);
  });
});
