// The result object as a table of outputs and readings.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failedWith, RunnerFixture } from "../../../test/support/execution.ts";
import { engineEventTypes } from "../../engine/event-types.ts";
import { limits } from "../../engine/limits.ts";
import { readCutLine, readLine, readStdout } from "./result.ts";

const empty = {
  events: [],
  emits: [],
  nextState: undefined,
  completeStep: undefined,
  completeRun: undefined,
};

function invalidMessage(text: string): string {
  const reading = readStdout(text, false);
  assert.equal(reading.kind, "invalid");
  return reading.kind === "invalid" ? `${reading.code}: ${reading.message}` : "";
}

describe("a worker's result object", () => {
  it("acts when it is the last line that is not empty", () => {
    assert.deepEqual(readStdout('starting\n{"complete_run": {"n": 1}}\n\n', false), {
      kind: "result",
      actions: { ...empty, completeRun: { n: 1 } },
      outputs: [],
    });
  });

  it("acts when it is all of stdout, over several lines", () => {
    assert.deepEqual(readStdout('{\n  "next_state": [1],\n  "complete_step": null\n}\n', false), {
      kind: "result",
      actions: { ...empty, nextState: [1], completeStep: null },
      outputs: [],
    });
  });

  it("is read whole", () => {
    const text = JSON.stringify({
      events: [{ type: "chapter", payload: { n: 1 } }, { type: "progress" }],
      emit_messages: [
        { type: "a", body: 1 },
        { type: "b", body: null, to: "x" },
      ],
      outputs: [{ path: "report.md", title: "Report", primary: true }, { path: "b" }],
      something: "else",
    });
    assert.deepEqual(readStdout(text, false), {
      kind: "result",
      actions: {
        ...empty,
        events: [
          { type: "chapter", payload: { n: 1 } },
          { type: "progress", payload: {} },
        ],
        emits: [
          { type: "a", body: 1, to: null },
          { type: "b", body: null, to: "x" },
        ],
      },
      outputs: [
        { path: "report.md", title: "Report", primary: true },
        { path: "b", title: null, primary: false },
      ],
    });
  });

  it("is nothing when the output is plain, an object of other keys, or a result that is not last", () => {
    const plain = [
      "",
      "\n",
      "done",
      '{"a": 1}',
      "[1]",
      '{"events": []}\ndone',
      '{"a": 1',
      '{"__proto__": {"events": []}}',
    ];
    for (const text of plain) assert.deepEqual(readStdout(text, false), { kind: "none" }, text);
  });

  it("is only looked for in the last line when stdout was cut", () => {
    assert.deepEqual(readStdout('{"next_state": 1,\n"events": []}', true), { kind: "none" });
    assert.equal(readStdout('x\n{"next_state": 1}', true).kind, "result");
  });

  it("names every problem at once", () => {
    const message = invalidMessage(
      JSON.stringify({
        events: [{ type: "job_completed" }, 1],
        emit_messages: { type: "a" },
        outputs: [{ title: 1 }, { path: "a", primary: "yes" }],
      }),
    );
    for (const part of [
      "executor.invalid_output",
      "events[0].type",
      "events[1] must be an object",
      "emit_messages must be a list",
      "outputs[0].path",
      "outputs[0].title",
      "outputs[1].primary",
    ]) {
      assert.ok(message.includes(part), `${part} in ${message}`);
    }
    assert.match(
      invalidMessage('{"emit_messages": [{"to": 5}, 7]}'),
      /\[0\]\.type .*\[0\]\.body .*\[0\]\.to .*\[1\] must/,
    );
  });

  it("counts problems beyond the twentieth", () => {
    const events = Array.from({ length: 25 }, () => 1);
    assert.match(invalidMessage(JSON.stringify({ events })), /and 5 more\.$/);
  });

  it("may not emit more than the limit", () => {
    const emit_messages = Array.from({ length: limits.workerEmitsMax + 1 }, () => ({ type: "a", body: 1 }));
    assert.match(
      invalidMessage(JSON.stringify({ emit_messages })),
      /emit_messages has 10001 items; the limit is 10000/,
    );
  });

  it("is a problem, not plain output, when it begins as a result and is no JSON", () => {
    assert.match(invalidMessage('x\n{"emit_messages": [}'), /is no JSON, or nests too deep/);
    const deep = `{"next_state": ${"[".repeat(101)}${"]".repeat(101)}}`;
    assert.match(invalidMessage(deep), /nests too deep/);
    assert.equal(readCutLine('{ "complete_run": {"a', 100).kind, "invalid");
    assert.equal(readCutLine('{ "a": {"complete_run', 100).kind, "none");
  });

  it("may not hold a body that is too large once it is written as JSON", () => {
    // 1e20 has 4 characters here and 21 in the JSON that is kept.
    const numbers = Array.from({ length: 200_000 }, () => "1e20").join(",");
    assert.match(
      invalidMessage(`{"next_state": [${numbers}]}`),
      /message\.body_too_large: The agent's next state/,
    );
    assert.match(
      invalidMessage(`{"emit_messages": [{"type": "big", "body": [${numbers}]}]}`),
      /message "big"/,
    );
  });

  it("is read from single lines of a long-lived worker", () => {
    assert.equal(readLine(' {"events": []} ').kind, "result");
    assert.equal(readLine('{"level": "info"}').kind, "none");
  });
});

describe("an event type of the runtime's own", () => {
  it("in a result object fails the attempt, and nothing of the object acts", async () => {
    for (const type of engineEventTypes) {
      const result = {
        complete_run: { stolen: true },
        emit_messages: [{ type: "work", body: 1 }],
        next_state: 1,
        events: [{ type: "note" }, { type }],
      };
      const reading = readStdout(JSON.stringify(result), false);
      assert.equal(reading.kind === "invalid" && reading.code, "executor.invalid_output", type);
      assert.match(reading.kind === "invalid" ? reading.message : "", /events\[1\]\.type.*runtime's own/);
    }
    await using fixture = new RunnerFixture();
    const printed = '{"events":[{"type":"note"},{"type":"job_completed"}],"complete_run":{"stolen":true}}';
    const outcome = await fixture.sh(`echo '${printed}'`);
    failedWith(outcome, "executor.invalid_output");
    assert.ok(!("actions" in outcome));
    assert.deepEqual([fixture.listener.actions, fixture.listener.payloads("note")], [[], []]);
    assert.deepEqual(fixture.listener.payloads("job_completed"), []);
  });

  it("on the event stream becomes a warning in the log, and the worker goes on", async () => {
    await using fixture = new RunnerFixture();
    const { listener } = fixture;
    const lines = [...engineEventTypes].map((type) => JSON.stringify({ type, payload: {} })).slice(0, 15);
    const outcome = await fixture.sh(
      `for line in '${lines.join("' '")}' '{"type":"note"}'; do echo "$line" >>"$SVC_EVENT_STREAM"; done`,
    );
    assert.equal(outcome.kind, "succeeded");
    assert.deepEqual(new Set(listener.events.map(({ type }) => type)), new Set(["log", "note"]));
    const warnings = listener.payloads("log");
    assert.equal(warnings.length, lines.length);
    for (const { level, stream, message } of warnings) {
      assert.deepEqual([level, stream], ["warn", "worker"]);
      assert.match(String(message), /has the type "\w+", which is reserved/);
    }
  });
});
