// What each agent spent its time with, as the timeline shows it, and where on its line moments are.

import assert from "node:assert/strict";
import { test } from "node:test";

const { attemptsOf, Spans, usageOf } = await import(new URL("./spans.js", import.meta.url).href);
const { criticalPath, scaleOf, ticksOf } = await import(new URL("./time-scale.js", import.meta.url).href);

const at = (seconds: number) => new Date(1_700_000_000_000 + seconds * 1_000).toISOString();
const told = (events: readonly [seconds: number, type: string, agent: string | null, payload?: object][]) => {
  const spans = new Spans();
  for (const [seconds, type, agent_id, payload = {}] of events) {
    spans.add({ type, agent_id, timestamp: at(seconds), payload });
  }
  const shown = (agent: string) =>
    spans.byAgent
      .get(agent)
      .map(({ kind, fromMs, toMs }: { kind: string; fromMs: number; toMs: number | null }) => [
        kind,
        (fromMs - spans.firstMs) / 1_000,
        toMs === null ? null : (toMs - spans.firstMs) / 1_000,
      ]);
  return { spans, shown };
};

test("an agent waits for a slot, fails, waits, and works again, one after the other", () => {
  const { shown } = told([
    [0, "executor_lease_requested", "a"],
    [2, "sandbox_job_started", "a", { attempt: 1 }],
    [5, "sandbox_job_failed", "a"],
    [5, "sandbox_job_retry_scheduled", "a"],
    [9, "sandbox_job_started", "a", { attempt: 2 }],
  ]);
  assert.deepEqual(shown("a"), [
    ["queued", 0, 2],
    ["failed", 2, 5],
    ["backoff", 5, 9],
    ["running", 9, null],
  ]);
});

test("each attempt has what its command took and the files it left, and attempts add up", () => {
  const { spans } = told([
    [0, "sandbox_job_started", "a", { attempt: 1 }],
    [1, "artifact_written", "a", { size: 7 }],
    [1, "artifact_written", "a", { size: 3 }],
    [2, "sandbox_job_failed", "a", { cpu_ms: 1_500, max_rss_bytes: 4_096 }],
    [2, "sandbox_job_retry_scheduled", "a"],
    [3, "artifact_written", "a", { size: 1_000 }],
    [3, "sandbox_job_started", "a", { attempt: 2 }],
    [4, "artifact_written", "a", { size: 5 }],
    [5, "sandbox_job_completed", "a", { cpu_ms: 500, max_rss_bytes: 8_192 }],
    [6, "sandbox_job_started", "a", { attempt: 3 }],
    [7, "sandbox_job_completed", "a", { cpu_ms: null, max_rss_bytes: null }],
  ]);
  const attempts = attemptsOf(spans.byAgent.get("a"));
  assert.deepEqual(
    attempts.map((span: object) => usageOf([span])),
    [
      { cpuMs: 1_500, rssBytes: 4_096, fileBytes: 10 },
      { cpuMs: 500, rssBytes: 8_192, fileBytes: 5 },
      { cpuMs: null, rssBytes: null, fileBytes: 0 },
    ],
  );
  assert.deepEqual(usageOf(attempts), { cpuMs: 2_000, rssBytes: 8_192, fileBytes: 15 });
});

test("a question is open beside the work that asks it, and what is open ends with the run", () => {
  const { shown } = told([
    [0, "sandbox_job_started", "a"],
    [1, "human_input_requested", "a", { request_id: "q" }],
    [4, "human_input_answered", "a", { request_id: "q" }],
    [5, "human_input_requested", "a", { request_id: "r" }],
    [6, "job_cancelled", null],
  ]);
  assert.deepEqual(shown("a"), [
    ["running", 0, 6],
    ["waiting", 1, 4],
    ["waiting", 5, 6],
  ]);
});

test("a long time without work is folded, and everything else keeps its order", () => {
  const span = (fromMs: number, toMs: number) => ({ kind: "running", fromMs, toMs });
  const { at: place, folds } = scaleOf([span(0, 10), span(910, 1_000)], 0, 1_000);
  assert.deepEqual(folds, [{ fromMs: 10, toMs: 910 }]);
  const places: number[] = [0, 10, 500, 910, 1_000].map(place);
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
  assert.deepEqual([places[0], places[4]], [0, 1]);
  assert.ok((places[3] ?? 1) - (places[1] ?? 0) < 0.2, `${places}`);
});

test("the critical path leads from the last to end back to what each waited for, past what only passes messages on", () => {
  const { spans } = told([
    [0, "sandbox_job_started", "fast"],
    [0, "sandbox_job_started", "slow"],
    [1, "sandbox_job_completed", "fast"],
    [9, "sandbox_job_completed", "slow"],
    [9, "sandbox_job_started", "end"],
    [10, "sandbox_job_completed", "end"],
    [10, "job_completed", null],
  ]);
  const edges = [
    { from: "fast", to: "join" },
    { from: "slow", to: "join" },
    { from: "join", to: "end" },
    { from: "end", to: "fast" },
  ];
  assert.deepEqual([...criticalPath(spans.byAgent, edges, spans.lastMs)], ["end", "slow"]);
});

test("a place on a folded line leads back to its moment", () => {
  const { spans } = told([
    [0, "sandbox_job_started", "a"],
    [10, "sandbox_job_completed", "a"],
    [7_000, "sandbox_job_started", "b"],
    [7_010, "sandbox_job_completed", "b"],
    [7_010, "job_completed", null],
  ]);
  const scale = scaleOf([...spans.byAgent.values()].flat(), spans.firstMs, spans.lastMs);
  for (const seconds of [0, 5, 3_000, 7_005]) {
    const ms = spans.firstMs + seconds * 1_000;
    assert.ok(Math.abs(scale.msAt(scale.at(ms)) - ms) <= 2, `${seconds} s`);
  }
});

test("moments on the line are round ones since the start, and none is in what is folded", () => {
  const span = (fromMs: number, toMs: number) => ({ kind: "running", fromMs, toMs });
  const ticks = (spans: readonly object[], toMs: number) =>
    ticksOf(scaleOf(spans, 100, toMs), { fromMs: 100, toMs, originMs: 100, countMax: 6 }).map(
      (ms: number) => ms - 100,
    );
  assert.deepEqual(ticks([span(100, 12_100)], 12_100), [0, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000]);
  const early = { fromMs: -5_000, toMs: 5_000, originMs: 0, countMax: 6 };
  assert.deepEqual(ticksOf(scaleOf([span(-5_000, 5_000)], -5_000, 5_000), early), [0, 2_000, 4_000]);
  const hour = 3_600_000;
  const folded = ticks([span(100, 5_000), span(9 * hour, 9 * hour + 7_000)], 9 * hour + 7_000);
  assert.ok(folded.length < 10, `${folded}`);
  assert.ok(
    folded.every((ms: number) => ms < 5_000 || ms > 8.9 * hour),
    `${folded}`,
  );
  assert.ok(ticks([span(100, 40 * 24 * hour)], 40 * 24 * hour).every((ms: number) => ms % (24 * hour) === 0));
});
