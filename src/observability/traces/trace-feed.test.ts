// Spans of what the real engine publishes: whole, once, and the same as everybody else's.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, interrupted, succeeded } from "../../../test/support/engine-harness.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { aggregator, executor, graph, module, router } from "../../../test/support/graphs.ts";
import { artifact } from "../../../test/support/journal-records.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";
import { agentSpan, attemptSpan, runSpan, taskSpan } from "../../engine/trace.ts";
import { toTimeline } from "../../runs/history/timeline.ts";
import type { FinishedSpan } from "./span.ts";
import { TraceFeed, type TraceFeedParts } from "./trace-feed.ts";

/** A job that is nothing but a page that takes room, for as long as the test wants. */
const FILLER = "filler";

/** An engine with a feed of traces on it. */
class Traced {
  readonly h: EngineHarness;
  readonly spans: FinishedSpan[] = [];
  readonly warnings: string[] = [];
  readonly limits: TraceFeedParts["limits"];
  readonly filler = Promise.withResolvers<void>();
  /** Events that were read back from histories. */
  readBack = 0;
  feed: TraceFeed;

  constructor(given: { readonly slots?: number; readonly limits?: TraceFeedParts["limits"] } = {}) {
    this.h = new EngineHarness({ slots: given.slots ?? 2 });
    this.limits = given.limits;
    this.feed = this.#newFeed();
    this.h.observer = (jobId, firstSeq, lines) => this.feed.published(jobId, firstSeq, lines);
  }

  #newFeed(): TraceFeed {
    return new TraceFeed({
      records: {
        find: async (jobId) => {
          if (jobId === FILLER) await this.filler.promise;
          const job = this.h.memory.jobs.get(jobId);
          return job === undefined ? null : { jobId, ...job.insert };
        },
        events: async (jobId, afterSeq) => {
          const lines = this.h.job(jobId).events.slice(afterSeq, afterSeq + 3);
          this.readBack += lines.length;
          return { firstSeq: afterSeq + 1, lines };
        },
      },
      emit: (span) => this.spans.push(span),
      log: { warn: (_fields, message) => this.warnings.push(message), error: () => {} },
      ...(this.limits !== undefined && { limits: this.limits }),
    });
  }

  async submit(manifest: JsonObject): Promise<string> {
    return this.h.submit(manifest);
  }

  /** kill -9 and a new start: what was open is not known any more. */
  async restart(): Promise<void> {
    await this.feed.idle();
    this.feed = this.#newFeed();
    await this.h.restart();
  }

  named(name: string): FinishedSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** Asserts that the spans of a run that has ended are a whole tree, and are those of its timeline. */
  async assertWhole(jobId: string): Promise<void> {
    await this.feed.idle();
    const { insert, events } = this.h.job(jobId);
    const spans = new Map(this.spans.map((span) => [span.spanId, span]));
    assert.equal(spans.size, this.spans.length, "every span once");
    for (const span of this.spans) {
      assert.equal(span.traceId, insert.trace.traceId);
      assert.equal(span.attributes["troupe.run_id"], insert.runId);
      if (span.spanId === runSpan(insert.runId).id) continue;
      const parent = spans.get(span.parentSpanId ?? "");
      assert.ok(parent, `${span.name} has a parent`);
      assert.ok(
        parent.startMs <= span.startMs && span.endMs <= parent.endMs,
        `${span.name} in ${parent.name}`,
      );
    }
    const context = { runId: insert.runId, ...insert.trace };
    for (const [i, line] of events.entries()) {
      const record = toTimeline(context, i + 1, line);
      if (record === null || record.type === "artifact" || record.type === "message") continue;
      const span = spans.get(record.span_id);
      assert.ok(span, `${record.type} ${record.phase} is a span's`);
      const atMs = Date.parse(record.ts);
      const isDue = span.startMs <= atMs && atMs <= span.endMs;
      // The record of an interruption comes right after the attempt's end.
      assert.ok(isDue || record.phase === "interrupted", `${record.type} ${record.phase} lies in its span`);
    }
    assert.deepEqual([this.feed.openSpans, this.feed.openRuns], [0, 0]);
  }
}

const work = (config: JsonObject = {}) => executor("work", ["true"], config);
const brief = (span: FinishedSpan) => [span.attributes["troupe.status"], span.error];

describe("the spans of a run", () => {
  test("are run, agents, tasks, leases and attempts, with the times of their events", async () => {
    const traced = new Traced({ slots: 1 });
    const nodes = [router("in"), work(), executor("next", ["true"]), aggregator("out")];
    const edges = [
      ["in", "work"],
      ["in", "next"],
      ["work", "out"],
      ["next", "out"],
    ] as const;
    const jobId = await traced.submit(graph("g", nodes, edges));
    const startMs = traced.h.nowMs;
    await traced.h.advance(400);
    await traced.h.end("work");
    await traced.h.advance(100);
    await traced.h.end("next");
    await traced.assertWhole(jobId);
    const { runId } = traced.h.job(jobId).insert;
    const shown = traced.spans.map((span) => [span.name, span.startMs - startMs, span.endMs - startMs]);
    assert.deepEqual(shown, [
      ["attempt work", 0, 400],
      ["lease default", 0, 400],
      ["task work", 0, 400],
      ["attempt next", 400, 500],
      ["lease default", 0, 500],
      ["task next", 0, 500],
      ["agent in", 0, 500],
      ["agent work", 0, 500],
      ["agent next", 0, 500],
      ["agent out", 400, 500],
      ["run g", 0, 500],
    ]);
    const [attempt] = traced.named("attempt next");
    assert.equal(attempt?.spanId, attemptSpan(runId, { task: 2, attempt: 1 }).id);
    assert.equal(attempt?.parentSpanId, taskSpan(runId, "next", 2).id);
    assert.deepEqual(attempt?.attributes, {
      "troupe.run_id": runId,
      "troupe.job_id": jobId,
      "troupe.agent_id": "next",
      "troupe.task": 2,
      "troupe.attempt": 1,
      "troupe.pool": "default",
      "troupe.exit_code": 0,
      "troupe.status": "completed",
    });
    const lease = traced.named("lease default")[1];
    assert.equal(lease?.attributes["troupe.wait_ms"], 400);
    assert.deepEqual(
      lease?.events.map(({ name, atMs }) => [name, atMs - startMs]),
      [["acquired", 400]],
    );
    assert.ok(traced.spans.every(({ error }) => error === null));
  });

  test("tell failures as status and as exception, at the attempt, the task, the agent and the run", async () => {
    const traced = new Traced();
    const jobId = await traced.submit(
      graph("g", [work({ max_attempts: 2, retry_backoff_ms: 10 }), aggregator("out")], [["work", "out"]]),
    );
    await traced.h.end("work", failed());
    await traced.feed.idle();
    assert.deepEqual(traced.named("task work"), [], "a task that is tried again has not ended");
    await traced.h.advance(20);
    await traced.h.end("work", failed("executor.timeout"));
    await traced.assertWhole(jobId);
    const causes = ["attempt work", "task work", "agent work", "run g"].flatMap((name) =>
      traced.named(name).map((span) => [name, ...brief(span), span.attributes["error.type"]]),
    );
    assert.deepEqual(causes, [
      ["attempt work", "failed", "it failed", "executor.exit_nonzero"],
      ["attempt work", "failed", "it failed", "executor.timeout"],
      ["task work", "failed", "it failed", "executor.timeout"],
      ["agent work", "failed", "it failed", "executor.timeout"],
      ["run g", "failed", "it failed", "executor.timeout"],
    ]);
    const [exception] = traced.named("attempt work")[0]!.events;
    assert.equal(exception?.name, "exception");
    assert.equal(exception?.attributes["exception.type"], "executor.exit_nonzero");
    assert.equal(exception?.attributes["exception.message"], "it failed");
    assert.deepEqual(brief(traced.named("lease default")[0]!), ["failed", null]);
  });

  test("continue after a failure that the run survives", async () => {
    const traced = new Traced();
    const policies = { failure_policy: "continue" };
    const jobId = await traced.submit(
      graph("g", [work(), aggregator("out")], [["work", "out"]], {
        policies,
        initial_inputs: { work: [1, 2] },
      }),
    );
    await traced.h.end("work", failed());
    await traced.h.end("work");
    await traced.assertWhole(jobId);
    assert.deepEqual(traced.named("task work").map(brief), [
      ["failed", "it failed"],
      ["completed", null],
    ]);
    assert.deepEqual(traced.named("agent work").map(brief), [["failed", "it failed"]]);
    assert.deepEqual(traced.named("run g").map(brief), [["completed", null]]);
    const noted = traced.named("agent work")[0]!.events.map(({ name }) => name);
    assert.deepEqual(noted, ["exception", "message_dead_lettered"]);
  });

  test("end with the run that is cancelled, whatever was under way or waited", async () => {
    const traced = new Traced({ slots: 1 });
    const nodes = [router("in"), work(), executor("next", ["true"])];
    const jobId = await traced.submit(
      graph("g", nodes, [
        ["in", "work"],
        ["in", "next"],
      ]),
    );
    await traced.h.do(traced.h.engine.cancel(jobId));
    await traced.assertWhole(jobId);
    assert.deepEqual(
      traced.spans.map((span) => [span.name, ...brief(span)]),
      [
        ["attempt work", "cancelled", null],
        ["lease default", "cancelled", null],
        ["task work", "cancelled", null],
        ["agent in", "completed", null],
        ["agent work", "cancelled", null],
        ["lease default", "cancelled", null],
        ["task next", "cancelled", null],
        ["agent next", "cancelled", null],
        ["run g", "cancelled", null],
      ],
    );
  });

  test("keep a lease whole that waits through a pause", async () => {
    const traced = new Traced({ slots: 1 });
    const nodes = [router("in"), work(), executor("next", ["true"])];
    const jobId = await traced.submit(
      graph(
        "g",
        nodes,
        [
          ["in", "work"],
          ["in", "next"],
        ],
        { policies: { failure_policy: "continue" } },
      ),
    );
    await traced.h.do(traced.h.engine.pause(jobId));
    await traced.h.end("work", failed());
    await traced.feed.idle();
    assert.deepEqual(traced.named("task work").map(brief), [["failed", "No attempt succeeded."]]);
    await traced.h.advance(100);
    await traced.h.do(traced.h.engine.resume(jobId));
    await traced.h.end("next");
    await traced.assertWhole(jobId);
    assert.equal(traced.named("lease default").length, 2);
    assert.deepEqual(
      traced.named("run g")[0]!.events.map(({ name }) => name),
      ["job_paused", "job_resumed"],
    );
  });

  test("have an attempt that was interrupted, and the next one, below one task", async () => {
    const traced = new Traced();
    const jobId = await traced.submit(graph("g", [work()]));
    await traced.h.end("work", interrupted);
    await traced.h.end("work");
    await traced.assertWhole(jobId);
    assert.deepEqual(traced.named("attempt work").map(brief), [
      ["interrupted", "The attempt was interrupted."],
      ["completed", null],
    ]);
    assert.deepEqual(traced.named("task work").map(brief), [["completed", null]]);
  });

  test("have a task that never got slots, and none for modules, which have no events of their own", async () => {
    const traced = new Traced();
    const jobId = await traced.submit(graph("g", [work({ pool: "none" })]));
    await traced.assertWhole(jobId);
    assert.deepEqual(traced.named("task work").map(brief).length, 1);
    assert.equal(traced.named("task work")[0]?.attributes["troupe.status"], "failed");
    assert.deepEqual(traced.named("attempt work"), []);
    const other = new Traced();
    const modular = await other.submit(graph("g", [module("m", { module: "m.mjs" })]));
    await other.h.end("m", {
      kind: "failed",
      code: "module.threw",
      message: "no",
      command: null,
      artifacts: [],
    });
    await other.assertWhole(modular);
    assert.deepEqual(
      other.spans.map(({ name }) => name),
      ["agent m", "run g"],
    );
  });

  test("have what people were asked", async () => {
    const traced = new Traced();
    const jobId = await traced.submit(graph("g", [work()]));
    const ask = { type: "human_input_requested", payload: { request_id: "ship", prompt: "Ship it?" } };
    const { ref } = traced.h.started("work");
    traced.h.engine.taskEvents(ref, [ask]);
    await traced.h.advance(500);
    traced.h.engine.taskEvents(ref, [ask]);
    await traced.h.advance(50);
    const answer = { requestId: "ship", decision: "yes", comment: null, dataJson: null, principal: "me" };
    await traced.h.do(traced.h.engine.answerHuman(jobId, answer));
    await traced.h.end("work");
    await traced.assertWhole(jobId);
    const [human, more] = traced.named("human work");
    assert.equal(more, undefined);
    assert.deepEqual(brief(human!), ["answered", null]);
    assert.equal(human?.attributes["troupe.decision"], "yes");
    assert.ok(human!.endMs - human!.startMs >= 500, "from when it was asked first");
  });

  test("keep a bounded number of events each, and count the others", async () => {
    const traced = new Traced();
    await traced.submit(graph("g", [work()]));
    const artifacts = Array.from({ length: 100 }, (_, n) => artifact(String(n), { name: `f${n}` }));
    await traced.h.end("work", { ...succeeded(), artifacts } as ReturnType<typeof succeeded>);
    await traced.feed.idle();
    const [attempt] = traced.named("attempt work");
    assert.equal(attempt!.events.length + attempt!.droppedEvents, 100);
    assert.equal(attempt!.events[0]!.attributes["troupe.name"], "f0");
  });
});

describe("a run that is met in its middle", () => {
  test("after a restart: what was open is ended with its true beginning, what had ended is not sent again", async () => {
    const traced = new Traced();
    const nodes = [work({ max_attempts: 3, retry_backoff_ms: 10 }), aggregator("out")];
    const jobId = await traced.submit(
      graph("g", nodes, [["work", "out"]], { initial_inputs: { work: [1, 2] } }),
    );
    const startMs = traced.h.nowMs;
    await traced.h.end("work");
    await traced.h.end("work", failed());
    await traced.h.advance(500);
    await traced.restart();
    await traced.h.advance(500);
    await traced.h.end("work");
    await traced.assertWhole(jobId);
    assert.deepEqual(traced.named("attempt work").map(brief), [
      ["completed", null],
      ["failed", "it failed"],
      ["interrupted", "The attempt was interrupted."],
      ["completed", null],
    ]);
    assert.deepEqual(
      traced.named("task work").map((span) => [span.startMs - startMs, ...brief(span)]),
      [
        [0, "completed", null],
        [0, "completed", null],
      ],
    );
    const { runId } = traced.h.job(jobId).insert;
    const agent = traced.spans.find(({ spanId }) => spanId === agentSpan(runId, "work").id);
    assert.equal(agent?.startMs, startMs);
    assert.ok(traced.readBack > 0);
  });

  test("after a page that found no room: what ended in it is missing, and from then on it is right again", async () => {
    const traced = new Traced({ limits: { waitingCharsMax: 10_000 } });
    const jobId = await traced.submit(graph("g", [work()], [], { initial_inputs: { work: [1, 2, 3, 4] } }));
    await traced.feed.idle();
    const line = traced.h.job(jobId).events[0]!;
    const filler = Array.from({ length: Math.floor(9_900 / line.length) }, () => line);
    traced.feed.published(FILLER, 1, filler);
    await traced.h.end("work");
    assert.equal(traced.warnings.length, 1);
    traced.filler.resolve();
    await traced.feed.idle();
    for (let n = 0; n < 3; n++) await traced.h.end("work");
    await traced.feed.idle();
    const tasks = (name: string) => traced.named(name).map(({ attributes }) => attributes["troupe.task"]);
    for (const name of ["task work", "lease default", "attempt work"])
      assert.deepEqual(tasks(name), [2, 3, 4]);
    assert.deepEqual([traced.named("agent work").length, traced.named("run g").length], [1, 1]);
    assert.deepEqual([traced.feed.openSpans, traced.feed.openRuns], [0, 0]);
  });

  test("whose last page found no room: nothing of it stays open", async () => {
    const traced = new Traced({ limits: { waitingCharsMax: 1_600 } });
    const jobId = await traced.submit(graph("g", [work()]));
    await traced.feed.idle();
    assert.ok(traced.feed.openSpans > 0);
    const end = traced.h.job(jobId).events[0]!.replace("job_pending", "job_completed");
    const filler = traced.h.job(jobId).events.filter((line) => line.includes("lease"));
    for (let n = 0; n < 20; n++) traced.feed.published(jobId, 100 + n, filler);
    traced.feed.published(jobId, 200, [...filler, ...filler, end]);
    await traced.feed.idle();
    assert.deepEqual([traced.feed.openSpans, traced.feed.openRuns], [0, 0]);
    assert.deepEqual(traced.named("run g"), []);
  });

  test("and has a long history is looked back at for a while: what began before that is left out", async () => {
    const traced = new Traced({ limits: { lookBackEvents: 4 } });
    const jobId = await traced.submit(graph("g", [work(), aggregator("out")], [["work", "out"]]));
    await traced.h.advance(500);
    await traced.restart();
    await traced.h.end("work");
    await traced.feed.idle();
    const { events } = traced.h.job(jobId);
    const recovered = events.findIndex((line) => line.includes("job_recovered"));
    assert.ok(events.findIndex((line) => line.includes('"agent_started"')) < recovered - 4);
    assert.deepEqual(
      traced.spans.map(({ name }) => name),
      ["attempt work", "lease default", "attempt work", "lease default", "task work", "agent out", "run g"],
    );
    assert.equal(traced.feed.openSpans, 0);
  });

  test("and that is deleted already is left alone", async () => {
    const traced = new Traced();
    traced.feed.published("gone", 7, [
      '{"timestamp":"2026-01-01T00:00:00.000Z","type":"job_recovered","agent_id":null,"payload":{}}',
    ]);
    await traced.feed.idle();
    assert.deepEqual(traced.spans, []);
    assert.deepEqual(traced.warnings, []);
  });
});

test("open spans are bounded: beyond that, spans are left out and the others stay right", async () => {
  const traced = new Traced({ slots: 50, limits: { openSpansMax: 10 } });
  const agents = Array.from({ length: 8 }, (_, n) => executor(`w${n}`, ["true"]));
  const jobId = await traced.submit(
    graph(
      "g",
      [router("in"), ...agents],
      agents.map((_, n) => ["in", `w${n}`] as const),
    ),
  );
  await traced.feed.idle();
  assert.equal(traced.feed.openSpans, 10);
  for (const [n] of agents.entries()) await traced.h.end(`w${n}`);
  await traced.feed.idle();
  assert.deepEqual(traced.warnings, ["too many spans are open: some are left out"]);
  assert.equal(traced.spans.length, 10);
  assert.equal(traced.named("run g").length, 1);
  assert.equal(traced.feed.openSpans, 0);
  assert.equal(traced.h.status(jobId), "completed");
});

test("many runs at once do not mix, and none is kept once it is over", async () => {
  const traced = new Traced({ slots: 100 });
  const jobs = await Promise.all(
    Array.from({ length: 20 }, (_, n) => traced.submit(graph(`g${n}`, [work()]))),
  );
  for (const start of traced.h.starts.toReversed()) traced.h.engine.taskEnded(start.ref, succeeded());
  await traced.h.advance();
  await traced.feed.idle();
  for (const [n, jobId] of jobs.entries()) {
    const { runId } = traced.h.job(jobId).insert;
    const own = traced.spans.filter(({ attributes }) => attributes["troupe.run_id"] === runId);
    assert.deepEqual(own.map(({ name }) => name).sort(), [
      "agent work",
      "attempt work",
      "lease default",
      `run g${n}`,
      "task work",
    ]);
  }
  assert.equal(traced.feed.openSpans, 0);
});

test("whatever happens to a run, in whatever order: its spans are a whole tree, each once", async () => {
  const agent = fc.constantFrom("a", "b");
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ end: agent, as: fc.constantFrom("succeeded", "failed", "interrupted") }),
    },
    fc.constantFrom("restart", "pause", "resume", "wait"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), fc.boolean(), async (steps, goesOn) => {
      const traced = new Traced({ slots: 1 });
      const { h } = traced;
      const config = { max_attempts: 3, retry_backoff_ms: 10 };
      const nodes = [
        router("in"),
        executor("a", ["true"], config),
        executor("b", ["true"], config),
        aggregator("out"),
      ];
      const edges = [
        ["in", "a"],
        ["in", "b"],
        ["a", "out"],
        ["b", "out"],
      ] as const;
      const policies = { failure_policy: goesOn ? "continue" : "fail_run" };
      const jobId = await traced.submit(
        graph("g", nodes, edges, { policies, initial_inputs: { in: [1, 2] } }),
      );
      const end = async (agentId: string, outcome: TaskOutcome) => {
        if (h.starts.some((start) => start.agentId === agentId)) await h.end(agentId, outcome);
      };
      const outcomes = { succeeded: succeeded(), failed: failed(), interrupted };
      for (const one of steps) {
        await h.advance(3);
        if (one === "restart") await traced.restart();
        else if (one === "pause") await h.do(h.engine.pause(jobId));
        else if (one === "resume") await h.do(h.engine.resume(jobId));
        else if (one === "wait") await h.advance(100);
        else await end(one.end, outcomes[one.as]);
      }
      await h.do(h.engine.resume(jobId));
      for (let n = 0; n < 20 && h.status(jobId) === "running"; n++) {
        await h.advance(100);
        await end(n % 2 === 0 ? "a" : "b", succeeded());
      }
      assert.notEqual(h.status(jobId), "running");
      await traced.assertWhole(jobId);
    }),
    { numRuns: 80 },
  );
});
