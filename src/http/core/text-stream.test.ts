import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { inPieces, joined, PIECE_CHARS, textStream } from "./text-stream.ts";

function* chunks(count: number, made: (i: number) => void) {
  for (let i = 0; i < count; i++) {
    made(i);
    yield `${i} `;
  }
}

test("everything else has its turn after each chunk of an answer", async () => {
  let turns = 0;
  let timer: NodeJS.Immediate;
  const tick = () => {
    turns++;
    timer = setImmediate(tick);
  };
  timer = setImmediate(tick);
  const turnsAt: number[] = [];
  const sent = await text(textStream(chunks(100, () => turnsAt.push(turns))));
  clearImmediate(timer);
  assert.equal(sent.trim().split(" ").length, 100);
  for (let i = 1; i < turnsAt.length; i++) assert.ok(turnsAt[i]! > turnsAt[i - 1]!, `chunk ${i}`);
});

test("a short answer is one text", async () => {
  async function* few() {
    yield* chunks(3, () => {});
  }
  assert.equal(await joined(few()), "0 1 2 ");
});

test("a long answer is made in turns with everything else, and its pieces are its text, none of them long", async () => {
  let turns = 0;
  let timer: NodeJS.Immediate;
  const tick = () => {
    turns++;
    timer = setImmediate(tick);
  };
  timer = setImmediate(tick);
  const long = Array.from({ length: 40 }, (_, i) => String(i % 10).repeat(10_000));
  const turnsAt: number[] = [];
  function* chunks() {
    for (const chunk of long) {
      turnsAt.push(turns);
      yield chunk;
    }
  }
  const pieces = await inPieces(chunks());
  clearImmediate(timer);
  assert.equal(Buffer.concat(pieces).toString(), long.join(""));
  assert.ok(pieces.length > 1 && pieces.every(({ length }) => length < PIECE_CHARS + 10_000));
  assert.equal(new Set(turnsAt).size, long.length);
});

test("an answer without text has no pieces", async () => {
  assert.deepEqual(await inPieces([]), []);
});
