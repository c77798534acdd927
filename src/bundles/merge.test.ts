import assert from "node:assert/strict";
import { test } from "node:test";
import { merged } from "./merge.ts";

test("objects are merged key by key, and everything else is replaced", () => {
  const base = { a: { b: 1, c: [1, 2] }, d: { e: 1 }, f: 1, g: { h: 1 } };
  const over = { a: { b: 2, c: [3] }, d: 5, f: { x: 1 }, g: null, i: true };
  assert.deepEqual(merged(base, over), { a: { b: 2, c: [3] }, d: 5, f: { x: 1 }, g: null, i: true });
  assert.deepEqual(base.a.c, [1, 2]);
});

test("a reference to a variable replaces and is replaced whole, and looks like one only with no other key", () => {
  const home = { $env: "HOME" };
  assert.deepEqual(merged({ a: { x: 1 }, b: home, c: home }, { a: home, b: { x: 1 }, c: { $env: "PATH" } }), {
    a: home,
    b: { x: 1 },
    c: { $env: "PATH" },
  });
  assert.deepEqual(merged({ deep: { a: home } }, { deep: { b: 1 } }), { deep: { a: home, b: 1 } });
  assert.deepEqual(merged({ a: { x: 1 } }, { a: { $env: "HOME", y: 2 } }), {
    a: { x: 1, $env: "HOME", y: 2 },
  });
});

test("a key named __proto__ is only a key", () => {
  const result = merged({}, JSON.parse('{"__proto__":{"polluted":true},"a":1}'));
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(JSON.stringify(result), '{"__proto__":{"polluted":true},"a":1}');
});
