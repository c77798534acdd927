import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "./histogram.ts";

test("a value falls into the bucket whose bound it does not pass, and buckets are cumulative", () => {
  const histogram = new Histogram([1, 2.5, 10]);
  for (const value of [0, 1, 1.1, 2.5, 10, 11]) histogram.observe(value);
  assert.deepEqual(histogram.snapshot(), { count: 6, sum: 25.6, cumulative: [2, 4, 5] });
});
