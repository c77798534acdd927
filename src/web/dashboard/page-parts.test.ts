// The page's own parts that need no browser: layout, feed, stream frames, text.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { anyString, fc } from "../../../test/support/fast-check.ts";

const load = (name: string) => import(new URL(name, import.meta.url).href);
const { box, layout } = await load("./graph-layout.js");
const { FeedStore } = await load("./feed-store.js");
const { followStream, FrameReader } = await load("./run-stream.mjs");
const { clean, duration, size, start } = await load("./format.js");
const { eventText } = await load("./event-text.js");

interface Box {
  readonly members: readonly string[];
  readonly x: number;
  readonly y: number;
}

interface Plan {
  readonly boxes: readonly Box[];
  readonly edges: readonly { readonly from: number; readonly to: number; readonly isBack: boolean }[];
  readonly width: number;
  readonly height: number;
}

describe("the graph's layout", () => {
  const node = (id: string, type = "executor") => ({ id, type });
  const anyGraph = fc.integer({ min: 1, max: 70 }).chain((size) =>
    fc.record({
      nodes: fc.constant(
        Array.from({ length: size }, (_, i) => node(`n${i}`, i % 3 === 0 ? "router" : "executor")),
      ),
      edges: fc.array(
        fc.record({
          from: fc.nat(size - 1).map((i) => `n${i}`),
          to: fc.nat(size).map((i) => `n${i}`),
        }),
        { maxLength: 120 },
      ),
    }),
  );

  test("puts every node into one box, no box on another, and every way on from left to right, or down", () => {
    fc.assert(
      fc.property(anyGraph, ({ nodes, edges }) => {
        const plan: Plan = layout(nodes, edges);
        assert.deepEqual(
          plan.boxes.flatMap(({ members }) => members).sort(),
          nodes.map(({ id }) => id).sort(),
        );
        const places = plan.boxes.map(({ x, y }) => `${x} ${y}`);
        assert.equal(new Set(places).size, places.length);
        for (const { x, y } of plan.boxes) {
          assert.ok(x >= 0 && y >= 0 && x + box.width <= plan.width && y + box.height <= plan.height);
        }
        for (const { from, to, isBack } of plan.edges) {
          assert.equal(plan.boxes[to]!.x > plan.boxes[from]!.x, !isBack);
        }
        const down: Plan = layout(nodes, edges, true);
        for (const { from, to, isBack } of down.edges) {
          assert.equal(down.boxes[to]!.y > down.boxes[from]!.y, !isBack);
        }
        for (const { x, y } of down.boxes) {
          assert.ok(x >= 0 && y >= 0 && x + box.width <= down.width && y + box.height <= down.height);
        }
        assert.deepEqual(layout(nodes, edges), plan);
      }),
    );
  });

  test("of a circle leads back where a reader expects it", () => {
    const plan: Plan = layout(
      [node("in"), node("work"), node("check")],
      [
        { from: "in", to: "work" },
        { from: "work", to: "check" },
        { from: "check", to: "work" },
      ],
    );
    assert.deepEqual(
      plan.edges.filter(({ isBack }) => isBack).map(({ from, to }) => [from, to]),
      [[2, 1]],
    );
  });

  test("puts 500 workers that do the same into one box", () => {
    const workers = Array.from({ length: 500 }, (_, i) => node(`w${i}`));
    const edges = workers.flatMap(({ id }) => [
      { from: "in", to: id },
      { from: id, to: "out" },
    ]);
    const plan: Plan = layout([node("in", "router"), ...workers, node("out", "aggregator")], edges);
    assert.deepEqual(
      plan.boxes.map(({ members }) => members.length),
      [1, 500, 1],
    );
  });

  test("puts each step of thirty ways side by side into one box, and what is different into its own", () => {
    const ways = Array.from({ length: 30 }, (_, i) => i);
    const nodes = [
      node("in", "router"),
      ...ways.flatMap((i) => [node(`a${i}`), node(`b${i}`)]),
      node("other"),
    ];
    const edges = ways.flatMap((i) => [
      { from: "in", to: `a${i}` },
      { from: `a${i}`, to: `b${i}` },
    ]);
    const plan: Plan = layout(nodes, [...edges, { from: "in", to: "other" }]);
    assert.deepEqual(
      plan.boxes.map(({ members }) => members.length),
      [1, 30, 30, 1],
    );
  });

  test("draws a graph in which everything leads to everything, and a long chain, without more boxes than are looked at", () => {
    const many = Array.from({ length: 100 }, (_, i) => node(`n${i}`));
    const dense = many.flatMap(({ id: from }) => many.map(({ id: to }) => ({ from, to })));
    assert.ok((layout(many, dense) as Plan).boxes.length <= 120);
    const chain = Array.from({ length: 5_000 }, (_, i) => node(`n${i}`));
    const links = chain.slice(1).map(({ id }, i) => ({ from: `n${i}`, to: id }));
    const plan: Plan = layout(chain, links);
    assert.equal(plan.boxes.length, 120);
    assert.equal(plan.edges.length, 119);
    assert.deepEqual(
      plan.boxes.flatMap(({ members }) => members),
      chain.map(({ id }) => id),
    );
  });

  test("never draws more boxes than are looked at, whatever the layers and types", () => {
    const wide = fc
      .record({ size: fc.integer({ min: 41, max: 400 }), types: fc.integer({ min: 1, max: 200 }) })
      .chain(({ size, types }) =>
        fc.record({
          nodes: fc.constant(Array.from({ length: size }, (_, i) => node(`n${i}`, `t${i % types}`))),
          // Long chains with a few ways across.
          edges: fc
            .array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 20 })
            .map((across) => [
              ...Array.from({ length: size - 1 }, (_, i) => ({ from: `n${i}`, to: `n${i + 1}` })),
              ...across.map(([from, to]) => ({ from: `n${from}`, to: `n${to}` })),
            ]),
        }),
      );
    fc.assert(
      fc.property(wide, ({ nodes, edges }) => {
        const { boxes }: Plan = layout(nodes, edges);
        assert.ok(boxes.length <= 120, `${boxes.length} boxes`);
        assert.equal(boxes.flatMap(({ members }) => members).length, nodes.length);
      }),
    );
  });
});

describe("the feed's memory", () => {
  const event = (id: number, type = "log", message = `line ${id}`) => ({
    id,
    type,
    agent_id: id % 2 === 0 ? "even" : "odd",
    timestamp: "2026-11-21T09:30:00.000Z",
    payload: { message, level: id % 5 === 0 ? "error" : "info" },
  });
  type Matches = readonly { readonly event: { readonly id: number } }[];
  const ids = (store: { matches: Matches }) => store.matches.map((entry) => entry.event.id);

  test("keeps the latest events, and counts those it has dropped", () => {
    const store = new FeedStore();
    for (let id = 1; id <= 12_000; id++) store.add(event(id), 2, 100);
    assert.ok(store.kept <= 5_500 && store.kept >= 5_000);
    assert.equal(store.kept + store.dropped, 12_000);
    assert.equal(ids(store).at(-1), 12_000);
    assert.equal(ids(store).length, store.kept);
  });

  test("is bounded in characters, too, and keeps an event that is larger than the bound", () => {
    const store = new FeedStore();
    for (let id = 1; id <= 3_000; id++) store.add(event(id), 2, 64 * 1024);
    assert.ok(store.kept <= 256 + 500);
    store.add(event(3_001), 2, 100 * 1024 * 1024);
    store.add(event(3_002), 2, 100);
    assert.equal(ids(store).at(-1), 3_002);
  });

  test("filters events as they come just as those that are there", () => {
    const anyFilter = fc.record({
      level: fc.constantFrom(0, 2, 4),
      type: fc.constantFrom("", "log", "mine"),
      agent: fc.constantFrom("", "odd"),
      text: fc.constantFrom("", "LINE 1", "<b>"),
    });
    fc.assert(
      fc.property(anyFilter, fc.array(fc.constantFrom("log", "mine"), { maxLength: 40 }), (filter, types) => {
        const before = new FeedStore();
        before.setFilter(filter);
        const behind = new FeedStore();
        for (const [i, type] of types.entries()) {
          before.add(event(i + 1, type), i % 5, 100);
          behind.add(event(i + 1, type), i % 5, 100);
        }
        behind.setFilter(filter);
        assert.deepEqual(ids(before), ids(behind));
      }),
    );
  });
});

test("a stream's frames are the same in whatever pieces they come; comments are none", () => {
  const text =
    ': hello\n\nid: 1\nevent: log\ndata: {"id":1}\n\nevent: connection\ndata: {"upstream":"live"}\n\n: beat\n\nid: 2\nevent: job_completed\ndata: {"id":2}\n\n';
  fc.assert(
    fc.property(fc.array(fc.nat(text.length)), (cuts) => {
      const reader = new FrameReader();
      const places = [0, ...cuts.sort((a, b) => a - b), text.length];
      const frames = places.slice(1).flatMap((to, i) => reader.push(text.slice(places[i], to)));
      assert.deepEqual(frames, [
        { id: 1, event: "log", data: '{"id":1}', text: 'id: 1\nevent: log\ndata: {"id":1}\n\n' },
        {
          id: null,
          event: "connection",
          data: '{"upstream":"live"}',
          text: 'event: connection\ndata: {"upstream":"live"}\n\n',
        },
        {
          id: 2,
          event: "job_completed",
          data: '{"id":2}',
          text: 'id: 2\nevent: job_completed\ndata: {"id":2}\n\n',
        },
      ]);
    }),
  );
  assert.throws(() => new FrameReader().push("data: ".padEnd(5_000_000, "x")), RangeError);
});

test("a stream that breaks off is resumed after its last event, and an event that is sent again is passed over", async () => {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers["last-event-id"]);
    const [from, to] = asked.length === 1 ? [1, 3] : [2, 4];
    for (let id = from; id <= to; id++) {
      response.write(`id: ${id}\nevent: ${id === 4 ? "job_completed" : "log"}\ndata: {}\n\n`);
    }
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const ids: number[] = [];
  const ending = await followStream({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    headers: {},
    lastId: 0,
    endings: new Map(),
    signal: new AbortController().signal,
    onLive: () => {},
    onFrames: (frames: readonly { readonly id: number }[]) => void ids.push(...frames.map(({ id }) => id)),
    beforeRetry: async () => true,
  });
  server.close();
  assert.deepEqual([ids, asked, ending], [[1, 2, 3, 4], [undefined, "3"], "ended"]);
});

test("of a file whose server knows no parts no more is read than is shown", async () => {
  const { textBefore } = await load("./outputs-view.js");
  let pulled = 0;
  let isCancelled = false;
  const endless = new ReadableStream({
    pull(controller) {
      pulled++;
      controller.enqueue(new TextEncoder().encode("ä".repeat(1_000)));
    },
    cancel() {
      isCancelled = true;
    },
  });
  assert.equal(await textBefore(endless, 2_500), "ä".repeat(2_500));
  assert.ok(isCancelled && pulled < 20);
});

describe("text from workers", () => {
  test("keeps no control character that a browser or terminal would obey", () => {
    fc.assert(
      fc.property(anyString(), (text) => {
        assert.doesNotMatch(clean(text), /(?![\n\t])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u);
      }),
    );
    assert.equal(clean("\u001b[31mred\u001b[0m\r\n\u202egnp.exe"), "red\n\ufffdgnp.exe");
  });

  test("is cut between characters", () => {
    assert.equal(start("abc", 3), "abc");
    assert.equal(start("ab😀cd", 4), "ab…");
  });

  test("any event has a line of text", () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), fc.jsonValue(), (type, payload, error) => {
        assert.equal(typeof eventText({ type, payload, error }), "string");
      }),
    );
    assert.equal(
      eventText({ type: "sandbox_job_failed", payload: { attempt: 2 }, error: { desc: "No" } }),
      "Attempt 2 failed: No",
    );
  });
});

test("lengths of time and sizes are written as people write them", () => {
  assert.deepEqual([5, 1_250, 42_000, 187_000, 3_729_000, 90_061_000, Number.NaN].map(duration), [
    "5 ms",
    "1.2 s",
    "42 s",
    "3:07",
    "1:02:09",
    "1 day 1:01:01",
    "–",
  ]);
  assert.deepEqual([0, 1_023, 1_536, 10 * 1024 ** 2, 250 * 1024 ** 3].map(size), [
    "0 B",
    "1023 B",
    "1.5 KiB",
    "10.0 MiB",
    "250 GiB",
  ]);
});
