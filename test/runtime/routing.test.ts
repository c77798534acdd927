// How messages travel: routers, aggregators, routes, dead letters. Sentences in quotes are the contract's own,
// shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { aggregator, answer, executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call } from "../support/runtime-api.ts";

let program: Program;
before(async () => {
  program = await startRuntimeHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
});
after(() => program.stop());

const resultOf = async (manifest: JsonObject) => {
  const { status, result, detail } = await run(program, manifest);
  assert.equal(status, "completed", JSON.stringify((detail.job as JsonObject).failure));
  return result;
};
const inputs = (...bodies: (string | number | null | JsonObject)[]) => ({ initial_inputs: { in: bodies } });

describe("routing", () => {
  test('"no message_type: every message"; with one, only that type; one copy along each edge', async () => {
    const nodes = [router("in"), aggregator("all")];
    const edges = [
      ["in", "all"],
      ["in", "all", "init"],
      ["in", "all", "other"],
    ] as const;
    assert.deepEqual((await resultOf(graph("edges", nodes, edges, inputs(1)))).messages, [1, 1]);
  });

  test('"router: emits the body on, as config.emit_type or with the type it came with"', async () => {
    const nodes = [
      router("in"),
      router("renames", { emit_type: "renamed" }),
      router("keeps"),
      aggregator("all"),
    ];
    const edges = [
      ["in", "renames"],
      ["in", "keeps"],
      ["renames", "all"],
      ["keeps", "all"],
    ] as const;
    const { of } = await run(program, graph("types", nodes, edges, inputs({ a: 1 })));
    const received = of("aggregator_received", "all").map(({ payload }) => [payload.from, payload.type]);
    assert.deepEqual(received.toSorted(), [
      ["keeps", "init"],
      ["renames", "renamed"],
    ]);
  });

  test('"a message that no edge carries ends there and its last such body becomes part of the result"', async () => {
    const nodes = [router("in"), router("left"), router("right")];
    const edges = [
      ["in", "left"],
      ["in", "right"],
    ] as const;
    const job = await run(program, graph("unrouted", nodes, edges, inputs(1, 2, 3)));
    assert.deepEqual(job.result, { outputs: { left: 3, right: 3 } });
    assert.equal(job.of("message_unrouted").length, 6);
  });

  test("a body travels as it is: numbers, unicode, empty and deep values", async () => {
    const body = {
      "": null,
      n: [0.1, -1e300, 9007199254740991],
      text: "🎭 \u0000 \u2028 é",
      deep: { a: { b: [[[]]] } },
    };
    assert.deepEqual(
      (await resultOf(graph("bodies", [router("in"), aggregator("all")], [["in", "all"]], inputs(body))))
        .last_message,
      body,
    );
  });

  test("a circle with a bound ends", async () => {
    const nodes = [router("in"), router("back"), aggregator("count", { complete_after: 50 })];
    const edges = [
      ["in", "back"],
      ["back", "in"],
      ["back", "count"],
    ] as const;
    assert.equal((await resultOf(graph("circle", nodes, edges, inputs("x")))).count, 50);
  });
});

describe("aggregators", () => {
  test('"collects bodies; forms {messages, count, last_message}" at quiescence', async () => {
    const manifest = graph(
      "collect",
      [router("in"), aggregator("all")],
      [["in", "all"]],
      inputs("a", "b", "c"),
    );
    assert.deepEqual(await resultOf(manifest), { messages: ["a", "b", "c"], count: 3, last_message: "c" });
  });

  test('"at config.complete_after messages": the run completes, what comes later does not count', async () => {
    const nodes = [router("in"), aggregator("two", { complete_after: 2 })];
    const manifest = graph("after", nodes, [["in", "two"]], inputs(1, 2, 3, 4));
    assert.deepEqual(await resultOf(manifest), { messages: [1, 2], count: 2, last_message: 2 });
  });

  test('"emits it as config.output_message_type if set", again for every so many', async () => {
    const nodes = [
      router("in"),
      aggregator("pairs", { complete_after: 2, output_message_type: "pair" }),
      aggregator("all"),
    ];
    const edges = [
      ["in", "pairs"],
      ["pairs", "all", "pair"],
    ] as const;
    const result = await resultOf(graph("pairs", nodes, edges, inputs(1, 2, 3, 4)));
    assert.deepEqual(result.messages, [
      { messages: [1, 2], count: 2, last_message: 2 },
      { messages: [3, 4], count: 2, last_message: 4 },
    ]);
  });

  test('"at each with config.complete_on_message"', async () => {
    const nodes = [
      router("in"),
      aggregator("each", { complete_on_message: true, output_message_type: "one" }),
      aggregator("all"),
    ];
    const edges = [
      ["in", "each"],
      ["each", "all"],
    ] as const;
    const { messages } = (await resultOf(graph("each", nodes, edges, inputs(1, 2)))) as {
      messages: JsonObject[];
    };
    assert.deepEqual(messages, [
      { messages: [1], count: 1, last_message: 1 },
      { messages: [2], count: 1, last_message: 2 },
    ]);
  });

  test("at quiescence the aggregator nearest to the entrypoints goes first, so that the next one sees its result", async () => {
    const sums = { output_message_type: "sum" };
    const nodes = [
      router("in"),
      aggregator("second", sums),
      aggregator("first", sums),
      router("mid"),
      aggregator("last"),
    ];
    const edges = [
      ["in", "first"],
      ["in", "mid"],
      ["mid", "second"],
      ["first", "second"],
      ["second", "last"],
    ] as const;
    const { last_message, count } = await resultOf(graph("stages", nodes, edges, inputs(1)));
    assert.equal(count, 1);
    const first = { messages: [1], count: 1, last_message: 1 };
    assert.deepEqual(last_message, { messages: [1, first], count: 2, last_message: first });
  });

  test('"config.complete_run: false turns that off"', async () => {
    const nodes = [
      router("in"),
      aggregator("keeps", { complete_after: 1, complete_run: false }),
      router("end"),
    ];
    const edges = [
      ["in", "keeps"],
      ["in", "end"],
    ] as const;
    const result = await resultOf(graph("keeps", nodes, edges, inputs(1, 2, 3)));
    assert.deepEqual(result, { messages: [1, 2, 3], count: 3, last_message: 3 });
  });

  test('"counts every message; nothing is deduplicated by sender": 1,000 equal ones are 1,000', async () => {
    const same = Array.from({ length: 1_000 }, () => "same");
    assert.equal(
      (await resultOf(graph("equal", [router("in"), aggregator("all")], [["in", "all"]], inputs(...same))))
        .count,
      1_000,
    );
  });

  test('"without a completion, that of the only aggregator that has something; else outputs"', async () => {
    const nodes = [router("in"), aggregator("one"), aggregator("none"), router("end")];
    const single = graph(
      "only",
      nodes,
      [
        ["in", "one"],
        ["in", "end"],
      ],
      inputs(7),
    );
    assert.deepEqual(await resultOf(single), { messages: [7], count: 1, last_message: 7 });
    const both = graph(
      "both",
      nodes,
      [
        ["in", "one"],
        ["in", "none"],
        ["in", "end"],
      ],
      inputs(7),
    );
    assert.deepEqual(await resultOf(both), { outputs: { end: 7 } });
  });
});

describe("dead letters", () => {
  test('"one whose ttl has passed": counted from its timestamp to its processing', async () => {
    const jobId = await submit(program, graph("ttl", [sensor("s", { complete_after: 1 })]));
    await call(program, "POST", path(jobId, "/pause"));
    const first = { agent_id: "s", body: "late", ttl_ms: 1 };
    const { message_id } = await call(program, "POST", path(jobId, "/messages"), first);
    // The clock itself is the fact that is waited for.
    const sent = Date.now();
    while (Date.now() - sent < 5);
    await call(program, "POST", path(jobId, "/resume"));
    await happens(program, jobId, "message_dead_lettered");
    await call(program, "POST", path(jobId, "/messages"), {
      agent_id: "s",
      body: "in time",
      ttl_ms: 600_000,
    });
    const { of, status } = await ended(program, jobId);
    assert.equal(status, "completed");
    const [dead, ...others] = of("message_dead_lettered");
    assert.deepEqual(others, []);
    const { dead_letter_id, ...payload } = dead?.payload ?? {};
    assert.match(String(dead_letter_id), /^dl_/);
    assert.deepEqual(payload, { message_id: message_id ?? "", type: "message", reason: "ttl_expired" });
    assert.equal(of("sensor_observed").length, 1);
  });

  test('"whose target is gone": a sensor that has seen enough, and an agent that does not exist', async () => {
    const nodes = [
      router("in"),
      sensor("once"),
      executor("asks", answer({ emit_messages: [{ type: "t", body: 1, to: "nobody" }] })),
    ];
    const { of, status } = await run(
      program,
      graph(
        "gone",
        nodes,
        [
          ["in", "once"],
          ["in", "asks"],
        ],
        inputs(1, 2),
      ),
    );
    assert.equal(status, "completed");
    const reasons = (agentId: string) =>
      of("message_dead_lettered", agentId).map(({ payload }) => payload.reason);
    assert.deepEqual(reasons("once"), ["target_gone"]);
    assert.deepEqual(reasons("nobody"), ["target_gone", "target_gone"]);
  });
});
