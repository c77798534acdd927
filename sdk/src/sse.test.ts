// The parser of server-sent events, fed in pieces of any size.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readServerSentEvents } from "./sse.ts";

describe("server-sent events", () => {
  const text =
    "id: 1\r\nevent: a\r\ndata: é\r\ndata: 2\r\n\r\n: comment\n\ndata:bare\n\nid: 9\nevent: cut\ndata: lost";
  const all = [
    { id: "1", type: "a", data: "é\n2" },
    { id: "1", type: "message", data: "bare" },
  ];
  for (const size of [1, 2, 3, 7, 1_000]) {
    test(`are the same in chunks of ${size} bytes, and a cut one is not reported`, async () => {
      assert.deepEqual(await Array.fromAsync(readServerSentEvents(chunks(text, size))), all);
    });
  }
  test("one that never ends is refused", async () => {
    const endless = (async function* () {
      for (;;) yield new TextEncoder().encode("data: ".padEnd(64 * 1024, "x"));
    })();
    await assert.rejects(Array.fromAsync(readServerSentEvents(endless)), /too large/);
  });
  test("one with endless data lines is refused", async () => {
    const line = new TextEncoder().encode(`data: ${"x".repeat(64 * 1024)}\n`);
    const endless = (async function* () {
      for (;;) yield line;
    })();
    await assert.rejects(Array.fromAsync(readServerSentEvents(endless)), /too large/);
  });
});

async function* chunks(text: string, size: number): AsyncGenerator<Uint8Array> {
  const all = new TextEncoder().encode(text);
  for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size);
}
