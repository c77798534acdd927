// The model of a run that the dashboard shows: what its events come to.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";

const load = (name: string) => import(new URL(name, import.meta.url).href);
const { apply, createModel, progressOf, shownState, stateNames } = await load("./model.js");
const { levelOf } = await load("./event.js");

interface Agent {
  readonly state: string;
  readonly messages: number;
  readonly percent: number | null;
  readonly attempt: number | null;
}

interface Given {
  readonly type: string;
  readonly agent_id?: string | null;
  readonly payload?: unknown;
  readonly error?: unknown;
}

const pair = {
  nodes: [
    { node_id: "a", agent_type: "router", role: null },
    { node_id: "b", agent_type: "executor", role: "Writes" },
  ],
  edges: [{ from_node: "a", to_node: "b", message_type: null }],
};

/** A model that has had these events, numbered from 1. */
function after(events: readonly Given[], graph: unknown = pair) {
  const model = createModel(graph);
  for (const [i, event] of events.entries()) apply(model, numbered(event, i + 1));
  return model;
}

const numbered = (event: Given, id: number) => ({
  id,
  run_id: "run_1",
  timestamp: new Date(1_700_000_000_000 + id).toISOString(),
  agent_id: null,
  payload: {},
  ...event,
});

const of = (type: string, payload: unknown = {}, agent_id = "b"): Given => ({ type, agent_id, payload });
const stateOf = (model: { agents: Map<string, unknown> }, id = "b") => shownState(model.agents.get(id));

test("a run that was paused is still paused after a restart, and one that ran continues", () => {
  const begun = [of("job_running")];
  assert.equal(after([...begun, of("job_paused"), of("job_recovered")]).status, "paused");
  assert.equal(after([...begun, of("job_paused"), of("job_recovered"), of("job_resumed")]).status, "running");
  assert.equal(after([...begun, of("job_recovered")]).status, "running");
});

describe("an agent's state", () => {
  const begun = [
    of("agent_started"),
    of("executor_lease_requested"),
    of("sandbox_job_started", { attempt: 1 }),
  ];
  const steps: readonly (readonly [name: string, events: readonly Given[], state: string])[] = [
    ["nothing has come to it", [], "pending"],
    ["it has started, and waits for what comes", begun.slice(0, 1), "ready"],
    ["it asks for a slot", begun.slice(0, 2), "queued"],
    ["an attempt runs", begun, "running"],
    ["the attempt has succeeded", [...begun, of("sandbox_job_completed")], "idle"],
    [
      "it will be tried again",
      [...begun, of("sandbox_job_failed"), of("sandbox_job_retry_scheduled")],
      "retrying",
    ],
    ["a restart interrupted the attempt", [...begun, of("executor_interrupted")], "queued"],
    ["it asks a person", [...begun, of("human_input_requested", { request_id: "q" })], "waiting"],
    [
      "it asks the same again",
      [
        ...begun,
        of("human_input_requested", { request_id: "q" }),
        of("human_input_requested", { request_id: "q", repeated: true }),
        of("human_input_answered", { request_id: "q" }),
      ],
      "running",
    ],
    ["it has failed for good", [...begun, of("agent_failed")], "failed"],
    ["its dead letter is sent again", [...begun, of("agent_failed"), of("message_retried")], "ready"],
    ["it is done", [...begun, of("sandbox_job_completed"), of("agent_completed")], "done"],
    ["the run was cancelled meanwhile", [...begun, { type: "job_cancelled" }], "cancelled"],
    ["the run completed without it", [{ type: "job_completed" }], "skipped"],
    [
      "the run failed elsewhere after it had worked",
      [...begun, of("sandbox_job_completed"), { type: "job_failed" }],
      "done",
    ],
    [
      "the run failed with it",
      [...begun, { type: "job_failed", error: { code: "x", details: { agent_id: "b" } } }],
      "failed",
    ],
  ];
  for (const [name, events, state] of steps) {
    test(`is ${state} when ${name}`, () => assert.equal(stateOf(after(events)), state));
  }

  test("of a router is done so far, as soon as it has read", () => {
    const model = after([of("agent_started", {}, "a"), of("agent_message_received", {}, "a")]);
    assert.equal(stateOf(model, "a"), "idle");
    assert.deepEqual(progressOf(model), { percent: 50, done: 1, total: 2 });
  });

  test("tells how far the attempt is, and forgets it with the attempt", () => {
    const running = after([
      of("sandbox_job_started", { attempt: 2 }),
      of("progress", { done: 1, total: 4, label: "p" }),
    ]);
    const { percent, attempt } = running.agents.get("b") as Agent;
    assert.deepEqual([percent, attempt], [25, 2]);
    apply(running, numbered(of("sandbox_job_completed"), 3));
    assert.equal((running.agents.get("b") as Agent).percent, null);
  });
});

describe("the run", () => {
  test("goes from pending over running and paused to its end, and keeps its failure", () => {
    const failure = { code: "executor.timeout", details: { agent_id: "b" } };
    const types = ["job_pending", "job_running", "job_paused", "job_resumed", "job_failed"];
    const seen = types.map(
      (_, i) =>
        after(
          types.slice(0, i + 1).map((type) => ({ type, ...(type === "job_failed" && { error: failure }) })),
        ).status,
    );
    assert.deepEqual(seen, ["pending", "running", "paused", "running", "failed"]);
    const ended = after([{ type: "job_running" }, { type: "job_failed", error: failure }]);
    assert.deepEqual(ended.failure, failure);
    assert.equal(ended.startedAt, "2023-11-14T22:13:20.001Z");
    assert.equal(ended.endedAt, "2023-11-14T22:13:20.002Z");
  });

  test("is all done when it completed, also with agents to which nothing came", () => {
    const model = after([{ type: "job_running" }, { type: "job_completed", payload: { partial: true } }]);
    assert.deepEqual([progressOf(model).percent, model.isPartial], [100, true]);
  });

  test("has no open question any more when it has ended", () => {
    const model = after([
      of("human_input_requested", { request_id: "q", prompt: "?" }),
      { type: "job_cancelled" },
    ]);
    assert.equal(model.requests.size, 0);
  });

  test("without a graph is drawn of the agents and messages that its events speak of", () => {
    const model = after(
      [
        of("agent_started", { agent_type: "router" }, "a"),
        of("agent_started", { agent_type: "executor" }, "b"),
        of("agent_message_received", { from: "a" }, "b"),
      ],
      null,
    );
    assert.deepEqual([...model.agents.keys()], ["a", "b"]);
    assert.deepEqual([...model.edges.values()], [{ from: "a", to: "b", messages: 1 }]);
  });

  test("with a graph leaves out agents that are not in it, such as its own dashboard", () => {
    const model = after([of("agent_started", {}, "blueprint_web_ui")]);
    assert.deepEqual([...model.agents.keys()], ["a", "b"]);
  });
});

test("logs have the level that they give themselves, in any spelling; other events the runtime's", () => {
  const levels = ["WARN", "warning", "critical", "loud", 7].map((level) => levelOf(of("log", { level })));
  assert.deepEqual(levels, [3, 3, 5, 2, 2]);
  assert.deepEqual([levelOf(of("log", null)), levelOf(of("agent_failed")), levelOf(of("beacon"))], [2, 4, 1]);
});

const anyEvent = fc.record({
  type: fc.constantFrom(
    ...["job_running", "job_paused", "job_completed", "job_failed", "job_cancelled", "agent_started"],
    ...["agent_message_received", "executor_lease_requested", "sandbox_job_started", "sandbox_job_failed"],
    ...[
      "sandbox_job_completed",
      "sandbox_job_retry_scheduled",
      "agent_completed",
      "agent_failed",
      "progress",
    ],
    ...["human_input_requested", "human_input_answered", "human_input_timed_out", "log", "__proto__", "mine"],
  ),
  agent_id: fc.constantFrom(null, "a", "b", "__proto__", "constructor", "new"),
  payload: fc.oneof(
    fc.record({
      request_id: fc.constantFrom("p", "q", 1),
      percent: fc.double(),
      from: fc.constantFrom("a", "b", {}),
    }),
    fc.jsonValue(),
  ),
  error: fc.jsonValue(),
});

test("whatever events hold, the counts of states are those of the agents, and nothing is thrown", () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 60 }), fc.boolean(), (events, hasGraph) => {
      const model = after(events, hasGraph ? pair : null);
      const counted = new Map<string, number>();
      for (const agent of model.agents.values()) {
        const state = shownState(agent);
        assert.ok(stateNames.has(state), state);
        counted.set(state, (counted.get(state) ?? 0) + 1);
      }
      const tally = [...model.tally].filter(([, number]) => number !== 0).sort();
      assert.deepEqual(tally, [...counted].sort());
      const { percent } = progressOf(model);
      assert.ok(percent >= 0 && percent <= 100);
    }),
  );
});

test("an event that comes twice, or late, changes nothing", () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { minLength: 1, maxLength: 30 }), fc.nat(), (events, at) => {
      const once = after(events);
      const twice = after(events);
      const i = at % events.length;
      assert.equal(apply(twice, numbered(events[i] as Given, i + 1)), false);
      assert.deepEqual(twice, once);
    }),
  );
});
