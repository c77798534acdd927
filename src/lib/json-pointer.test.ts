import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { pointerKeys, valueAt } from "./json-pointer.ts";

const document = { foo: ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, nested: { deep: { x: null } } };
const at = (pointer: string) => valueAt(document, pointerKeys(pointer) ?? assert.fail(pointer));

test("a pointer finds what RFC 6901 says", () => {
  assert.equal(at(""), document);
  assert.equal(at("/foo"), document.foo);
  assert.deepEqual(["/foo/1", "/", "/a~1b", "/m~0n", "/nested/deep/x"].map(at), ["baz", 0, 1, 8, null]);
});

test("a pointer to nothing finds nothing, also where a text or a prototype has such a key", () => {
  for (const pointer of [
    "/none",
    "/foo/2",
    "/foo/01",
    "/foo/-",
    "/foo/length",
    "/foo/0/0",
    "/toString",
    "/nested/deep/x/y",
  ])
    assert.equal(at(pointer), undefined, pointer);
});

test("a text that is no pointer is told", () => {
  for (const text of ["foo", "foo/bar", "/~", "/~2", "/a~"]) assert.equal(pointerKeys(text), null, text);
});

test("every value is found by the keys on the way to it", () => {
  const key = fc.string();
  fc.assert(
    fc.property(fc.array(key, { maxLength: 5 }), fc.jsonValue(), (keys, value) => {
      const document = keys.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
      const pointer = keys.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
      if (!keys.includes("__proto__")) assert.equal(valueAt(document, pointerKeys(pointer) ?? []), value);
    }),
  );
});
