// Filters of logs: what is told from a line's text never turns away a record that should be shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { renderEvent } from "../../engine/event.ts";
import { logLevels } from "../../engine/event-types.ts";
import { type LogFilter, logView, nameOfFilter } from "./log-filter.ts";
import { logStreams, toNumberedLog } from "./logs.ts";

const RUN = { runId: "run_1", traceId: "4bf92f3577b34da6a3ce929d0e0e4736", parentSpanId: null };
const START_MS = Date.parse("2026-11-21T09:30:00.000Z");
const all: LogFilter = {
  level: null,
  agentId: null,
  stream: null,
  text: null,
  sinceMs: null,
  untilMs: null,
};

const word = fc.constantFrom(
  'say "hi"',
  "back\\slash",
  "Größe",
  "İstanbul",
  "ΟΔΟΣ",
  "line\nbreak",
  "error",
  "x",
);
const level = fc.constantFrom(
  "info",
  "WARN",
  "Warning",
  "err",
  "critical",
  "FATAL",
  "debug",
  "loud",
  7,
  null,
);
const payload = fc.oneof(
  word,
  fc.record({ level, stream: fc.constantFrom(...logStreams, "other"), message: word, n: word }),
  fc.record({ level, msg: fc.oneof(word, fc.record({ a: word })) }),
  fc.record({ level, message: word.map((text) => text.padEnd(70_000, "y")) }),
);
const event = fc.record({
  type: fc.constantFrom(
    "log",
    "log",
    "log",
    "progress",
    "job_recovered",
    "agent_failed",
    "workspace_modified",
  ),
  nowMs: fc.integer({ min: START_MS, max: START_MS + 9 }),
  agentId: fc.constantFrom("a", 'a"b', "ab", null),
  payload,
});
const filter: fc.Arbitrary<LogFilter> = fc.record({
  level: fc.option(fc.constantFrom(...logLevels)),
  agentId: fc.option(fc.constantFrom("a", 'a"b')),
  stream: fc.option(fc.constantFrom(...logStreams)),
  text: fc.option(
    fc.oneof(
      word,
      word.map((text) => text.slice(1, 5)),
      fc.constantFrom("AGENT", "was restarted"),
    ),
  ),
  sinceMs: fc.option(fc.integer({ min: START_MS, max: START_MS + 9 })),
  untilMs: fc.option(fc.integer({ min: START_MS, max: START_MS + 9 })),
});

test("a filter shows the records that it names, and only those", () => {
  fc.assert(
    fc.property(event, filter, ({ payload: said, ...head }, wanted) => {
      const line = renderEvent(head, said);
      const record = toNumberedLog(RUN, 1, line);
      const isShown =
        record !== null &&
        logLevels.indexOf(record.level) >= logLevels.indexOf(wanted.level ?? "trace") &&
        (wanted.agentId === null || record.agent_id === wanted.agentId) &&
        (wanted.stream === null || record.stream === wanted.stream) &&
        (wanted.text === null || record.message.toLowerCase().includes(wanted.text.toLowerCase())) &&
        head.nowMs >= (wanted.sinceMs ?? 0) &&
        head.nowMs < (wanted.untilMs ?? Number.POSITIVE_INFINITY);
      assert.deepEqual(logView(RUN, wanted)(1, line), isShown ? record : null);
    }),
    { numRuns: 3_000 },
  );
});

test("filters have one name exactly when they show the same", () => {
  assert.equal(nameOfFilter({ ...all, text: "Full" }), nameOfFilter({ ...all, text: "fULL" }));
  const others: readonly Partial<LogFilter>[] = [
    { level: "warn" },
    { agentId: "a" },
    { stream: "stdout" },
    { text: "a" },
    { sinceMs: 1 },
    { untilMs: 1 },
  ];
  const names = [all, ...others.map((other) => ({ ...all, ...other }))].map(nameOfFilter);
  assert.equal(new Set(names).size, names.length);
});
