// The stream of a job's events to another node, over real sockets and by itself.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { peersWith, startNode } from "../../../test/support/nodes.ts";
import { until } from "../../../test/support/until.ts";
import { newsFromWire, type WatchNews, WatchQueue } from "./watch.ts";

const never = new AbortController().signal;

async function taken(queue: WatchQueue): Promise<WatchNews[]> {
  const news: WatchNews[] = [];
  for await (const message of queue.messages()) {
    const one = newsFromWire(message);
    if (one !== null) news.push(one);
  }
  return news;
}

describe("events for another node", () => {
  test("come in order, and the stream ends behind the job's end", async () => {
    const queue = new WatchQueue(never);
    queue.push({ firstSeq: 4, lines: ["a", "b"] }, false);
    queue.push({ firstSeq: 6, lines: ["c"] }, true);
    assert.deepEqual(await taken(queue), [
      { firstSeq: 4, lines: ["a", "b"], isEnd: false },
      { firstSeq: 6, lines: ["c"], isEnd: true },
    ]);
  });

  test("are cut into messages of a bounded size; what fits into none is left out, and told", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 700_000 }), { minLength: 1, maxLength: 3 }),
        async (sizes) => {
          const queue = new WatchQueue(never);
          const lines = sizes.map((size, i) => String(i).repeat(size));
          queue.push({ firstSeq: 3, lines }, true);
          const news = await taken(queue);
          const last = news.at(-1)!;
          assert.equal(last.firstSeq + last.lines.length, 3 + lines.length);
          assert.deepEqual(
            news.map(({ isEnd }) => isEnd),
            news.map((_, i) => i === news.length - 1),
          );
          for (const { firstSeq, lines: some } of news) {
            assert.ok(some.join("").length <= 512 * 1024);
            assert.deepEqual(some, lines.slice(firstSeq - 3, firstSeq - 3 + some.length));
          }
          const sent = news.flatMap(({ lines: some }) => some).length;
          assert.equal(sent, lines.filter((line) => line.length <= 512 * 1024).length);
        },
      ),
      { numRuns: 30 },
    ));

  test("are dropped when nobody takes them, and how far they go is told", async () => {
    const queue = new WatchQueue(never);
    const line = "x".repeat(500_000);
    for (let seq = 1; seq <= 9; seq++) queue.push({ firstSeq: seq, lines: [line] }, seq === 9);
    const news = await taken(queue);
    assert.ok(news.flatMap(({ lines }) => lines).length <= 4);
    const { firstSeq, lines, isEnd } = news.at(-1)!;
    assert.deepEqual([firstSeq + lines.length - 1, isEnd], [9, true]);
    assert.equal(news[0]!.lines.length, 0);
  });

  test("end with the reader", async () => {
    const reader = new AbortController();
    const queue = new WatchQueue(reader.signal);
    const reading = taken(queue);
    reader.abort();
    assert.deepEqual(await reading, []);
  });
});

describe("a stream between nodes", () => {
  test("begins before the first event that it may miss, and nobody listens when it is over", async () => {
    await using node = await startNode();
    using peers = peersWith();
    const reader = new AbortController();
    const asked = { owner: node.owner, jobId: "j" };
    const got: (WatchNews | null)[] = [];
    const stream = peers.stream(node.address, reader.signal, (client, options) =>
      client.watch(asked, options),
    );
    const read = async () => {
      for await (const message of stream) {
        got.push(newsFromWire(message));
        if (got.length === 1) node.feed.published("j", 7, ["a"]);
        if (got.length === 2) reader.abort(new Error("enough"));
      }
    };
    await assert.rejects(read(), /enough/);
    assert.deepEqual(got, [null, { firstSeq: 7, lines: ["a"], isEnd: false }]);
    await until("nobody listens", () => !node.feed.isListened("j"));
  });

  test("is refused by a node that does not hold the job", async () => {
    await using node = await startNode();
    node.engine.isHolding = false;
    using peers = peersWith();
    const asked = { owner: node.owner, jobId: "j" };
    const stream = peers.stream(node.address, never, (client, options) => client.watch(asked, options));
    await assert.rejects(stream.next(), { name: "PeerUnreachable" });
  });

  test("ends with an error when the node dies", async () => {
    const node = await startNode();
    using peers = peersWith();
    const asked = { owner: node.owner, jobId: "j" };
    const stream = peers.stream(node.address, never, (client, options) => client.watch(asked, options));
    await stream.next();
    const next = assert.rejects(stream.next(), { name: "PeerUnreachable" });
    await node.close();
    await next;
  });
});
