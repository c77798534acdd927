import assert from "node:assert/strict";
import { test } from "node:test";
import { interruptGate } from "./interrupts.ts";

test("repeats within half a second of the first Ctrl-C belong to it", () => {
  const gate = interruptGate();
  assert.deepEqual([1_000, 1_002, 1_499].map(gate), ["first", "repeat", "repeat"]);
});

test("a later one is the second, however many echoes came before", () => {
  const gate = interruptGate();
  assert.deepEqual([1_000, 1_002, 1_500, 1_501].map(gate), ["first", "repeat", "second", "second"]);
});
