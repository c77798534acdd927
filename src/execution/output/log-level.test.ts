import assert from "node:assert/strict";
import { it } from "node:test";
import { RunnerFixture } from "../../../test/support/execution.ts";
import type { LogLevel } from "../../engine/event-types.ts";
import { levelOfLine } from "./log-level.ts";

const lines: Readonly<Record<LogLevel, readonly string[]>> = {
  trace: ['{"level":10,"msg":"x"}', "TRACE entering", "VERBOSE: x"],
  debug: ['{"level":20}', "[debug] x", "time=2026-11-22T10:00:00Z level=DEBUG msg=x", "DEBUG:root:x"],
  info: [
    "",
    "plain words",
    "12 of 40 pages",
    "Downloading model… 40%",
    "the ERROR was gone after a retry",
    "errors: 0",
    "information is power",
    "no warning: none",
    '{"message":"level"}',
    '{"level":"loud"}',
    '{"level":30,"msg":"error"}',
    "INFO:     Started server process",
    "2026-11-22 10:00:00,123 - app - INFO - ERROR is only a word here",
    "[2026-11-22T10:00:00Z INFO  app] up",
    "I1122 10:00:00.000000 1 main.go:1] up",
    "Traceback (most recent call last):",
    "GET /ERROR 200",
    "2026-11-22 10:00:00 took 5 s",
  ],
  warn: [
    '{"level":40,"time":1,"msg":"x"}',
    '{"time":1,"severity":"WARNING","message":"x"}',
    "WARNING:root:x",
    "warning: LF will be replaced by CRLF",
    "[warn] x",
    "\u001b[33mWARN\u001b[0m x",
    "2026-11-22 10:00:00,123 - app - WARNING - x",
    "[2026-11-22 10:00:00,123: WARNING/MainProcess] x",
    "(node:12) ExperimentalWarning: x",
    "(node:12) [DEP0005] DeprecationWarning: x",
    "main.py:3: DeprecationWarning: x",
    "W1122 10:00:00.000000 1 main.go:1] x",
  ],
  error: [
    '{"level":50}',
    '{"level":"error","msg":"x"}',
    '{"log.level":"ERROR"}',
    "ERROR x",
    "error: pathspec did not match",
    "error[E0308]: mismatched types",
    "Error: x",
    "2026/11/22 10:00:00 [error] 12#0: x",
    "2026-11-22T10:00:00.000Z ERROR app: x",
    "2026-11-22 10:00:00.000 ERROR 1 --- [main] x",
    "ts=1 level=error msg=x",
    "SEVERE: x",
    "E1122 10:00:00.000000 1 main.go:1] x",
    "ValueError: x",
    "json.decoder.JSONDecodeError: x",
    "Uncaught TypeError: x",
  ],
  fatal: [
    '{"level":60}',
    "fatal: not a git repository",
    "CRITICAL:root:x",
    "panic: runtime error",
    "FATAL x",
  ],
};

it("the level of a line is the one that it names where loggers name it, else info", () => {
  const found = Object.entries(lines).flatMap(([level, all]) =>
    all.filter((line) => levelOfLine(line) !== level).map((line) => `${levelOfLine(line)} ${line}`),
  );
  assert.deepEqual(found, []);
});

it("a hostile line has a level as well", () => {
  for (const line of [
    "1".repeat(1e6),
    "[".repeat(1e6),
    `{${'"level":'.repeat(1e5)}`,
    `1 ${" :".repeat(1e6)}`,
  ]) {
    assert.equal(levelOfLine(line), "info");
  }
});

it("a worker's lines are logged with the levels that they name, whichever stream they are on", async () => {
  const printed = ["starting", "WARN low", '{"level":50,"msg":"x"}', "DEBUG x"];
  const levels = ["info", "warn", "error", "debug"];
  for (const [stream, to] of [
    ["stdout", ""],
    ["stderr", " >&2"],
  ]) {
    await using fixture = new RunnerFixture();
    await fixture.sh(printed.map((line) => `echo '${line}'${to}`).join("; "));
    assert.deepEqual(
      fixture.listener.payloads("log").map(({ level, stream, message }) => [level, stream, message]),
      printed.map((line, index) => [levels[index], stream, line]),
    );
  }
});
