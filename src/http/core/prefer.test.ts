import assert from "node:assert/strict";
import { test } from "node:test";
import { waitSeconds } from "./prefer.ts";

const cases: readonly (readonly [header: string | undefined, seconds: number])[] = [
  [undefined, 0],
  ["", 0],
  ["wait=10", 10],
  ["WAIT=10", 10],
  ["  wait = 10  ", 10],
  ['wait="10"', 10],
  ['wait="1\\0"', 10],
  ["wait=10; for=me", 10],
  ["respond-async, wait=7", 7],
  ["respond-async, wait=7;strict, handling=lenient", 7],
  ['note="a, wait=3", wait=4', 4],
  ['note="a \\" , wait=3", wait=4', 4],
  ["note=x; wait=3", 0],
  ["waits=3, await=3", 0],
  ["wait=5, wait=9", 5],
  ["wait=soon, wait=9", 0],
  ["wait=0", 0],
  ["wait=60", 60],
  ["wait=61", 60],
  ["wait=99999999999999999999999999", 60],
  ["wait", 0],
  ["wait=", 0],
  ['wait=""', 0],
  ["wait=-1", 0],
  ["wait=1.5", 0],
  ["wait=1e1", 0],
  ["wait=0x10", 0],
  ["wait=10=10", 0],
  ["wait=١٠", 0],
  ['wait="10', 0],
  ['"wait=10', 0],
  [";;,,==", 0],
  [`${",".repeat(16_000)}wait=3`, 3],
  [`${'"\\'.repeat(8_000)}wait=3`, 0],
];

test("of Prefer the first wait counts if it is a whole number, up to 60; everything else is ignored", () => {
  for (const [header, seconds] of cases)
    assert.equal(waitSeconds(header), seconds, String(header).slice(0, 80));
});
