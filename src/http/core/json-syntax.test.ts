// The scanner agrees with JSON.parse on what is JSON, and says where it ends: cases, and random damage.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { findJsonError } from "./json-syntax.ts";

test("the offset is that of the first character that cannot stand where it stands", () => {
  const cases: readonly (readonly [string, number])[] = [
    ["", 0],
    ["  ", 2],
    ["{", 1],
    ['{"a"', 4],
    ['{"a":1', 6],
    ['{"a":1,}', 7],
    ['{"a":1 "b"', 7],
    ["[1,,2]", 3],
    ["[1 2]", 3],
    ["[1}", 2],
    ["{1:2}", 1],
    ["nul", 0],
    ["01", 1],
    ["1.", 1],
    ["-", 0],
    ['"abc', 4],
    ['"a\nb"', 2],
    ['"\\x"', 1],
    ['"\\u12g4"', 1],
    ["{}x", 2],
    ["\u00a0{}", 0],
  ];
  for (const [text, offset] of cases)
    assert.deepEqual(findJsonError(text, 10), { kind: "syntax", offset }, text);
});

test("nesting is an error from the first bracket too deep, and a whole value at the limit is none", () => {
  assert.equal(findJsonError("[[[]]]", 3), null);
  assert.deepEqual(findJsonError("[[[[]]]]", 3), { kind: "too_deep", offset: 3 });
  assert.deepEqual(findJsonError('{"a":{"b":[{}]}}', 3), { kind: "too_deep", offset: 11 });
});

test("five megabytes of brackets, quotes or escapes are read without recursion", () => {
  for (const part of ["[", '"', "\\", '{"a":', "1,"]) {
    assert.notEqual(findJsonError(part.repeat(5_000_000 / part.length), 100), null);
  }
});

const damaged = fc
  .tuple(
    fc.json({ maxDepth: 5 }),
    fc.nat(),
    fc.nat(3),
    fc.constantFrom("", "{", "}", "[", "]", ",", ":", '"', "\\", "1", "e", " ", "\n", "-", "t"),
  )
  .map(([text, at, cut, insert]) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + insert + text.slice(place + cut);
  });

test("the scanner finds an error exactly where JSON.parse throws, whatever the damage", () => {
  const isJson = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(fc.oneof(damaged, fc.json(), fc.string()), (text) => {
      const error = findJsonError(text, 100);
      assert.equal(error === null, isJson(text));
      // What stands before the error is the beginning of some JSON: no error is found in it before its end.
      if (error !== null)
        assert.ok((findJsonError(text.slice(0, error.offset), 100)?.offset ?? error.offset) <= error.offset);
    }),
    { numRuns: 3_000 },
  );
});
