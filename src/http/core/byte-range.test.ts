// The Range header: which part it asks for, of a file of 10 bytes and of an empty one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type RangeRequest, readRange } from "./byte-range.ts";

const part = (first: number, last: number): RangeRequest => ({ kind: "part", first, last });
const whole: RangeRequest = { kind: "whole" };
const unsatisfiable: RangeRequest = { kind: "unsatisfiable" };

test("one range is the part it names, as far as the file goes", () => {
  const table: readonly [string, RangeRequest][] = [
    ["bytes=0-0", part(0, 0)],
    ["bytes=2-5", part(2, 5)],
    ["bytes=9-", part(9, 9)],
    ["bytes=0-", part(0, 9)],
    ["bytes=4-999999999999999", part(4, 9)],
    ["bytes=-3", part(7, 9)],
    ["bytes=-99", part(0, 9)],
    ["Bytes = 2 - 5", part(2, 5)],
  ];
  for (const [header, expected] of table) assert.deepEqual(readRange(header, 10), expected, header);
});

test("a range that lies outside the file cannot be had", () => {
  for (const header of ["bytes=10-", "bytes=10-12", "bytes=-0"]) {
    assert.deepEqual(readRange(header, 10), unsatisfiable, header);
  }
  for (const header of ["bytes=0-", "bytes=0-0", "bytes=-1"]) {
    assert.deepEqual(readRange(header, 0), unsatisfiable, header);
  }
});

test("what is no single range of bytes asks for the whole", () => {
  assert.deepEqual(readRange(undefined, 10), whole);
  const headers = [
    "",
    "bytes=",
    "bytes=-",
    "bytes=5-2",
    "bytes=0-1,4-5",
    "items=0-1",
    "bytes=a-b",
    "bytes=0x1-2",
    "bytes=1-1e3",
    `bytes=${"9".repeat(1_000)}-`,
  ];
  for (const header of headers) assert.deepEqual(readRange(header, 10), whole, header);
});
