// Long-lived executors: messages in through stdin, results out line by line.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  envelope,
  executorConfig,
  failedWith,
  RunnerFixture,
  taskStart,
} from "../../../test/support/execution.ts";

const ECHO = `import json, sys
print("up", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["body"] == "end": break
    print(json.dumps({"emit_messages": [{"type": "echo", "body": message["body"]}]}), flush=True)
print("over")
`;

function longLived(command: readonly string[]) {
  return taskStart({ config: executorConfig({ command, longLived: true }) });
}

describe("a long-lived worker", () => {
  it("gets messages in order, those sent before it runs included, and acts line by line", async () => {
    await using fixture = new RunnerFixture();
    const { runner, listener } = fixture;
    const task = longLived(["python3", "-c", ECHO]);
    runner.start(task);
    runner.send(task.ref, envelope(task.ref, "worker", 1));
    runner.send(task.ref, envelope(task.ref, "worker", { n: "two\nlines" }));
    await listener.until(() => listener.actions.length === 2);
    assert.equal(listener.outcomes.size, 0);
    runner.send(task.ref, envelope(task.ref, "worker", 3));
    await listener.until(() => listener.actions.length === 3);
    assert.deepEqual(
      listener.actions.map(({ emits }) => emits),
      [1, { n: "two\nlines" }, 3].map((body) => [{ type: "echo", body, to: null }]),
    );
    runner.send(task.ref, envelope(task.ref, "worker", "end"));
    const outcome = await listener.outcome(task.ref);
    assert.equal(outcome.kind, "succeeded");
    assert.deepEqual(outcome.kind === "succeeded" && outcome.actions.emits, []);
    assert.deepEqual(listener.logs("stdout"), ["up", "over"]);
    runner.send(task.ref, envelope(task.ref, "worker", "too late"));
  });

  it("has its logs and its results reported in the order in which it printed them", async () => {
    await using fixture = new RunnerFixture();
    const task = longLived(["printf", 'a\nb\n{"next_state": 1}\nc\n{"next_state": 2}\n']);
    fixture.runner.start(task);
    await fixture.listener.outcome(task.ref);
    assert.deepEqual(fixture.listener.order, ["log", "log", "actions", "log", "actions"]);
  });

  it("can open its stdin by path", async () => {
    await using fixture = new RunnerFixture();
    const task = longLived(["sh", "-c", "head -n 1 < /dev/stdin > /dev/null; echo got"]);
    fixture.runner.start(task);
    fixture.runner.send(task.ref, envelope(task.ref, "worker", 1));
    assert.equal((await fixture.listener.outcome(task.ref)).kind, "succeeded");
    assert.deepEqual(fixture.listener.logs("stdout"), ["got"]);
  });

  it("goes on after a result of the wrong shape, which becomes a warning, and fails by it when it ends", async () => {
    await using fixture = new RunnerFixture();
    const task = longLived([
      "sh",
      "-c",
      `echo '{"emit_messages": 1}'; echo '{"events": [{"type": "note"}]}'; echo '{"other": 1}'`,
    ]);
    fixture.runner.start(task);
    const { listener } = fixture;
    const wrong = "The result object on stdout is wrong: emit_messages must be a list.";
    assert.equal(failedWith(await listener.outcome(task.ref), "executor.invalid_output"), wrong);
    assert.deepEqual(
      listener.payloads("log").map(({ level, stream, message }) => [level, stream, message]),
      [
        ["warn", "worker", wrong],
        ["info", "stdout", '{"other": 1}'],
      ],
    );
    assert.deepEqual(
      listener.actions.map(({ events }) => events),
      [[{ type: "note", payload: {} }]],
    );
  });

  it("acts through lines far longer than a log line, up to the limit", async () => {
    await using fixture = new RunnerFixture();
    const script = `print('{"next_state": "' + 'x' * 500000 + '"}'); print('{"next_state": "' + 'x' * 2000000 + '"}'); print("after")`;
    const task = longLived(["python3", "-c", script]);
    fixture.runner.start(task);
    await fixture.listener.outcome(task.ref);
    assert.equal(fixture.listener.actions.length, 1);
    assert.match(String(fixture.listener.logs("worker")[0]), /longer than 1048576 bytes/);
    assert.deepEqual(fixture.listener.logs("stdout"), ["after"]);
  });

  it("keeps the files it leaves, named as outputs by any of its lines", async () => {
    await using fixture = new RunnerFixture();
    const task = longLived([
      "sh",
      "-c",
      `echo '{"outputs": [{"path": "a.txt", "title": "A"}]}'; echo a > "$SVC_OUTPUT_DIR/a.txt"; echo b > "$SVC_OUTPUT_DIR/b.txt"`,
    ]);
    fixture.runner.start(task);
    const outcome = await fixture.listener.outcome(task.ref);
    assert.deepEqual(
      outcome.kind === "succeeded" && outcome.artifacts.map(({ name, kind, title }) => [name, kind, title]),
      [
        ["a.txt", "output", "A"],
        ["b.txt", "artifact", null],
      ],
    );
  });

  it("is ended, not waited for, when it leaves its input unread", async () => {
    await using fixture = new RunnerFixture();
    const { runner, listener } = fixture;
    const task = longLived(["sh", "-c", "echo up; sleep 1000"]);
    runner.start(task);
    await listener.until(() => listener.logs("stdout").length === 1);
    const body = "x".repeat(1024 * 1024);
    // More than may wait in a whole job: 160 MiB.
    for (let i = 0; i < 170; i++) runner.send(task.ref, envelope(task.ref, "worker", body));
    const outcome = await listener.outcome(task.ref);
    assert.match(failedWith(outcome, "executor.input_unread"), /left its messages on stdin unread/);
  });

  it("is interrupted by a stop, also when it closed its stdin", async () => {
    await using fixture = new RunnerFixture();
    const { runner, listener } = fixture;
    const task = longLived(["sh", "-c", "exec < /dev/null; echo up; exec sleep 1000"]);
    runner.start(task);
    await listener.until(() => listener.logs("stdout").length === 1);
    for (let i = 0; i < 3; i++) runner.send(task.ref, envelope(task.ref, "worker", "x".repeat(100_000)));
    runner.stop(task.ref);
    assert.equal((await listener.outcome(task.ref)).kind, "interrupted");
  });
});
