// Merge patches of the console, held against the server's own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mergePatch } from "../../../bundles/merge.ts";

const { patched, patchOf } = await import(new URL("./merge-patch.js", import.meta.url).href);

const before = JSON.parse(
  '{"same": [1], "list": [1, 2], "deep": {"kept": 1, "gone": 2, "key": {"$env": "KEY"}}, "gone": {}, "__proto__": {"a": 1}}',
);

test("a patch brings one value to another, the same here and at the server", () => {
  const after = JSON.parse(
    '{"same": [1], "list": [2], "deep": {"kept": 1, "key": {"$env": "OTHER"}, "more": {"x": {}}}, "__proto__": {"a": 2}, "constructor": 1}',
  );
  const patch = patchOf(before, after);
  assert.deepEqual(patch.deep, { gone: null, key: { $env: "OTHER" }, more: { x: {} } });
  assert.equal(Object.hasOwn(patch, "same"), false);
  assert.equal(JSON.stringify(mergePatch(before, patch)), JSON.stringify(patched(before, patch)));
  assert.deepEqual(mergePatch(before, patch), after);
  assert.deepEqual(patchOf(before, before), {});
});

test("what was changed is laid over what has changed meanwhile", () => {
  const patch = patchOf({ a: 1, deep: { b: 1, c: 1 } }, { a: 2, deep: { b: 1 } });
  assert.deepEqual(patched({ a: 3, deep: { b: 4, c: 5, d: 6 } }, patch), { a: 2, deep: { b: 4, d: 6 } });
});

test("a reference to a variable is one value, and gives way to an object as a whole", () => {
  const patch = patchOf({ key: { $env: "KEY" } }, { key: { of: "me" } });
  assert.deepEqual(mergePatch({ key: { $env: "KEY" } }, patch), { key: { of: "me" } });
});
