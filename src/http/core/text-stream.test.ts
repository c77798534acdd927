import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { joined, textStream } from "./text-stream.ts";

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
