// From lists of events to lines and screens.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { JsonValue } from "../engine/json.ts";
import {
  eventLine,
  eventText,
  type HistoryEvent,
  isWorthReading,
  progressPercent,
  readEvent,
} from "./event-text.ts";
import { applyEvent, newProgress, type RunProgress } from "./progress.ts";
import { renderScreen } from "./screen.ts";
import { colourPaint, plainPaint } from "./terminal.ts";
import { displayWidth } from "./text.ts";

const START_MS = Date.parse("2026-03-01T10:00:00.000Z");

/** `[seconds, type, agent, payload, error?]` as events with sequence numbers. */
type Row = readonly [number, string, string | null, JsonValue?, JsonValue?];

function history(...rows: readonly Row[]): readonly HistoryEvent[] {
  return rows.map(([seconds, type, agentId, payload = {}, error], i) =>
    readEvent(i + 1, {
      timestamp: new Date(START_MS + seconds * 1_000).toISOString(),
      type,
      agent_id: agentId,
      payload,
      ...(error !== undefined && { error }),
    }),
  );
}

function progressOf(...rows: readonly Row[]): RunProgress {
  const run = newProgress();
  for (const event of history(...rows)) applyEvent(run, event);
  return run;
}

function screen(run: RunProgress, columns = 100, rows = 24, seconds = 10): readonly string[] {
  return renderScreen("digest-1", run, { columns, rows }, START_MS + seconds * 1_000, plainPaint);
}

const failure = {
  code: "executor.exit_nonzero",
  desc: "count.py ended with exit code 2",
  details: { message: "count.py ended with exit code 2" },
};

describe("the state of a run", () => {
  test("a command goes from queued over running and retrying to failed, and stays failed", () => {
    const steps: readonly Row[] = [
      [0, "agent_started", "w"],
      [0, "executor_lease_requested", "w"],
      [1, "sandbox_job_started", "w", { attempt: 1 }],
      [2, "sandbox_job_failed", "w", {}, failure],
      [2, "sandbox_job_retry_scheduled", "w", { failed_attempt: 1, delay_ms: 500 }],
      [3, "sandbox_job_started", "w", { attempt: 2 }],
      [4, "agent_failed", "w", {}, failure],
      [5, "agent_completed", "w"],
    ];
    const states = steps.map((_, i) => progressOf(...steps.slice(0, i + 1)).agents.get("w")?.state);
    assert.deepEqual(states, [
      "ready",
      "queued",
      "running",
      "running",
      "retrying",
      "running",
      "failed",
      "failed",
    ]);
    assert.equal(progressOf(...steps).agents.get("w")?.attempt, 2);
    assert.match(
      progressOf(...steps).agents.get("w")?.text ?? "",
      /failed permanently \[executor\.exit_nonzero\]/,
    );
  });

  test("messages, files and the job's own states are counted and kept", () => {
    const run = progressOf(
      [0, "job_pending", null],
      [0, "job_running", null],
      [1, "agent_message_received", "a"],
      [1, "agent_message_received", "b"],
      [2, "agent_message_received", "a"],
      [3, "artifact_written", "a", { name: "x" }],
      [4, "job_paused", null],
    );
    assert.equal(run.jobState, "paused");
    assert.deepEqual(
      [run.messages, run.agents.get("a")?.messages, run.artifacts, run.sequence],
      [3, 2, 1, 7],
    );
    for (const [type, state] of [
      ["job_resumed", "running"],
      ["job_recovered", "running"],
      ["job_cancelled", "cancelled"],
    ] as const) {
      for (const event of history([5, type, null])) applyEvent(run, event);
      assert.equal(run.jobState, state);
    }
    assert.equal(run.endedAtMs, START_MS + 5_000);
  });

  test("commands that the end of the job cuts off are shown as stopped, interrupted ones as queued again", () => {
    const run = progressOf(
      [0, "sandbox_job_started", "a"],
      [0, "executor_lease_requested", "b"],
      [0, "agent_completed", "c"],
      [1, "sandbox_job_started", "d"],
      [2, "executor_interrupted", "d"],
    );
    const states = () => [...run.agents.values()].map(({ state }) => state);
    assert.deepEqual(states(), ["running", "queued", "done", "queued"]);
    for (const event of history([3, "job_cancelled", null])) applyEvent(run, event);
    assert.deepEqual(states(), ["stopped", "stopped", "done", "stopped"]);
  });

  test("a command's result object does not replace its last log line", () => {
    const run = progressOf(
      [0, "log", "w", { message: "counted 3 words" }],
      [1, "log", "w", { message: '{"emit_messages":[]}' }],
    );
    assert.equal(run.agents.get("w")?.text, "counted 3 words");
  });

  test("progress without a number keeps the last number; a new attempt starts afresh", () => {
    const run = progressOf(
      [0, "sandbox_job_started", "w"],
      [1, "progress", "w", { done: 1, total: 4 }],
      [2, "progress", "w", { label: "half way" }],
    );
    assert.equal(run.agents.get("w")?.percent, 25);
    assert.equal(run.agents.get("w")?.text, "half way");
    for (const event of history([3, "sandbox_job_started", "w"])) applyEvent(run, event);
    assert.equal(run.agents.get("w")?.percent, null);
    assert.equal(run.agents.get("w")?.attempt, 2, "counted where the event does not say");
  });
});

describe("the screen", () => {
  const run = progressOf(
    [0, "job_running", null],
    [0, "agent_message_received", "split"],
    [1, "agent_completed", "split"],
    [2, "executor_lease_requested", "count-1"],
    [4, "sandbox_job_started", "count-1", { attempt: 2 }],
    [5, "progress", "count-1", { percent: 40, label: "counting words" }],
    [6, "log", "日本", { message: "お早う" }],
  );

  test("shows the job, and each agent with state, messages, time and last line", () => {
    assert.deepEqual(screen(run), [
      "digest-1  running  10.0 s  3 agents, 1 message",
      "AGENT    STATE      MESSAGES  TIME          LAST",
      "split    done              1                ",
      "count-1  running           0  6.0 s         ████░░░░░░ attempt 2  40 % counting words",
      "日本     ready             0                お早う",
    ]);
  });

  test("stops counting when the run has ended", () => {
    const ended = progressOf([0, "job_running", null], [3, "job_completed", null]);
    assert.equal(screen(ended, 80, 24, 99)[0], "digest-1  completed  3.0 s  0 agents, 0 messages");
  });

  test("colours change nothing but the colour", () => {
    const size = { columns: 100, rows: 24 };
    const coloured = renderScreen("digest-1", run, size, START_MS + 10_000, colourPaint);
    assert.deepEqual(
      coloured.map((line) => stripVTControlCharacters(line)),
      screen(run),
    );
    assert.ok(coloured[3]?.includes("\x1b[36mrunning\x1b[39m"));
  });

  test("shows what people are asked until it is answered, and how to answer", () => {
    const ask = (id: string, repeated = false): Row => [
      2,
      "human_input_requested",
      "w",
      {
        request_id: id,
        prompt: "Ship\nit?",
        allowed_decisions: ["yes", "no"],
        ...(repeated && { repeated }),
      },
    ];
    const run = progressOf([0, "job_running", null], ask("ship"));
    const asked = ["Waits for a person: Ship it? (yes / no)", "  troupe answer digest-1 ship DECISION"];
    assert.deepEqual(screen(run).slice(-2), asked);
    assert.match(screen(run)[2] ?? "", /^w .* asks: Ship it\? \(yes \/ no\)$/);
    const answered = { request_id: "ship", decision: "yes", principal: "anonymous" };
    for (const event of history([3, "human_input_answered", "w", answered], ask("ship", true))) {
      applyEvent(run, event);
    }
    assert.equal(run.questions.size, 0, "asked again, it is still answered");
    assert.match(screen(run).at(-1) ?? "", /asks again: /);
    for (const event of history(ask("a"), ask("b"), ask("c"), ask("d"), ask("e"))) applyEvent(run, event);
    assert.deepEqual(screen(run).slice(-2), ["… and 2 more questions:", "  troupe human digest-1"]);
    for (const event of history([4, "human_input_timed_out", "w", { request_id: "b" }]))
      applyEvent(run, event);
    assert.deepEqual([...run.questions.keys()], ["a", "c", "d", "e"]);
    for (const columns of [20, 80]) {
      for (const height of [1, 3, 8, 20]) {
        const lines = screen(run, columns, height);
        assert.ok(lines.length <= Math.max(1, height - 1), `${lines.length} lines on ${height} rows`);
        for (const line of lines) assert.ok(displayWidth(line) <= columns);
      }
    }
    for (const event of history([5, "job_cancelled", null])) applyEvent(run, event);
    assert.equal(run.questions.size, 0);
  });

  test("never cuts the command that answers a question, nor the one that lists the others", () => {
    const id = "quarterly-report-of-the-northern-region-01kaq3x7m2p9";
    const rows = ["a", "b", "c", "d", "e"].map((name): Row => {
      const request_id = `approve-the-final-figures-of-the-third-quarter-${name}`;
      return [2, "human_input_requested", "w", { request_id, prompt: "Ship it?" }];
    });
    const run = progressOf([0, "job_running", null], ...rows);
    for (const [columns, height] of [
      [20, 24],
      [40, 12],
      [80, 24],
      [80, 8],
      [200, 24],
    ] as const) {
      const lines = renderScreen(id, run, { columns, rows: height }, START_MS, plainPaint);
      for (const line of lines) assert.ok(displayWidth(line) <= columns, line);
      // As a shell joins them.
      const commands = lines
        .join("\n")
        .replaceAll("\\\n", "")
        .split("\n")
        .filter((line) => line.startsWith("  troupe "));
      const first = "approve-the-final-figures-of-the-third-quarter-a";
      assert.equal(commands[0], `  troupe answer ${id} ${first} DECISION`);
      assert.equal(commands.at(-1), `  troupe human ${id}`);
    }
  });

  test("never grows beyond the terminal, whatever its size and the number of agents", () => {
    const rows: Row[] = Array.from({ length: 300 }, (_, i) => [
      i,
      "agent_started",
      `worker-${i}-日本語の名前`,
    ]);
    const crowd = progressOf([0, "job_running", null], ...rows);
    for (const columns of [20, 33, 80, 200]) {
      for (const height of [1, 2, 3, 4, 5, 10, 50]) {
        const lines = screen(crowd, columns, height);
        assert.ok(lines.length <= Math.max(1, height - 1), `${lines.length} lines on ${height} rows`);
        for (const line of lines)
          assert.ok(displayWidth(line) <= columns, `${displayWidth(line)} > ${columns}: ${line}`);
      }
    }
  });

  test("shows busy and failed agents first when not all fit, and counts the rest", () => {
    const crowd = progressOf(
      ...Array.from(
        { length: 30 },
        (_, i): Row => [i, i < 20 ? "agent_completed" : "agent_started", `a${i}`],
      ),
      [0, "agent_failed", "a3"],
      [0, "sandbox_job_started", "a7"],
    );
    const lines = screen(crowd, 80, 8);
    assert.equal(lines.length, 7);
    assert.match(lines[2] ?? "", /^a3 +failed/);
    assert.match(lines[3] ?? "", /^a7 +running/);
    assert.match(lines[4] ?? "", /^a28 +ready/);
    assert.equal(lines.at(-1), "… and 26 more agents: 18 done, 8 ready");
  });
});

describe("event lines", () => {
  const [event] = history([0, "log", "w\x1b[2J", { message: "a\x1b]0;owned\x07b\nc\u202e", level: "info" }]);
  test("hold no escape characters and no line breaks of workers", () => {
    assert.ok(event);
    const line = eventLine(event, plainPaint);
    assert.match(line, /^\d\d:\d\d:\d\d\.000 {2}w {17}ab c$/);
    assert.ok(!line.includes("\x1b"));
  });

  const hostile = "\x1b[31m\n\x9b\0";
  test("stay one harmless line for every type and any payload", () => {
    const types = [
      "log",
      "progress",
      "job_failed",
      "sandbox_job_completed",
      "sandbox_job_retry_scheduled",
      "artifact_written",
      "message_dead_lettered",
      "agent_failed",
      hostile,
    ];
    const values: readonly JsonValue[] = [hostile, 7, null, [hostile], { [hostile]: hostile }];
    for (const type of types) {
      for (const value of values) {
        const payload = {
          message: value,
          exit_code: value,
          name: value,
          reason: value,
          type: value,
          label: value,
          attempt: value,
        };
        const error = { ...failure, desc: hostile, code: hostile };
        for (const made of history([0, type, hostile, payload, error], [0, type, hostile, value])) {
          assert.doesNotMatch(eventLine(made, plainPaint), /\p{Cc}/u);
        }
      }
    }
  });

  test("describe what happened", () => {
    const said = history(
      [0, "sandbox_job_completed", "w", { exit_code: 0, duration_ms: 1_500 }],
      [0, "sandbox_job_retry_scheduled", "w", { failed_attempt: 1, delay_ms: 500 }],
      [0, "sandbox_job_failed", "w", {}, failure],
      [0, "artifact_written", "w", { name: "report.html", size: 2_048 }],
      [0, "progress", "w", { done: 3, total: 4, label: "pages" }],
      [0, "job_completed", null, { partial: true }],
      [0, "tick", "w", { n: 3 }],
    ).map(eventText);
    assert.deepEqual(said, [
      "command ended with exit code 0 after 1.5 s",
      "attempt 1 failed; retrying in 500 ms",
      "command failed: count.py ended with exit code 2 [executor.exit_nonzero]",
      "wrote report.html (2.0 KiB)",
      "75 % 3/4 pages",
      "completed in part: some messages were dead-lettered",
      "tick n=3",
    ]);
  });

  test("leave the bookkeeping to troupe events", () => {
    const kinds = history(
      [0, "agent_message_received", "a"],
      [0, "executor_lease_acquired", "a"],
      [0, "log", "a"],
      [0, "job_recovered", null],
      [0, "tick", "a"],
      [0, "log", "a", { message: '{"complete_step": {"words": 3}}' }],
      [0, "log", "a", { message: '{"words": 3}' }],
    );
    assert.deepEqual(kinds.map(isWorthReading), [false, false, true, true, true, false, true]);
  });

  test("a percentage is a whole number from 0 to 100, or none", () => {
    const from: readonly (readonly [Record<string, JsonValue>, number | null])[] = [
      [{ percent: 33.4 }, 33],
      [{ percent: 250 }, 100],
      [{ percent: -1 }, 0],
      [{ done: 1, total: 3 }, 33],
      [{ done: 1, total: 0 }, null],
      [{ percent: "40" }, null],
      [{}, null],
    ];
    for (const [payload, percent] of from) assert.equal(progressPercent(payload), percent);
  });
});

test("an event that is no event is read as an empty one", () => {
  for (const value of [null, 7, "x", [], { type: 1, payload: 2, agent_id: {}, error: "e" }]) {
    const { type, agentId, payload, failure: none } = readEvent(1, value as JsonValue);
    assert.deepEqual([type, agentId, payload, none], ["", null, {}, null]);
  }
});
