// Stored JSON is read whole, large or small, however deep.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LARGE_JSON_CHARS } from "../engine/large-json.ts";
import { storedObject } from "./stored-json.ts";

test("a stored object is read, and others have their turn while a large one is", async (t) => {
  let nowMs = 0;
  // Every slice is over at once.
  t.mock.method(performance, "now", () => (nowMs += 10));
  let turns = 0;
  const others = () => {
    turns++;
    if (turns < 1_000) setImmediate(others);
  };
  setImmediate(others);
  const small = { deep: JSON.parse("[".repeat(200) + "]".repeat(200)) as unknown };
  assert.deepEqual(await storedObject(JSON.stringify(small)), small);
  const before = turns;
  const large = { ...small, list: Array.from({ length: LARGE_JSON_CHARS / 2 }, (_, n) => ({ n })) };
  assert.deepEqual(await storedObject(JSON.stringify(large)), large);
  assert.ok(turns > before + 8, `${turns - before} turns`);
  turns = 1_000;
});
