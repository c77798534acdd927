// The stream of bytes between nodes: what comes is what was sent, or an error.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { bytesFromWire, bytesToWire } from "./bytes.ts";
import type { FetchBytesResponse } from "./gen/svc/node/v1/node_pb.ts";

const pieces = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });

const sent = (chunks: readonly Uint8Array[]) =>
  Array.fromAsync(bytesToWire({ madeAtMs: 7, bytes: stream(chunks) }, new AbortController().signal));

async function* stream<One>(all: Iterable<One>): AsyncGenerator<One> {
  yield* all;
}

async function received(messages: readonly FetchBytesResponse[]) {
  const { madeAtMs, bytes } = await bytesFromWire(stream(messages));
  return { madeAtMs, content: Buffer.concat(await Array.fromAsync(bytes)) };
}

const wrong = { name: "WrongBytes" };

describe("bytes on their way to another node", () => {
  test("are the same there, however they were cut", () =>
    fc.assert(
      fc.asyncProperty(pieces, async (chunks) => {
        assert.deepEqual(await received(await sent(chunks)), { madeAtMs: 7, content: Buffer.concat(chunks) });
      }),
    ));

  test("travel in messages of a bounded size", async () => {
    const content = Buffer.alloc(1_000_000, "some bytes");
    const messages = await sent([content]);
    for (const { part } of messages) assert.ok(part.case !== "chunk" || part.value.length <= 256 * 1024);
    assert.deepEqual((await received(messages)).content, content);
  });

  test("are refused when they are cut off, wherever that is", () =>
    fc.assert(
      fc.asyncProperty(pieces, fc.nat(), async (chunks, cut) => {
        const messages = await sent(chunks);
        await assert.rejects(received(messages.slice(0, cut % messages.length)), wrong);
      }),
    ));

  test("are refused when a part of them is changed, missing, or comes twice", () =>
    fc.assert(
      fc.asyncProperty(
        pieces.filter((chunks) => chunks.some(({ length }) => length > 0)),
        fc.nat(),
        fc.constantFrom("changed", "missing", "twice", "begun again"),
        async (chunks, which, fault) => {
          const messages = await sent(chunks);
          const places = [...messages.keys()].filter((at) => messages[at]?.part.case === "chunk");
          const at = places[which % places.length]!;
          const { part } = messages[at]!;
          assert.ok(part.case === "chunk");
          if (fault === "changed") part.value[0]! ^= 1;
          else if (fault === "missing") messages.splice(at, 1);
          else messages.splice(at, 0, messages[fault === "twice" ? at : 0]!);
          await assert.rejects(received(messages), wrong);
        },
      ),
    ));
});
