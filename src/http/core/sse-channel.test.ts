// What a channel holds for its readers, and what it lets go of.

import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import { EventFeed } from "../../runs/feed.ts";
import { Channel, type EventView, Reader } from "./sse-channel.ts";

const MIB = 1024 * 1024;

function channels() {
  const feed = new EventFeed();
  const memory = { usedBytes: 0 };
  const open = (jobId: string) => {
    const never = () => assert.fail("a channel reads and renders nothing by itself");
    const view: EventView = { key: jobId, jobId, read: never, exists: never, render: never };
    const channel = new Channel(view, feed, memory, () => {});
    const reader = new Reader(new ServerResponse(new IncomingMessage(new Socket())), channel, 0, () => {});
    channel.readers.add(reader);
    return { channel, reader };
  };
  /** Publishes `count` events of 10,000 characters. */
  const publish = (jobId: string, firstSeq: number, count: number) =>
    feed.published(
      jobId,
      firstSeq,
      Array.from({ length: count }, () => `{"type":"log","payload":"${"x".repeat(10_000)}"}`),
    );
  return { memory, open, publish };
}

test("a channel keeps the newest events up to its bound", () => {
  const { memory, open, publish } = channels();
  const { channel } = open("a");
  for (let seq = 1; seq <= 1_000; seq += 7) publish("a", seq, 7);
  assert.equal(channel.chunkAt(1), null);
  assert.equal(channel.chunkAt(1_001)?.holds(1_001), true);
  assert.ok(memory.usedBytes > MIB / 2 && memory.usedBytes <= MIB, String(memory.usedBytes));
});

test("pages of the store are held beside them, up to a bound of their own", () => {
  const { memory, open, publish } = channels();
  const { channel } = open("a");
  publish("a", 5_001, 200);
  const line = `{"type":"log","payload":"${"x".repeat(10_000)}"}`;
  for (let firstSeq = 1; firstSeq < 2_000; firstSeq += 300) {
    const chunk = channel.keep({ firstSeq, lines: Array.from({ length: 300 }, () => line) });
    assert.equal(chunk.firstSeq, firstSeq);
  }
  assert.equal(channel.chunkAt(1), null);
  assert.equal(channel.chunkAt(1_801)?.firstSeq, 1_801);
  assert.equal(channel.chunkAt(5_200)?.holds(5_200), true);
  assert.ok(memory.usedBytes <= 2 * MIB, String(memory.usedBytes));
});

test("all channels together hold no more than their common bound, and give it back", () => {
  const { memory, open, publish } = channels();
  const opened = Array.from({ length: 100 }, (_, i) => open(`job-${i}`));
  for (let i = 0; i < 100; i++) publish(`job-${i}`, 1, 200);
  assert.ok(memory.usedBytes > 60 * MIB && memory.usedBytes <= 64 * MIB, String(memory.usedBytes));
  for (const { channel } of opened) channel.close();
  assert.equal(memory.usedBytes, 0);
});

test("nothing is kept once every reader has everything", () => {
  const { memory, open, publish } = channels();
  const { channel, reader } = open("a");
  publish("a", 1, 20);
  assert.ok(memory.usedBytes > 0);
  assert.equal(channel.isBehind(19), true);
  assert.equal(channel.isBehind(20), false);
  channel.rest(reader);
  assert.equal(memory.usedBytes, 0);
});

test("memory from which nobody reads is freed, although its readers are behind", () => {
  const { memory, open, publish } = channels();
  const { channel } = open("a");
  publish("a", 1, 20);
  channel.chunkAt(1);
  channel.trim();
  assert.ok(memory.usedBytes > 0);
  channel.trim();
  assert.equal(memory.usedBytes, 0);
});

test("a page that comes when all its readers have left is not kept", () => {
  const { memory, open } = channels();
  const { channel, reader } = open("a");
  channel.leave(reader);
  channel.close();
  channel.keep({ firstSeq: 1, lines: ['{"type":"log"}'] });
  assert.equal(memory.usedBytes, 0);
});
