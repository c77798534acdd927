// The views of a run's history, over histories that the real engine wrote.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, interrupted, succeeded } from "../../../test/support/engine-harness.ts";
import { aggregator, executor, graph, router } from "../../../test/support/graphs.ts";
import { eventType } from "../../engine/event.ts";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import { parseManifest } from "../../engine/manifest.ts";
import { defaultTerms } from "../../engine/share.ts";
import { toHumanView } from "./human.ts";
import { isOfAgent, parseEvent } from "./line.ts";
import { type LogRecord, toLog } from "./logs.ts";
import { type TimelineRecord, toTimeline } from "./timeline.ts";

const RUN = {
  runId: "run_01k9z1v7m3e8q2x4c6t8b0n5dh",
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  parentSpanId: null,
};
const RUNTIME_JOB = "g-01k9zsecretsecretsecretsecr";

/** Starts a gateway's run in an engine. */
async function launch(h: EngineHarness, manifest: JsonObject): Promise<void> {
  const parsed = parseManifest(manifest);
  assert.ok(parsed.kind === "valid");
  await h.do(
    h.engine.submit({
      graph: parsed.graph,
      identity: { jobId: RUNTIME_JOB, runId: RUN.runId, definitionId: "job_public" },
      manifestJson: JSON.stringify(manifest),
      bundleFingerprint: null,
      hasOwnPayload: false,
      configurationJson: null,
      trace: null,
      ...defaultTerms,
    }),
  );
}

const lines = (h: EngineHarness) => h.job(RUNTIME_JOB).events;
const timeline = (h: EngineHarness) =>
  lines(h).flatMap((line, i): TimelineRecord[] => {
    const record = toTimeline(RUN, i + 1, line);
    return record === null ? [] : [record];
  });
const logs = (h: EngineHarness) =>
  lines(h).flatMap((line): LogRecord[] => {
    const record = toLog(RUN, line);
    return record === null ? [] : [record];
  });

/** A run that knows trouble: a retry, an interruption, a failure, and a message that cannot be processed. */
async function troubledRun(): Promise<EngineHarness> {
  const h = new EngineHarness();
  const nodes = [
    router("in"),
    executor("work", ["true"], { max_attempts: 2, retry_backoff_ms: 10 }),
    aggregator("out"),
  ];
  const edges = [
    ["in", "work"],
    ["work", "out"],
  ] as const;
  await launch(h, graph("g", nodes, edges, { initial_inputs: { in: [1, 2] } }));
  await h.end("work", failed());
  await h.advance(20);
  await h.end("work", succeeded());
  await h.end("work", failed());
  await h.advance(20);
  await h.end("work", failed());
  return h;
}

describe("an event's line, unparsed", () => {
  test("its type and agent are what parsing it gives, whatever the ids and payloads hold", async () => {
    const h = new EngineHarness();
    const odd = 'a"\\agent_id":"b';
    const payload = { type: "payload", agent_id: "payload", text: '"type":"x","agent_id":null' };
    await launch(h, graph("g", [executor(odd, ["true"]), executor("b", ["true"])], [[odd, "b"]]));
    h.engine.taskEvents(h.started(odd).ref, [{ type: "word.of-its:own_1", payload }]);
    await h.end(odd);
    await h.end("b");
    for (const line of lines(h)) {
      const event = parseEvent(line);
      assert.equal(eventType(line), event.type);
      for (const id of [odd, "b"]) {
        assert.equal(isOfAgent(line, JSON.stringify(id)), event.agentId === id, line);
      }
    }
  });
});

describe("the timeline", () => {
  test("shows run, agent, task and attempt as spans, each below the one it belongs to", async () => {
    const h = await troubledRun();
    const records = timeline(h);
    const of = (type: string) => records.filter((record) => record.type === type);
    const [run] = of("run");
    assert.equal(run?.parent_span_id, null);
    assert.ok(of("run").every((record) => record.span_id === run?.span_id && record.agent_id === null));
    const agent = of("agent").find((record) => record.agent_id === "work");
    assert.equal(agent?.parent_span_id, run?.span_id);
    const tasks = new Set(of("task").map((record) => record.span_id));
    assert.equal(tasks.size, 2);
    assert.ok(of("task").every((record) => record.parent_span_id === agent?.span_id));
    const attempts = new Set(of("attempt").map((record) => record.span_id));
    assert.equal(attempts.size, 4);
    assert.ok(of("attempt").every((record) => tasks.has(record.parent_span_id ?? "")));
    for (const record of records) assert.match(record.span_id, /^[0-9a-f]{16}$/);
  });

  test("tells in its phases what happened, in order, and ends with the run", async () => {
    const h = await troubledRun();
    const work = timeline(h).filter((record) => record.type === "attempt" || record.type === "run");
    assert.deepEqual(
      work.map((record) => `${record.type} ${record.phase}: ${record.status}`),
      [
        "run accepted: pending",
        "run validated: pending",
        "run scheduled: pending",
        "run started: running",
        "attempt started: running",
        "attempt failed: failed",
        "attempt started: running",
        "attempt completed: completed",
        "attempt started: running",
        "attempt failed: failed",
        "attempt started: running",
        "attempt failed: failed",
        "run failed: failed",
      ],
    );
    assert.match(work.at(-1)?.summary ?? "", /^The run failed: it failed/);
    assert.equal(work.at(-1)?.details.event_id, lines(h).length);
  });

  test("an interruption and what follows it are one task's, also after a restart", async () => {
    const h = new EngineHarness();
    await launch(h, graph("g", [executor("work", ["true"])]));
    const before = timeline(h).find((record) => record.phase === "started" && record.type === "attempt");
    await h.restart();
    const records = timeline(h);
    const broken = records.find((record) => record.phase === "interrupted");
    assert.equal(broken?.span_id, before?.span_id);
    const again = records.findLast((record) => record.phase === "started" && record.type === "attempt");
    assert.notEqual(again?.span_id, before?.span_id);
    assert.equal(again?.parent_span_id, before?.parent_span_id);
  });

  test("leaves out what has no place on it, such as logs and single messages", async () => {
    const h = await troubledRun();
    const shown = new Set(timeline(h).map((record) => record.details.event_type));
    for (const type of ["agent_message_received", "aggregator_received", "log", "progress"]) {
      assert.ok(!shown.has(type), type);
    }
  });
});

describe("the log", () => {
  async function logged(payload: JsonValue): Promise<LogRecord> {
    const h = new EngineHarness();
    await launch(h, graph("g", [executor("work", ["true"])]));
    h.engine.taskEvents(h.started("work").ref, [{ type: "log", payload }]);
    await h.advance(20);
    const [record] = logs(h);
    assert.ok(record);
    return record;
  }

  test("has what a worker printed, with agent, attempt, stream and trace", async () => {
    const record = await logged({
      level: "warn",
      stream: "stderr",
      message: "low on disk",
      attempt: 1,
      rows: 3,
    });
    const { ts, span_id: spanId, ...rest } = record;
    assert.ok(Date.parse(ts) > 0);
    assert.match(spanId, /^[0-9a-f]{16}$/);
    assert.deepEqual(rest, {
      level: "warn",
      run_id: RUN.runId,
      agent_id: "work",
      attempt: 1,
      stream: "stderr",
      message: "low on disk",
      fields: { rows: 3 },
      trace_id: RUN.traceId,
    });
  });

  test("takes any payload: other spellings of levels, other streams, texts, lists, and what was too large", async () => {
    assert.equal((await logged({ level: "WARNING", message: "x" })).level, "warn");
    assert.equal((await logged({ level: "constructor", message: "x" })).level, "info");
    assert.equal((await logged({ level: 30, message: "x" })).level, "info");
    assert.equal((await logged({ stream: "elsewhere", message: "x" })).stream, "worker");
    assert.equal((await logged({ attempt: "second", message: "x" })).attempt, null);
    assert.equal((await logged("only text")).message, "only text");
    assert.equal((await logged(["a", 1])).message, '["a",1]');
    assert.equal((await logged(null)).message, "");
    assert.equal((await logged({ message: { a: 1 } })).message, '{"a":1}');
    assert.deepEqual((await logged({ message: "x", fields: { a: 1 }, b: 2 })).fields, { b: 2, a: 1 });
    const large = await logged({ message: "y".repeat(70_000) });
    assert.match(large.message, /^yyy+…$/);
    assert.equal(large.fields.truncated, true);
  });

  test("has the runtime's own words about what is not as it should be, at the attempt where it was so", async () => {
    const h = await troubledRun();
    const said = logs(h).filter((record) => record.stream === "runtime");
    assert.deepEqual(
      said.map((record) => `${record.level} ${record.fields.event}`),
      [
        "warn sandbox_job_failed",
        "warn sandbox_job_retry_scheduled",
        "warn sandbox_job_failed",
        "warn sandbox_job_retry_scheduled",
        "warn sandbox_job_failed",
        "error agent_failed",
        "warn message_dead_lettered",
        "error job_failed",
      ],
    );
    const attempt = timeline(h).find((record) => record.type === "attempt" && record.phase === "failed");
    assert.equal(said[0]?.span_id, attempt?.span_id);
    assert.equal(said.at(-1)?.message, "The run failed: it failed");
  });
});

test("a request to people is shown with what the worker asked, and named by its event if the worker did not", async () => {
  const h = new EngineHarness();
  await launch(h, graph("g", [executor("work", ["true"])]));
  const asks = [
    { prompt: "Ship it?", allowed_decisions: ["yes", "no"], request_id: "ship", default_action: "no" },
    {},
  ];
  h.engine.taskEvents(
    h.started("work").ref,
    asks.map((payload) => ({ type: "human_input_requested", payload })),
  );
  await h.advance(20);
  const requests = lines(h).flatMap((line, i) => toHumanView(RUN, i + 1, line) ?? []);
  assert.deepEqual(requests[0], {
    request_id: "ship",
    run_id: RUN.runId,
    agent_id: "work",
    prompt: "Ship it?",
    allowed_decisions: ["yes", "no"],
    data_schema: null,
    status: "pending",
    default_action: "no",
    expires_at: null,
    response: null,
  });
  assert.match(requests[1]?.request_id ?? "", /^req_\d+$/);
});

test("an answer of a person and the end of a request's time are shown as what they are", async () => {
  const h = new EngineHarness();
  await launch(h, graph("g", [executor("work", ["true"])]));
  const ship = { request_id: "ship" };
  // Asked again, it is still the first one.
  const asks = [ship, { request_id: "late", timeout_seconds: 5, default_action: "wait" }, ship];
  h.engine.taskEvents(
    h.started("work").ref,
    asks.map((payload) => ({ type: "human_input_requested", payload })),
  );
  await h.advance(20);
  const given = { requestId: "ship", decision: "yes", comment: "go", dataJson: null, principal: "anonymous" };
  await h.do(h.engine.answerHuman(RUNTIME_JOB, given));
  await h.advance(10_000);
  const views = lines(h).flatMap((line, i) => toHumanView(RUN, i + 1, line) ?? []);
  const closed = views.slice(2).map((view) => {
    const { decision, principal, responded_at: at } = view.response ?? {};
    assert.match(at ?? "", /^\d{4}-\d\d-\d\dT/);
    return [view.request_id, view.agent_id, view.status, decision, principal];
  });
  assert.deepEqual(closed, [
    ["ship", "work", "answered", "yes", "anonymous"],
    ["late", "work", "timed_out", "wait", null],
  ]);
});

test("the runtime job's id is in no event, no dead letter and no view of them", async () => {
  const h = await troubledRun();
  await h.restart();
  const other = new EngineHarness();
  await launch(other, graph("g", [executor("work", ["true"], { pool: "none" })]));
  const stopped = new EngineHarness();
  await launch(stopped, graph("g", [executor("work", ["true"], { safe_to_retry: false })]));
  await stopped.end("work", interrupted);
  for (const one of [h, other, stopped]) {
    const job = one.job(RUNTIME_JOB);
    const all = [
      job.events,
      job.deadLetters,
      timeline(one),
      logs(one),
      job.progress,
      [...job.agents.values()],
    ];
    assert.ok(job.events.length > 5);
    assert.doesNotMatch(JSON.stringify(all), /secretsecret/);
  }
});
