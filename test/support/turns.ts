// Turns of the event loop while something is done: long work that is cut into slices lets it turn. The time that slices
// look at is the test's own.

import type { TestContext } from "node:test";

/** Makes each look at the clock find the slice over. */
export function endEachSlice(t: TestContext): void {
  let nowMs = 1_000;
  t.mock.method(performance, "now", () => {
    nowMs += 10;
    return nowMs;
  });
}

/** Counts turns of the event loop until it is disposed of. */
export function countTurns(): { readonly turns: number } & Disposable {
  const counted = { turns: 0, [Symbol.dispose]: () => clearImmediate(immediate) };
  const count = () => {
    counted.turns++;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  return counted;
}
