// Who gets a place, when there are fewer places than work.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyLimit } from "./concurrency-limit.ts";

/** Work that says when it has begun, and ends when the test lets it. */
function works(limit: ConcurrencyLimit) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    begun,
    add(owner: string, name: string) {
      limit.add(owner, () => {
        begun.push(name);
        return new Promise<void>((resolve) => {
          ends.set(name, resolve);
        });
      });
    },
    async end(name: string) {
      ends.get(name)?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("no owner has more than a quarter of the places, so that slow work leaves room for that of others", () => {
  const { add, begun } = works(new ConcurrencyLimit(8));
  for (let i = 0; i < 100; i++) add("slow", `slow ${i}`);
  add("other", "other 0");
  assert.deepEqual(begun, ["slow 0", "slow 1", "other 0"]);
});

test("owners take turns, and each one's work is done in the order of asking", async () => {
  const { add, begun, end } = works(new ConcurrencyLimit(1));
  for (const name of ["a 0", "a 1", "a 2", "b 0", "c 0", "b 1"]) add(name.slice(0, 1), name);
  for (let i = 0; i < 6; i++) await end(begun.at(-1) ?? "");
  assert.deepEqual(begun, ["a 0", "a 1", "b 0", "c 0", "a 2", "b 1"]);
});

test("all places are used when there are owners enough, and never more", async () => {
  const { add, begun, end } = works(new ConcurrencyLimit(4));
  for (let i = 0; i < 6; i++) add(`owner ${i}`, `work ${i}`);
  assert.equal(begun.length, 4);
  await end("work 2");
  assert.equal(begun.length, 5);
});
