// The timeline's spans in particular: leases, people, dead letters, and the trace of the caller. The
// histories are the real engine's.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, interrupted, succeeded } from "../../../test/support/engine-harness.ts";
import { aggregator, executor, graph, router } from "../../../test/support/graphs.ts";
import { engineEventTypes, timelineEventTypes, workerEventTypes } from "../../engine/event-types.ts";
import type { JsonObject } from "../../engine/json.ts";
import { attemptSpan, namedSpan, runSpan, taskSpan } from "../../engine/trace.ts";
import { isOnTimeline, type TimelineRecord, toTimeline } from "./timeline.ts";

const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", parentSpanId: "00f067aa0ba902b7" };

class Watched {
  readonly h: EngineHarness;
  readonly jobId: string;

  constructor(h: EngineHarness, jobId: string) {
    this.h = h;
    this.jobId = jobId;
  }

  get runId(): string {
    return this.h.job(this.jobId).insert.runId;
  }

  records(type?: string): TimelineRecord[] {
    const context = { runId: this.runId, ...CALLER };
    return this.h
      .job(this.jobId)
      .events.flatMap((line, i) => toTimeline(context, i + 1, line) ?? [])
      .filter((record) => type === undefined || record.type === type);
  }
}

async function started(manifest: JsonObject, slots = 2): Promise<Watched> {
  const h = new EngineHarness({ slots });
  return new Watched(h, await h.submit(manifest));
}

const said = (records: readonly TimelineRecord[]) =>
  records.map(({ phase, status, duration_ms }) => [phase, status, duration_ms]);

test("the timeline shows the events that are counted as its own, and no others", () => {
  for (const type of [...engineEventTypes, ...workerEventTypes]) {
    assert.equal(isOnTimeline(type), timelineEventTypes.has(type), type);
  }
  for (const type of timelineEventTypes) assert.ok(isOnTimeline(type), type);
});

test("every parent has a record before its children, but for the caller's span", async () => {
  const run = await started(graph("g", [executor("w", ["true"], { max_attempts: 2, retry_backoff_ms: 10 })]));
  await run.h.end("w", failed());
  await run.h.advance(20);
  await run.h.restart();
  await run.h.end("w");
  const seen = new Set<string | null>([CALLER.parentSpanId]);
  for (const { span_id, parent_span_id, summary } of run.records()) {
    assert.ok(seen.has(parent_span_id), summary);
    seen.add(span_id);
  }
});

describe("a lease", () => {
  test("is a span beside its attempt: queued with its task, running from then until it is given back", async () => {
    const nodes = [router("in"), executor("a", ["true"]), executor("b", ["true"])];
    const edges = [
      ["in", "a"],
      ["in", "b"],
    ] as const;
    const run = await started(graph("g", nodes, edges), 1);
    await run.h.advance(700);
    await run.h.end("a");
    await run.h.advance(300);
    await run.h.end("b");
    const of = (agentId: string, type: string) =>
      run.records(type).filter(({ agent_id }) => agent_id === agentId);
    assert.deepEqual(said(of("a", "lease")), [
      ["running", "running", 0],
      ["released", "completed", 700],
    ]);
    assert.deepEqual(said(of("b", "lease")), [
      ["running", "running", 700],
      ["released", "completed", 300],
    ]);
    const [queued] = of("b", "task");
    assert.deepEqual(said([queued!]), [["queued", "queued", null]]);
    assert.equal(queued?.span_id, taskSpan(run.runId, "b", 2).id);
    const [attempt] = of("b", "attempt");
    for (const lease of of("b", "lease")) {
      assert.equal(lease.span_id, queued?.details.lease_span_id);
      assert.notEqual(lease.span_id, attempt?.span_id);
      assert.deepEqual([lease.parent_span_id, attempt?.parent_span_id], [queued?.span_id, queued?.span_id]);
    }
  });

  test("is each attempt's own, and says how that ended", async () => {
    const run = await started(
      graph("g", [executor("w", ["true"], { max_attempts: 2, retry_backoff_ms: 10 })]),
    );
    await run.h.end("w", failed());
    await run.h.advance(20);
    await run.h.end("w", interrupted);
    await run.h.end("w", succeeded());
    const ends = run.records("lease").filter(({ phase }) => phase === "released");
    assert.deepEqual(
      ends.map(({ status, details }) => [status, details.attempt]),
      [
        ["failed", 1],
        ["interrupted", 2],
        ["completed", 3],
      ],
    );
    assert.equal(new Set(ends.map(({ span_id }) => span_id)).size, 3);
    assert.equal(new Set(ends.map(({ parent_span_id }) => parent_span_id)).size, 1);
  });

  test("that was held when the runtime was killed ends as interrupted, with the time it was held", async () => {
    const run = await started(graph("g", [executor("w", ["true"])]));
    await run.h.advance(2_000);
    await run.h.restart();
    const released = run.records("lease").find(({ phase }) => phase === "released");
    assert.deepEqual(said([released!]), [["released", "interrupted", 2_000]]);
    const again = run.records("lease").findLast(({ phase }) => phase === "running");
    assert.deepEqual([again?.details.attempt, again?.duration_ms], [2, 0]);
  });
});

test("an attempt's records have the span that its worker was told", async () => {
  const run = await started(graph("g", [executor("agent-1-2", ["true"])]));
  const { traceparent } = run.h.started("agent-1-2");
  await run.h.end("agent-1-2");
  const records = run.records("attempt");
  assert.equal(records.length, 2);
  for (const { span_id } of records) assert.equal(span_id, traceparent.split("-")[2]);
  assert.equal(records[0]!.span_id, attemptSpan(run.runId, { task: 1, attempt: 1 }).id);
});

test("the run's span is a child of the caller's; its end tells how long it ran", async () => {
  const run = await started(graph("g", [executor("w", ["true"])]));
  await run.h.advance(1_234);
  await run.h.end("w");
  const records = run.records("run");
  for (const record of records) {
    assert.equal(record.trace_id, CALLER.traceId);
    assert.equal(record.parent_span_id, CALLER.parentSpanId);
    assert.equal(record.span_id, runSpan(run.runId).id);
  }
  assert.deepEqual(said(records).at(-1), ["completed", "completed", 1_234]);
  assert.equal(run.records("agent")[0]?.parent_span_id, runSpan(run.runId).id);
});

test("a question to a person is one span from asking to the answer", async () => {
  const run = await started(graph("g", [executor("w", ["true"])]));
  const payload = { request_id: "ship", prompt: `Ship it?\n${"x".repeat(500)}`, allowed_decisions: ["yes"] };
  run.h.engine.taskEvents(run.h.started("w").ref, [{ type: "human_input_requested", payload }]);
  await run.h.advance(20);
  await run.h.do(
    run.h.engine.answerHuman(run.jobId, {
      requestId: "ship",
      decision: "yes",
      comment: null,
      dataJson: null,
      principal: "me",
    }),
  );
  const records = run.records("human");
  assert.deepEqual(
    records.map(({ phase, status, summary }) => [phase, status, summary]),
    [
      ["requested", "pending", '"w" asks a person: Ship it?'],
      ["answered", "answered", 'A person answered "w": yes'],
    ],
  );
  for (const record of records) assert.equal(record.span_id, namedSpan(run.runId, "w", "human", "ship").id);
});

test("a dead letter that is sent again stays the same span", async () => {
  const nodes = [executor("w", ["true"]), aggregator("out")];
  const policies = { failure_policy: "continue" };
  const run = await started(graph("g", nodes, [["w", "out"]], { type: "service", policies }));
  await run.h.end("w", failed());
  const [letter] = run.h.job(run.jobId).deadLetters;
  await run.h.do(
    run.h.engine.retryDeadLetters(run.jobId, [
      { deadLetterId: letter!.deadLetterId, agentId: letter!.agentId, message: letter!.message },
    ]),
  );
  const [dead, retried] = run.records("message");
  assert.deepEqual([dead?.phase, retried?.phase], ["dead_lettered", "retried"]);
  assert.equal(dead?.span_id, retried?.span_id);
});
