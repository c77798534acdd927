// Real workers that ask people: the question goes out through SVC_EVENT_STREAM, the answer comes in through the file
// named in SVC_HUMAN_RESPONSES. What an answer is, and who gets it, is the engine's business; here it is a line.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { executorConfig, failedWith, RunnerFixture, taskStart } from "../../../test/support/execution.ts";
import type { TaskStart } from "../../engine/task-port.ts";

const LINE = '{"request_id":"ship","status":"answered","decision":"yes","comment":"it’s good"}';

const workers = {
  shell: [
    "sh",
    "-c",
    `printf '{"type":"human_input_requested","payload":{"request_id":"ship","prompt":"Ship it?"}}\\n' >"$SVC_EVENT_STREAM"
     until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.02; done
     cat "$SVC_HUMAN_RESPONSES"`,
  ],
  Python: [
    "python3",
    "-c",
    `import json, os, time
with open(os.environ["SVC_EVENT_STREAM"], "w") as stream:
    stream.write(json.dumps({"type": "human_input_requested", "request_id": "ship", "prompt": "Ship it?"}) + "\\n")
with open(os.environ["SVC_HUMAN_RESPONSES"], encoding="utf-8") as answers:
    while not (line := answers.readline()): time.sleep(0.02)
print(line, end="")`,
  ],
  Node: [
    "node",
    "--input-type=module",
    "-e",
    `import { appendFileSync, readFileSync, watch } from "node:fs";
const path = process.env.SVC_HUMAN_RESPONSES;
const payload = { request_id: "ship", prompt: "Ship it?" };
appendFileSync(process.env.SVC_EVENT_STREAM, JSON.stringify({ type: "human_input_requested", payload }) + "\\n");
const look = () => {
  const text = readFileSync(path, "utf8");
  if (!text.endsWith("\\n")) return;
  process.stdout.write(text);
  process.exit();
};
watch(path, look);
setInterval(look, 20);`,
  ],
} as const;

const ask = (command: readonly string[], changes: Partial<TaskStart> = {}) =>
  taskStart({ config: executorConfig({ command }), ...changes });

describe("a worker that asks a person", () => {
  for (const [language, command] of Object.entries(workers)) {
    it(`written for ${language} reads the answer while it runs`, async () => {
      await using fixture = new RunnerFixture();
      const { runner, listener } = fixture;
      const task = ask(command);
      runner.start(task);
      await listener.until(() => listener.payloads("human_input_requested").length === 1);
      assert.deepEqual(listener.payloads("human_input_requested"), [
        { request_id: "ship", prompt: "Ship it?" },
      ]);
      assert.equal(listener.outcomes.size, 0);
      runner.respond(task.ref, LINE);
      const outcome = await listener.outcome(task.ref);
      assert.equal(outcome.kind === "succeeded" && outcome.command?.stdout, `${LINE}\n`);
    });
  }

  it("finds what earlier attempts were answered, then what came before it ran", async () => {
    await using fixture = new RunnerFixture();
    const script = `until [ "$(wc -l <"$SVC_HUMAN_RESPONSES")" -eq 3 ]; do sleep 0.02; done
      cat "$SVC_HUMAN_RESPONSES"`;
    const task = ask(["sh", "-c", script], { humanResponses: ['{"n":1}', '{"n":2}'] });
    fixture.runner.start(task);
    fixture.runner.respond(task.ref, '{"n":3}');
    const outcome = await fixture.listener.outcome(task.ref);
    assert.equal(outcome.kind === "succeeded" && outcome.command?.stdout, '{"n":1}\n{"n":2}\n{"n":3}\n');
    // The attempt is over: there is nobody to answer, and that is no mistake.
    fixture.runner.respond(task.ref, '{"n":4}');
  });

  it("has its file to itself: readable by its user only, in its own attempt's folder", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh('stat -c "%a %s %F" "$SVC_HUMAN_RESPONSES"');
    assert.equal(outcome.kind === "succeeded" && outcome.command?.stdout, "600 0 regular empty file\n");
  });

  const ruined: [string, string, RegExp][] = [
    ["a folder", 'rm "$SVC_HUMAN_RESPONSES"; mkdir "$SVC_HUMAN_RESPONSES"', /EISDIR/],
    ["a pipe that nobody reads", 'rm "$SVC_HUMAN_RESPONSES"; mkfifo "$SVC_HUMAN_RESPONSES"', /ENXIO/],
    [
      "a pipe that it reads itself",
      'rm "$SVC_HUMAN_RESPONSES"; mkfifo "$SVC_HUMAN_RESPONSES"; exec 8<>"$SVC_HUMAN_RESPONSES"',
      /no regular file/,
    ],
    ["a symlink", 'ln -sf "$SVC_BODY_FILE" "$SVC_HUMAN_RESPONSES"', /ELOOP/],
  ];
  for (const [what, ruin, expected] of ruined) {
    it(`that made its file ${what} is ended, and the attempt may be made again`, async () => {
      await using fixture = new RunnerFixture();
      const { runner, listener } = fixture;
      const task = ask(["sh", "-c", `${ruin}; echo ruined; sleep 60`]);
      runner.start(task);
      await listener.until(() => listener.logs("stdout").includes("ruined"));
      runner.respond(task.ref, LINE);
      runner.respond(task.ref, LINE);
      const outcome = await listener.outcome(task.ref);
      assert.match(failedWith(outcome, "executor.workspace_failed"), /SVC_HUMAN_RESPONSES/);
      assert.match(failedWith(outcome, "executor.workspace_failed"), expected);
      assert.match(fixture.warnings.join("\n"), /answer could not be written/);
    });
  }
});
