// JSON merge patch: the examples of RFC 7396 that are about objects, and what configurations add.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject, JsonValue } from "../engine/json.ts";
import { mergePatch } from "./merge.ts";

const examples: readonly (readonly [JsonValue, JsonObject, JsonObject])[] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

for (const [target, patch, result] of examples) {
  test(`RFC 7396: ${JSON.stringify(target)} with ${JSON.stringify(patch)}`, () => {
    assert.deepEqual(mergePatch(target, patch), result);
  });
}

test("a reference to a variable is replaced whole, and replaces whole", () => {
  const reference = { $env: "HOME" };
  assert.deepEqual(mergePatch({ a: { x: 1 } }, { a: reference }), { a: reference });
  assert.deepEqual(mergePatch({ a: reference }, { a: { x: 1 } }), { a: { x: 1 } });
});

test("a key like __proto__ is only a key", () => {
  const patch = JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as JsonObject;
  const merged = mergePatch({}, patch);
  assert.deepEqual(Object.keys(merged), ["__proto__", "constructor"]);
  assert.equal(Object.getPrototypeOf(merged), Object.prototype);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("neither the target nor the patch is changed", () => {
  const target = { a: { b: 1 } };
  const patch = { a: { c: 2 } };
  mergePatch(target, patch);
  assert.deepEqual([target, patch], [{ a: { b: 1 } }, { a: { c: 2 } }]);
});
