import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isObject } from "../../engine/json.ts";
import type { TaskEvent } from "../../engine/task-port.ts";
import { EventLines } from "./event-stream.ts";
import { makeRedactor } from "./redaction.ts";

const nothing = makeRedactor([]);

/** The message of a warning. */
function messageOf(event: TaskEvent | null): string {
  assert.ok(event?.type === "log" && isObject(event.payload));
  assert.equal(event.payload.level, "warn");
  return String(event.payload.message);
}

describe("the worker's event stream", () => {
  it("takes a payload, or the other fields as the payload", () => {
    const lines = new EventLines(1, nothing);
    assert.deepEqual(lines.read('{"type": "progress", "payload": {"percent": 5}}', false), {
      type: "progress",
      payload: { percent: 5 },
    });
    assert.deepEqual(lines.read('{"type": "metric", "name": "n", "value": 1}', false), {
      type: "metric",
      payload: { name: "n", value: 1 },
    });
  });

  it("gives logs their level, stream and attempt", () => {
    const lines = new EventLines(3, nothing);
    assert.deepEqual(lines.read('{"type": "log", "level": "error", "message": "x"}', false)?.payload, {
      level: "error",
      stream: "worker",
      attempt: 3,
      message: "x",
    });
    assert.deepEqual(lines.read('{"type": "log", "payload": "text"}', false)?.payload, {
      level: "info",
      stream: "worker",
      attempt: 3,
      message: "text",
    });
  });

  it("keeps the type of a line that is too long to be read, and its beginning", () => {
    const lines = new EventLines(2, nothing);
    const line = '{"type": "progress", "payload": {"label": "aaaa';
    assert.deepEqual(lines.read(line, true), {
      type: "progress",
      payload: { truncated: true, preview: line },
    });
    assert.equal(lines.read('{"type":"log","message":"aaaa', true)?.type, "log");
  });

  it("says what is wrong with a bad line, and ignores empty ones", () => {
    const lines = new EventLines(1, nothing);
    const cases: [string, boolean, RegExp][] = [
      ["no json", false, /is no JSON.*: no json/],
      ["[1]", false, /is no JSON object/],
      ['{"payload": 1}', false, /has no type/],
      ['{"type": "job_completed"}', false, /"job_completed", which is reserved/],
      ['{"type": ""}', false, /reserved, empty or too long/],
      ['{"payload": {"type": "log"', true, /is longer than 262144 bytes/],
      ['{"type": "job_completed"', true, /is longer than 262144 bytes/],
    ];
    for (const [line, cut, expected] of cases) {
      const warning = messageOf(lines.read(line, cut));
      assert.match(warning, expected);
    }
    assert.equal(lines.read("  ", false), null);
  });

  it("shows no part of a secret in what it says of a bad line, wherever the line is cut", () => {
    const lines = new EventLines(1, makeRedactor(["secret-value-1"]));
    const cases: [string, boolean][] = [
      [`${"x".repeat(190)} secret-value-1`, false],
      [`{"type": "${"secret-value-1 ".repeat(14)}"}`, false],
      [`${"secret-value-1".repeat(100)} secret-va`, true],
      ['{"type": "secret-value-1", "payload": "secret-value-1"}', false],
    ];
    for (const [line, cut] of cases) {
      assert.doesNotMatch(JSON.stringify(lines.read(line, cut)), /secret/);
    }
  });

  it("warns of 20 bad lines at most, the last time that further ones are not reported", () => {
    const lines = new EventLines(1, nothing);
    const warnings = Array.from({ length: 30 }, () => lines.read("bad", false)).filter(
      (event) => event !== null,
    );
    assert.equal(warnings.length, 20);
    assert.match(messageOf(warnings.at(-1) ?? null), /not reported/);
    assert.equal(lines.read('{"type": "beacon"}', false)?.type, "beacon");
  });
});
