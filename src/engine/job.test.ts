// The job state machine at exact moments: each test names a rule and the situation that decides it. The random
// moments are the simulation's (test/simulation).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed, interrupted, succeeded } from "../../test/support/engine-harness.ts";
import type { JsonObject } from "./json.ts";
import { parseManifest } from "./manifest.ts";
import { defaultTerms } from "./share.ts";
import { noActions } from "./task-port.ts";

const router = (id: string, emitType?: string): JsonObject => ({
  node_id: id,
  agent_type: "router",
  config: emitType === undefined ? {} : { emit_type: emitType },
});
const aggregator = (id: string, config: JsonObject = {}): JsonObject => ({
  node_id: id,
  agent_type: "aggregator",
  config,
});
const sensor = (id: string, config: JsonObject = {}): JsonObject => ({
  node_id: id,
  agent_type: "sensor",
  config,
});
const executor = (id: string, config: JsonObject = {}, type: string | null = null): JsonObject => ({
  node_id: id,
  agent_type: "executor",
  config: { command: ["true"], ...config },
  ...(type !== null && { type }),
});
const edge = (from: string, to: string, type?: string): JsonObject => ({
  from_node: from,
  to_node: to,
  ...(type !== undefined && { message_type: type }),
});
const graph = (nodes: JsonObject[], edges: JsonObject[] = [], more: JsonObject = {}): JsonObject => ({
  entrypoints: [nodes[0]!.node_id as string],
  nodes,
  edges,
  ...more,
});

describe("rest and results", () => {
  test("a batch job at rest completes; a service job goes on until it is cancelled", async () => {
    const h = new EngineHarness();
    const batch = await h.submit(graph([router("a")]));
    assert.equal(h.status(batch), "completed");
    const service = await h.submit(graph([router("a")], [], { type: "service" }));
    await h.advance(60_000);
    assert.equal(h.status(service), "running");
    assert.deepEqual(await h.do(h.engine.cancel(service)), { kind: "done", status: "cancelled" });
    assert.equal(h.status(service), "cancelled");
  });

  test("a sensor that waits, a task that runs and a message that waits hold the job open", async () => {
    const h = new EngineHarness();
    const waiting = await h.submit(graph([sensor("s")]));
    const running = await h.submit(graph([executor("x")]));
    assert.equal(h.status(waiting), "running");
    assert.equal(h.status(running), "running");
    await h.deliver(waiting, "s", 1);
    assert.equal(h.status(waiting), "completed");
    // x still has a second message when its first task ends.
    const two = await h.submit(graph([executor("y")], [], { initial_inputs: { y: [1, 2] } }));
    await h.end("y");
    assert.equal(h.status(two), "running");
    await h.end("y");
    assert.equal(h.status(two), "completed");
  });

  test("with one aggregator that has something, it is the result; with two, every last unrouted body is", async () => {
    const h = new EngineHarness();
    const one = await h.submit(
      graph([router("a"), aggregator("x"), aggregator("y")], [edge("a", "x")], {
        initial_inputs: { a: [7] },
      }),
    );
    assert.deepEqual(h.result(one), { messages: [7], count: 1, last_message: 7 });
    const two = await h.submit(
      graph(
        [router("a"), aggregator("x"), aggregator("y"), router("z")],
        [edge("a", "x"), edge("a", "y"), edge("a", "z")],
        {
          initial_inputs: { a: [7] },
        },
      ),
    );
    assert.deepEqual(h.result(two), { outputs: { z: 7 } });
  });

  test("aggregators form their result in the order of the graph, so that a later one hears the earlier", async () => {
    const h = new EngineHarness();
    const emits = { output_message_type: "sum" };
    // "late" stands first in the manifest, and still forms last.
    const nodes = [router("a"), aggregator("late", emits), aggregator("early", emits), aggregator("out")];
    const edges = [edge("a", "early"), edge("a", "late"), edge("early", "late"), edge("late", "out")];
    const job = await h.submit(graph(nodes, edges));
    assert.deepEqual(h.processed(job), { a: 1, early: 1, late: 2, out: 1 });
  });

  test("an aggregator that counts keeps an unfinished window to itself; at rest that is the result", async () => {
    const h = new EngineHarness();
    const counts = aggregator("x", { complete_after: 2, output_message_type: "pair" });
    const job = await h.submit(
      graph([router("a"), counts, router("z")], [edge("a", "x"), edge("x", "z")], {
        initial_inputs: { a: [1, 2, 3] },
      }),
    );
    assert.equal(h.processed(job).z, 1);
    assert.deepEqual(h.result(job), { messages: [3], count: 1, last_message: 3 });
  });

  test("a job can be cancelled twice at the same moment: the second caller is told that it is over", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")]));
    const answers = await h.do(Promise.all([h.engine.cancel(job), h.engine.cancel(job)]));
    assert.deepEqual(answers, [{ kind: "done", status: "cancelled" }, { kind: "not_open" }]);
  });

  test("the first completion wins, and nothing happens after the terminal event", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph(
        [router("a"), aggregator("x", { complete_on_message: true }), router("after")],
        [edge("a", "x"), edge("x", "after")],
        {
          initial_inputs: { a: [1, 2, 3] },
        },
      ),
    );
    assert.deepEqual(h.result(job), { messages: [1], count: 1, last_message: 1 });
    assert.equal(h.events(job).at(-1)?.type, "job_completed");
    assert.equal(h.events(job, "job_completed").length, 1);
    for (const verb of ["cancel", "pause", "resume"] as const) {
      assert.deepEqual(await h.do(h.engine[verb](job)), { kind: "not_open" });
    }
    assert.deepEqual(await h.deliver(job, "a", 1), { kind: "not_open" });
  });

  test("a worker's complete_run ends the run at once: what its result emitted besides is not processed", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x"), router("next")], [edge("x", "next")]));
    await h.end("x", succeeded({ completeRun: 42, emits: [{ type: "t", body: 1, to: null }] }));
    assert.equal(h.status(job), "completed");
    assert.deepEqual(h.result(job), { value: 42 });
    assert.equal(h.events(job).at(-1)?.type, "job_completed");
    assert.equal(h.events(job, "message_unrouted").length, 0);
  });
});

describe("messages", () => {
  test("a message whose ttl has passed when its turn comes is a dead letter; one in time is not", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")], [], { type: "service" }));
    await h.deliver(job, "x", "late", 100);
    await h.deliver(job, "x", "in time", 10_000);
    await h.advance(101);
    await h.end("x");
    assert.deepEqual(
      h.events(job, "message_dead_lettered").map(({ payload }) => payload.reason),
      ["ttl_expired"],
    );
    assert.equal(h.started("x").envelope.body, "in time");
    const edgeCase = await h.submit(graph([sensor("s", { complete_after: null })], [], { type: "service" }));
    await h.deliver(edgeCase, "s", 1, 100);
    assert.equal(h.events(edgeCase, "sensor_observed").length, 1);
  });

  test("an agent works on one message at a time", async () => {
    const h = new EngineHarness({ slots: 5 });
    const job = await h.submit(graph([executor("x")], [], { initial_inputs: { x: [1, 2, 3] } }));
    assert.equal(h.starts.length, 1);
    await h.end("x", succeeded({ nextState: { seen: 1 } }));
    assert.equal(h.starts.length, 2);
    assert.deepEqual(h.started("x").agentState, { seen: 1 });
    assert.equal(h.job(job).messages.length, 1);
  });

  test("a message for nobody, and one for an agent that is done, are dead letters", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph([executor("x"), sensor("s")], [edge("x", "s", "go")], { type: "service" }),
    );
    await h.deliver(job, "s", 1);
    assert.equal(h.events(job, "agent_completed").length, 1);
    await h.end(
      "x",
      succeeded({
        emits: [
          { type: "go", body: 1, to: null },
          { type: "go", body: 2, to: "ghost" },
        ],
      }),
    );
    assert.deepEqual(
      h.events(job, "message_dead_lettered").map(({ agent_id, payload }) => [agent_id, payload.reason]),
      [
        ["s", "target_gone"],
        ["ghost", "target_gone"],
      ],
    );
    assert.equal(h.events(job, "sensor_observed").length, 1);
    assert.deepEqual(await h.deliver(job, "ghost", 1), { kind: "unknown_agent" });
  });

  test("messages that wait behind the last observation of a sensor are dead letters, and the sensor is done once", async () => {
    const h = new EngineHarness();
    const nodes = [router("a"), sensor("s"), executor("hold")];
    const job = await h.submit(
      graph(nodes, [edge("a", "s"), edge("a", "hold")], { initial_inputs: { a: [1, 2, 3] } }),
    );
    assert.equal(h.events(job, "sensor_observed").length, 1);
    assert.equal(h.events(job, "message_dead_lettered").length, 2);
    assert.equal(h.events(job, "agent_completed").length, 1);
    for (let i = 0; i < 3; i++) await h.end("hold");
    assert.equal(h.status(job), "completed");
  });

  test("an acknowledged message survives a crash before its agent has taken it, and is not taken twice", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph([executor("x"), router("r")], [edge("x", "r", "m")], { type: "service" }),
    );
    for (const body of ["second", "third"]) await h.deliver(job, "x", body);
    await h.restart();
    await h.end("x");
    assert.equal(h.started("x").envelope.body, "second");
    await h.restart();
    await h.end("x");
    await h.end("x");
    const received = h.events(job, "agent_message_received").filter(({ agent_id }) => agent_id === "x");
    assert.equal(received.length, 3);
    assert.equal(h.job(job).messages.length, 0);
  });
});

describe("sizes", () => {
  const big = (chars: number) => "x".repeat(chars - 2);

  test("an aggregator that collects too much fails the run, also in a circle that feeds on itself", async () => {
    const h = new EngineHarness();
    const circle = aggregator("x", { complete_on_message: true, output_message_type: "again" });
    const job = await h.submit(graph([circle], [edge("x", "x")], { initial_inputs: { x: [big(1_000)] } }));
    assert.equal(h.status(job), "failed");
    assert.match(h.job(job).progress.failureJson!, /message\.body_too_large/);
    assert.equal(h.events(job).at(-1)?.type, "job_failed");
    const collects = await h.submit(
      graph([executor("w"), aggregator("z")], [edge("w", "z", "part")], { type: "service" }),
    );
    const part = { type: "part", body: big(20 * 1024 * 1024), to: null };
    await h.end("w", succeeded({ emits: [part, part] }));
    assert.match(h.job(collects).progress.failureJson!, /has collected more than.*"agent_id":"z"/);
  });

  test("messages that wait in a job have a budget: what exceeds it is a dead letter, and processing frees it", async () => {
    const h = new EngineHarness();
    const nodes = [
      executor("w", { output_message_type: null }),
      executor("hold", { output_message_type: null }),
    ];
    const job = await h.submit(graph(nodes, [edge("w", "hold", "part")], { type: "service" }));
    const part = { type: "part", body: big(30 * 1024 * 1024), to: null };
    await h.end("w", succeeded({ emits: [part, part, part, part, part] }));
    assert.deepEqual(
      h.events(job, "message_dead_lettered").map(({ payload }) => payload.reason),
      ["mailbox_full"],
    );
    for (let i = 0; i < 4; i++) await h.end("hold");
    await h.deliver(job, "w", "again");
    await h.end("w", succeeded({ emits: [part] }));
    assert.equal(h.started("hold").ref.taskSeq, 7);
  });
});

describe("tasks", () => {
  test("a retryable failure is tried again until max_attempts, after a growing delay", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x", { max_attempts: 3, retry_backoff_ms: 1_000 })]));
    await h.end("x", failed());
    // fraction is 0.5: three quarters of 1,000 ms.
    await h.advance(749);
    assert.equal(h.starts.length, 1);
    await h.advance(1);
    assert.equal(h.starts.length, 2);
    assert.equal(h.started("x").ref.attempt, 2);
    await h.end("x", failed());
    await h.advance(1_499);
    assert.equal(h.starts.length, 2);
    await h.advance(1);
    await h.end("x", failed());
    assert.equal(h.starts.length, 3);
    assert.equal(h.status(job), "failed");
    const failure = JSON.parse(h.job(job).progress.failureJson!) as { code: string; details: JsonObject };
    assert.equal(failure.code, "executor.exit_nonzero");
    assert.deepEqual(
      [failure.details.attempt, failure.details.max_attempts, failure.details.exit_code],
      [3, 3, 3],
    );
  });

  test("a failure that no retry can fix is final at once", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x", { max_attempts: 3 })]));
    await h.end("x", failed("executor.spawn_failed"));
    assert.equal(h.status(job), "failed");
  });

  test("results of an older attempt, and second results, change nothing", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph([executor("x", { max_attempts: 2, retry_backoff_ms: 10 })], [], { type: "service" }),
    );
    const first = h.started("x").ref;
    await h.end("x", failed());
    await h.advance(10);
    h.engine.taskEnded(first, succeeded({ completeRun: "stale" }));
    await h.advance();
    assert.equal(h.status(job), "running");
    assert.equal(h.events(job, "sandbox_job_completed").length, 0);
    const second = h.started("x").ref;
    await h.end("x");
    h.engine.taskEnded(second, succeeded({ completeRun: "again" }));
    await h.advance();
    assert.equal(h.status(job), "running");
    assert.equal(h.events(job, "sandbox_job_completed").length, 1);
    h.engine.taskEvents(second, [{ type: "progress", payload: {} }]);
    await h.advance(50);
    assert.equal(h.events(job, "progress").length, 0);
  });

  test("a duplicate result while the job is paused and the first one waits changes nothing", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")]));
    await h.do(h.engine.pause(job));
    const { ref } = h.started("x");
    await h.end("x", succeeded({ completeRun: "first" }));
    h.engine.taskEnded(ref, failed());
    await h.advance();
    await h.do(h.engine.resume(job));
    assert.deepEqual(h.result(job), { value: "first" });
  });

  test("slots are queued in order, and what a cancelled job waited for goes to the next", async () => {
    const h = new EngineHarness({ slots: 1 });
    await h.submit(graph([executor("a")]));
    const waits = await h.submit(graph([executor("b")]));
    const last = await h.submit(graph([executor("c")]));
    assert.equal(h.starts.length, 1);
    assert.equal(h.events(waits, "executor_lease_requested").length, 1);
    assert.equal(h.events(waits, "executor_lease_acquired").length, 0);
    assert.equal(h.slots.snapshot().default?.queued, 2);
    await h.do(h.engine.cancel(waits));
    assert.equal(h.slots.snapshot().default?.queued, 1);
    await h.end("a");
    assert.equal(h.started("c").ref.jobId, last);
    assert.equal(h.starts.filter(({ agentId }) => agentId === "b").length, 0);
  });

  test("an attempt that an earlier owner had placed on another node is made again once it has ended there", async () => {
    const h = new EngineHarness({ slots: 2 });
    const { request } = h.slots;
    const elsewhere = { leaseId: "lease_n2", pool: "default", slots: 1, node: "n2" };
    h.slots.request = (key, pool, slots) =>
      key.includes("/1/") ? { kind: "granted", lease: elsewhere } : request.call(h.slots, key, pool, slots);
    const nodes = [router("r"), executor("a"), executor("b")];
    const job = await h.submit(graph(nodes, [edge("r", "a"), edge("r", "b")]));
    assert.deepEqual([h.started("a").lease?.node, h.started("b").lease?.node], ["n2", undefined]);
    const endsMs = h.nowMs + 30_000;
    h.endOfFormer = ({ node }) => (node === "n2" ? endsMs : Number.NEGATIVE_INFINITY);
    await h.restart();
    assert.deepEqual(
      h.starts.map(({ agentId }) => agentId),
      ["b"],
    );
    await h.advance(29_999);
    assert.equal(h.starts.length, 1);
    await h.advance(1);
    assert.deepEqual(h.started("a").ref, { jobId: job, taskSeq: 1, attempt: 2 });
    assert.equal(h.events(job, "executor_interrupted").length, 2);
  });

  test("a request that no pool can ever grant fails with resource.unsatisfiable", async () => {
    const h = new EngineHarness({ slots: 1 });
    const job = await h.submit(graph([executor("a", { pool_slots: 2 })]));
    assert.equal(h.status(job), "failed");
    assert.match(h.job(job).progress.failureJson!, /resource\.unsatisfiable/);
  });

  test("a request that waits for a node is made with the agent's labels, and its event has the reason", async () => {
    const h = new EngineHarness();
    const asked: unknown[] = [];
    h.slots.request = (...given) => {
      const [, pool, slots, placement, needs] = given;
      asked.push([pool, slots, placement, needs?.nodeLabels]);
      return { kind: "queued", hint: "No node has it." };
    };
    const job = await h.submit(graph([executor("a", { node_labels: { zone: "b" } })]));
    assert.deepEqual(asked, [["default", 1, "local", { zone: "b" }]]);
    const [requested] = h.events(job, "executor_lease_requested");
    assert.deepEqual(requested?.payload, {
      task: 1,
      attempt: 1,
      pool: "default",
      slots: 1,
      hint: "No node has it.",
    });
    assert.equal(h.status(job), "queued");
  });

  test("a cancelled job's command is stopped, its lease released before the terminal event, its slot after the end", async () => {
    const h = new EngineHarness({ slots: 1 });
    const job = await h.submit(graph([executor("a")]));
    const { ref } = h.started("a");
    await h.do(h.engine.cancel(job));
    assert.deepEqual(h.stops, [ref]);
    const types = h.events(job).map(({ type }) => type);
    assert.deepEqual(types.slice(-2), ["executor_lease_released", "job_cancelled"]);
    await h.submit(graph([executor("b")]));
    assert.equal(h.starts.length, 1, "the slot is held while the process still runs");
    h.engine.taskEnded(ref, interrupted);
    await h.advance();
    assert.equal(h.started("b").agentId, "b");
  });

  test("slots that come free while a job ends, or is paused, do not go to that same job", async () => {
    const h = new EngineHarness({ slots: 2 });
    const nodes = [
      router("a"),
      ...Array.from({ length: 20 }, (_, i) => executor(`w${i}`, { pool_slots: 1 })),
    ];
    const edges = nodes.slice(1).map((node) => edge("a", node.node_id as string));
    const job = await h.submit(graph(nodes, edges));
    await h.end("w0", failed());
    assert.equal(h.status(job), "failed");
    // The third got w0's slot before the failure was looked at; the seventeen others never had one.
    assert.equal(h.events(job, "sandbox_job_started").length, 3);
    h.engine.taskEnded(h.started("w1").ref, interrupted);
    await h.advance();
    // A large request at the head of the queue holds back the small one behind it; taking it back frees the way.
    const sizes = graph(
      [router("a"), executor("one"), executor("two", { pool_slots: 2 }), executor("three")],
      [edge("a", "one"), edge("a", "two"), edge("a", "three")],
    );
    const starts = h.starts.length;
    const held = await h.submit(sizes);
    assert.equal(h.starts.length, starts + 1);
    await h.do(h.engine.pause(held));
    assert.equal(h.starts.length, starts + 1);
    assert.equal(h.slots.snapshot().default?.queued, 0);
  });

  test("a message whose ttl passes while its task waits for slots is a dead letter, and its slots go on", async () => {
    const h = new EngineHarness({ slots: 1 });
    await h.submit(graph([executor("block")]));
    const job = await h.submit(
      graph([sensor("s"), executor("x")], [], { type: "service", entrypoints: ["s"] }),
    );
    await h.deliver(job, "x", "short-lived", 100);
    const next = await h.submit(graph([executor("next")]));
    await h.advance(101);
    await h.end("block");
    assert.equal(h.events(job, "message_dead_lettered")[0]?.payload.reason, "ttl_expired");
    assert.equal(h.events(job, "sandbox_job_started").length, 0);
    assert.equal(h.started("next").ref.jobId, next);
  });

  test("a command whose start and end fall into one batch is never started", async () => {
    const h = new EngineHarness({ slots: 1 });
    const job = await h.submit(
      graph(
        [router("a"), executor("x"), aggregator("z", { complete_on_message: true })],
        [edge("a", "x"), edge("a", "z")],
      ),
    );
    assert.equal(h.status(job), "completed");
    assert.deepEqual([h.starts, h.stops], [[], []]);
    await h.submit(graph([executor("next")]));
    assert.equal(h.started("next").agentId, "next", "its slot is free again");
  });

  test("failure_policy: fail_run ends the run with the first failure, continue makes a dead letter and a partial result", async () => {
    const h = new EngineHarness();
    const nodes = [router("a"), executor("x"), executor("y"), aggregator("z")];
    const edges = [edge("a", "x"), edge("a", "y"), edge("x", "z"), edge("y", "z")];
    const stops = await h.submit(graph(nodes, edges));
    await h.end("x", failed());
    assert.equal(h.status(stops), "failed");
    assert.equal(h.stops.length, 1);
    const goesOn = await h.submit(graph(nodes, edges, { policies: { failure_policy: "continue" } }));
    h.engine.taskEnded(h.starts.findLast(({ agentId }) => agentId === "y")!.ref, interrupted);
    await h.advance();
    await h.end("x", failed());
    assert.equal(h.status(goesOn), "running");
    await h.end("y");
    assert.equal(h.status(goesOn), "completed");
    assert.equal((h.result(goesOn) as JsonObject).partial, true);
    assert.equal((h.result(goesOn) as JsonObject).count, 1);
    assert.equal(h.events(goesOn, "message_dead_lettered")[0]?.payload.reason, "processing_failed");
  });
});

describe("long-lived workers", () => {
  test("a companion ends with its batch job; a source holds the job open until it exits", async () => {
    const h = new EngineHarness();
    const companion = await h.submit(graph([router("a"), executor("w", { lifecycle: "long_lived" })]));
    assert.equal(h.status(companion), "completed");
    const source = await h.submit(graph([router("a"), executor("w", {}, "stream")]));
    assert.equal(h.status(source), "running");
    await h.end("w");
    assert.equal(h.status(source), "completed");
  });

  test("a message that waits for a companion to start holds the job open", async () => {
    const h = new EngineHarness({ slots: 1 });
    await h.submit(graph([executor("block")]));
    const job = await h.submit(graph([executor("w", { lifecycle: "long_lived" })]));
    assert.equal(h.status(job), "queued");
    await h.end("block");
    assert.equal(h.sends.length, 1);
    assert.equal(h.status(job), "completed");
  });

  test("messages reach a worker once it runs, and are dead letters once it has exited", async () => {
    const h = new EngineHarness({ slots: 1 });
    const blocker = await h.submit(graph([executor("block")]));
    const job = await h.submit(graph([executor("w", { lifecycle: "long_lived" })], [], { type: "service" }));
    await h.deliver(job, "w", "hello");
    assert.equal(h.sends.length, 0);
    await h.end("block");
    assert.equal(h.status(blocker), "completed");
    assert.deepEqual(
      h.sends.map(({ envelope }) => envelope.body),
      [{}, "hello"],
    );
    await h.end("w");
    assert.deepEqual(
      h.events(job, "agent_completed").map(({ agent_id }) => agent_id),
      ["w"],
    );
    await h.deliver(job, "w", "too late");
    assert.equal(h.events(job, "message_dead_lettered")[0]?.payload.reason, "target_gone");
  });

  test("what a worker asks for while it runs happens at once; a failed one leaves no dead letter of its own", async () => {
    const h = new EngineHarness();
    const nodes = [executor("w", { lifecycle: "long_lived" }), router("r")];
    const policies = { policies: { failure_policy: "continue" } };
    const job = await h.submit(graph(nodes, [edge("w", "r", "tick")], { type: "service", ...policies }));
    h.engine.taskActions(h.started("w").ref, { ...noActions, emits: [{ type: "tick", body: 1, to: null }] });
    await h.advance();
    assert.equal(h.processed(job).r, 1);
    await h.end("w", failed());
    assert.equal(h.events(job, "agent_failed").length, 1);
    assert.equal(h.events(job, "message_dead_lettered").length, 0);
    assert.equal(h.status(job), "running");
  });

  test("an optional companion that fails for good changes neither the end of its job nor its result", async () => {
    const h = new EngineHarness();
    const companion = executor("beside", { lifecycle: "long_lived", optional: true, max_attempts: 2 });
    const job = await h.submit(graph([executor("x"), companion, aggregator("sum")], [edge("x", "sum")]));
    await h.end("beside", failed());
    assert.equal(h.events(job, "agent_failed").length, 0);
    await h.advance(1_000);
    await h.end("beside", failed());
    const [failure] = h.events(job, "agent_failed");
    assert.equal(failure?.agent_id, "beside");
    assert.equal(failure?.error?.code, "executor.exit_nonzero");
    assert.equal(h.status(job), "running");
    await h.restart();
    assert.equal(h.starts.filter(({ agentId }) => agentId === "beside").length, 0);
    await h.end("x");
    assert.equal(h.status(job), "completed");
    assert.equal(h.job(job).progress.partial, false);
    assert.equal((h.result(job) as JsonObject).partial, undefined);
  });
});

describe("sensors", () => {
  test("an interval fires on time, not early, and not once per missed interval", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph([sensor("s", { interval_ms: 1_000, complete_after: null })], [], { type: "service" }),
    );
    await h.advance(999);
    assert.equal(h.events(job, "sensor_observed").length, 0);
    await h.advance(1);
    assert.equal(h.events(job, "sensor_observed").length, 1);
    h.nowMs += 10_000;
    await h.restart();
    assert.equal(h.events(job, "sensor_observed").length, 2);
    await h.advance(1_000);
    assert.equal(h.events(job, "sensor_observed").length, 3);
  });

  test("a timer that was set twice, by a resume, fires once", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph([sensor("s", { interval_ms: 1_000, complete_after: null })], [], { type: "service" }),
    );
    await h.do(h.engine.pause(job));
    await h.do(h.engine.resume(job));
    await h.advance(1_000);
    assert.equal(h.events(job, "sensor_observed").length, 1);
  });

  test("run_at fires once, also when it lies in the past", async () => {
    const h = new EngineHarness();
    const past = await h.submit(graph([sensor("s", { run_at: "2020-01-01T00:00:00Z" })]));
    assert.equal(h.status(past), "completed");
    const soon = await h.submit(graph([sensor("s", { run_at: "2026-01-01T00:01:00Z" })]));
    await h.advance(59_000);
    assert.equal(h.status(soon), "running");
    await h.advance(2_000);
    assert.equal(h.status(soon), "completed");
  });

  test("a watched file is an observation, and watching it does not by itself hold the job", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([sensor("s", { file: "x.txt" }), router("r")], [edge("s", "r")]));
    assert.equal(h.started("s").kind, "file");
    await h.deliver(job, "s", "enough");
    assert.equal(h.status(job), "completed", "the message was the one observation it waited for");
    assert.equal(h.stops.length, 1);
    const other = await h.submit(graph([sensor("s", { file: "x.txt" }), router("r")], [edge("s", "r")]));
    await h.end("s", succeeded({}, { path: "x.txt", size: 3 }));
    assert.equal(h.status(other), "completed");
    assert.deepEqual(h.result(other), { outputs: { r: { path: "x.txt", size: 3 } } });
  });
});

describe("a watched file that can not be watched", () => {
  test("under continue its sensor is over, and the job ends", async () => {
    const h = new EngineHarness();
    const policies = { policies: { failure_policy: "continue" } };
    const job = await h.submit(graph([sensor("s", { file: "x.txt" })], [], policies));
    await h.end("s", failed("executor.staging_failed"));
    assert.equal(h.status(job), "completed");
    assert.equal(h.events(job, "agent_failed").length, 1);
    assert.equal(h.events(job, "agent_completed").length, 0);
  });
});

describe("pause, resume, deadline", () => {
  test("a paused job dispatches nothing; a running task ends, its lease is released, its result waits", async () => {
    const h = new EngineHarness({ slots: 1 });
    const nodes = [router("a"), executor("x"), executor("y"), aggregator("z")];
    const job = await h.submit(
      graph(nodes, [edge("a", "x"), edge("a", "y"), edge("x", "z"), edge("y", "z")]),
    );
    assert.deepEqual(await h.do(h.engine.pause(job)), { kind: "done", status: "paused" });
    assert.deepEqual(await h.do(h.engine.pause(job)), { kind: "done", status: "paused" });
    await h.end("x");
    assert.equal(h.starts.length, 1, "the free slot is not given to a paused job");
    assert.equal(h.processed(job).z, undefined);
    assert.equal(h.events(job, "executor_lease_released").length, 1);
    await h.restart();
    assert.equal(h.status(job), "paused", "a restart does not let it go");
    assert.equal(h.starts.length, 0, "nor does it ask for slots");
    assert.deepEqual(await h.do(h.engine.resume(job)), { kind: "done", status: "running" });
    assert.deepEqual(await h.do(h.engine.resume(job)), { kind: "done", status: "running" });
    assert.equal(h.processed(job).z, 1);
    await h.end("y");
    assert.equal(h.status(job), "completed");
    for (const type of ["job_paused", "job_resumed"]) assert.equal(h.events(job, type).length, 1);
  });

  test("a retry and a sensor that come due during a pause wait for its end", async () => {
    const h = new EngineHarness();
    const nodes = [
      executor("x", { max_attempts: 2, retry_backoff_ms: 100 }),
      sensor("s", { interval_ms: 100 }),
    ];
    const job = await h.submit(graph(nodes));
    await h.end("x", failed());
    await h.do(h.engine.pause(job));
    await h.advance(10_000);
    assert.equal(h.starts.length, 1);
    assert.equal(h.events(job, "sensor_observed").length, 0);
    await h.do(h.engine.resume(job));
    assert.equal(h.starts.length, 2);
    assert.equal(h.events(job, "sensor_observed").length, 1);
  });

  test("a task that is interrupted while its job is paused is made again after the pause", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")]));
    await h.do(h.engine.pause(job));
    await h.end("x", interrupted);
    assert.equal(h.starts.length, 1);
    await h.do(h.engine.resume(job));
    assert.equal(h.started("x").ref.attempt, 2);
  });

  test("the deadline fails the job on time, and a pause does not count", async () => {
    const h = new EngineHarness();
    const limited = graph([executor("x")], [], { policies: { timeout_seconds: 10 } });
    const plain = await h.submit(limited);
    await h.advance(9_999);
    assert.equal(h.status(plain), "running");
    await h.advance(1);
    assert.equal(h.status(plain), "failed");
    assert.match(h.job(plain).progress.failureJson!, /job\.timeout/);
    const held = await h.submit(limited);
    await h.advance(1_000);
    await h.do(h.engine.pause(held));
    await h.advance(2_000);
    await h.do(h.engine.resume(held));
    await h.advance(4_000);
    await h.do(h.engine.pause(held));
    await h.advance(60_000);
    assert.equal(h.status(held), "paused");
    await h.do(h.engine.resume(held));
    await h.advance(4_999);
    assert.equal(h.status(held), "running");
    await h.advance(1);
    assert.equal(h.status(held), "failed");
    const moved = await h.submit(limited);
    await h.do(h.engine.pause(moved));
    await h.advance(2_000);
    await h.do(h.engine.resume(moved));
    await h.advance(9_000);
    assert.equal(h.status(moved), "queued", "the timer of the old deadline means nothing");
  });
});

describe("restart", () => {
  test("an interrupted attempt does not count against max_attempts", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x", { max_attempts: 2, retry_backoff_ms: 1 })]));
    await h.restart();
    await h.restart();
    assert.equal(h.started("x").ref.attempt, 3);
    await h.end("x", failed());
    await h.advance(10);
    assert.equal(h.started("x").ref.attempt, 4);
    await h.end("x");
    assert.equal(h.status(job), "completed");
    assert.equal(h.events(job, "executor_interrupted").length, 2);
    assert.equal(h.events(job, "job_recovered").length, 2);
  });

  test("idempotent: false fails instead of running a second time", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x", { idempotent: false })]));
    await h.restart();
    assert.equal(h.starts.length, 0);
    assert.equal(h.status(job), "failed");
    assert.match(h.job(job).progress.failureJson!, /runtime\.recovered_interrupted/);
  });

  test("recovery_mode manual_recover holds the job until a person resumes it", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")], [], { policies: { recovery_mode: "manual_recover" } }));
    await h.restart();
    assert.equal(h.status(job), "paused");
    assert.equal(h.starts.length, 0);
    await h.do(h.engine.resume(job));
    await h.end("x");
    assert.equal(h.status(job), "completed");
  });

  test("sensors that are done stay done, and what aggregators collected is there", async () => {
    const h = new EngineHarness();
    const nodes = [sensor("s"), aggregator("sum"), executor("x")];
    const job = await h.submit({
      ...graph(nodes, [edge("s", "sum"), edge("x", "sum")]),
      entrypoints: ["s", "x"],
    });
    await h.deliver(job, "s", "seen");
    await h.restart();
    await h.end("x");
    assert.equal(h.status(job), "completed");
    assert.equal((h.result(job) as { count: number }).count, 2);
    assert.equal((h.result(job) as { messages: unknown[] }).messages[0], "seen");
  });

  test("a service that never rests does not hold up recovery, nor a second cancel", async () => {
    const h = new EngineHarness();
    const circle = graph(
      [router("a", "go"), router("b", "go")],
      [edge("a", "b", "go"), edge("b", "a", "go")],
      {
        type: "service",
        policies: { timeout_seconds: 60 },
      },
    );
    const parsed = parseManifest({ manifest_version: "1.0", graph_id: "g", ...circle });
    assert.equal(parsed.kind, "valid");
    const submitted = h.engine.submit({
      graph: parsed.kind === "valid" ? parsed.graph : assert.fail(),
      identity: null,
      manifestJson: JSON.stringify({ manifest_version: "1.0", graph_id: "g", ...circle }),
      bundleFingerprint: null,
      hasOwnPayload: false,
      configurationJson: null,
      trace: null,
      ...defaultTerms,
    });
    await h.turns(3);
    const { jobId } = await submitted;
    const recovered = h.restartOnly();
    await h.turns(5);
    assert.equal(await recovered, 1);
    const answers = Promise.all([h.engine.cancel(jobId), h.engine.cancel(jobId)]);
    await h.turns(5);
    assert.deepEqual(await answers, [{ kind: "done", status: "cancelled" }, { kind: "not_open" }]);
  });

  test("stopping keeps outcomes that still come, and hands interrupted attempts to the next start", async () => {
    const h = new EngineHarness();
    const job = await h.submit(
      graph([router("a"), executor("x"), executor("y")], [edge("a", "x"), edge("a", "y")]),
    );
    h.engine.stop("bye");
    await assert.rejects(h.submit(graph([router("a")])), { name: "EngineUnavailable", message: "bye" });
    await h.end("x");
    await h.end("y", interrupted);
    assert.equal(h.status(job), "running");
    await h.restart();
    assert.deepEqual(
      h.starts.map(({ agentId, ref }) => [agentId, ref.attempt]),
      [["y", 2]],
    );
    await h.end("y");
    assert.equal(h.status(job), "completed");
    assert.equal(h.events(job, "executor_interrupted").length, 1);
  });
});

describe("the store refuses, or another owner has the job", () => {
  test("a submission that cannot be written is given up and refused; the next one is accepted", async () => {
    const h = new EngineHarness();
    h.journalFaults.push("unavailable");
    const refused = h.submit(graph([executor("x")]));
    await assert.rejects(refused, /disk is full.*Nothing was accepted/);
    assert.equal(h.engine.unavailable, "The disk is full.");
    await assert.rejects(h.submit(graph([router("a")])), { name: "EngineUnavailable" });
    await h.advance(1_000);
    assert.equal(h.engine.unavailable, null);
    assert.equal(h.memory.jobs.size, 0);
    const job = await h.submit(graph([executor("x"), executor("y")]));
    assert.equal(h.status(job), "running");
    assert.equal(h.starts.length, 1, "the slots of the job that was given up are free");
  });

  test("what happened to a running job while the store refused is written once it can", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")]));
    h.journalFaults.push("unavailable", "unavailable");
    const paused = h.engine.pause(job);
    await assert.rejects(h.do(paused), /takes effect as soon as the store can commit/);
    assert.equal(h.status(job), "running");
    await h.advance(5_000);
    assert.equal(h.status(job), "paused");
  });

  test("a job that another owner has taken is forgotten: nothing is published, its commands are stopped", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x"), executor("y")], [edge("x", "y")]));
    h.published = [];
    h.journalFaults.push("lost");
    const { ref } = h.started("x");
    h.engine.taskEnded(ref, succeeded());
    await h.advance();
    assert.deepEqual(h.published, []);
    assert.equal(h.starts.length, 1, "y's task belongs to the other owner");
    assert.equal(h.engine.openJobs, 0);
    assert.deepEqual(await h.do(h.engine.cancel(job)), { kind: "not_open" });
  });

  test("the commands that run of a job which another owner has taken are stopped", async () => {
    const h = new EngineHarness();
    const edges = [edge("r", "x"), edge("r", "y")];
    await h.submit(graph([router("r"), executor("x"), executor("y")], edges));
    const { ref } = h.started("x");
    const running = h.started("y").ref;
    h.journalFaults.push("lost");
    h.engine.taskEnded(ref, succeeded());
    await h.advance();
    assert.deepEqual(h.stops, [running]);
  });

  test("a command that a job has let go of is stopped too when the job turns out to be another owner's", async () => {
    const h = new EngineHarness();
    const edges = [edge("r", "x"), edge("r", "y")];
    const job = await h.submit(graph([router("r"), executor("x"), executor("y")], edges));
    const running = h.started("y").ref;
    const { promise, resolve } = Promise.withResolvers<void>();
    h.answersAfter = promise;
    h.journalFaults.push("lost");
    h.engine.taskEnded(h.started("x").ref, succeeded());
    await h.advance();
    h.engine.cancel(job).catch(() => {});
    resolve();
    await h.advance();
    assert.deepEqual(h.stops, [running]);
  });

  test("a caller that waits for a job which turns out to be another owner's is told so", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")]));
    h.journalFaults.push("lost");
    await assert.rejects(h.do(h.engine.pause(job)), /run by another node/);
  });

  test("stopping while the store refuses: output that can not be kept holds nobody up", async () => {
    const h = new EngineHarness();
    const job = await h.submit(graph([executor("x")]));
    const line = { type: "log", payload: { message: "y".repeat(60_000) } };
    h.journalFaults.push(...Array.from({ length: 50 }, () => "unavailable" as const));
    h.engine.taskEvents(
      h.started("x").ref,
      Array.from({ length: 200 }, () => line),
    );
    assert.notEqual(h.engine.backpressure(), null);
    await h.advance(100);
    h.engine.stop("bye");
    assert.equal(h.engine.backpressure(), null);
    assert.equal(
      await h.do(Promise.race([h.engine.settledWithin(1_000), h.advance(1_001).then(() => "late")])),
      false,
    );
    assert.equal(h.status(job), "running");
  });
});
