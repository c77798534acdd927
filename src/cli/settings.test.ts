import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import type { JsonObject } from "../engine/json.ts";
import { UsageError } from "./command.ts";
import { withSettings } from "./settings.ts";

test("a value that is JSON is that JSON, any other one a text (N1)", () => {
  const settings = ["n=3", "t=Ghent", "b=true", "l=[1,2]", "o={}", 'q="3"', "e=", "eq=a=b", "z=null"];
  assert.deepEqual(withSettings({}, settings), {
    n: 3,
    t: "Ghent",
    b: true,
    l: [1, 2],
    o: {},
    q: "3",
    e: "",
    eq: "a=b",
    z: null,
  });
});

test("a dot goes one level deeper, and a dot in a name has a backslash (N2)", () => {
  const base: JsonObject = { documents: { folder: "/a", depth: 1 }, other: 1 };
  const found = withSettings(base, ["documents.folder=/srv/my docs", "new.a.b=1", "new.a.c=2", "v1\\.2=x"]);
  assert.deepEqual(found, {
    documents: { folder: "/srv/my docs", depth: 1 },
    other: 1,
    new: { a: { b: 1, c: 2 } },
    "v1.2": "x",
  });
  assert.deepEqual(base, { documents: { folder: "/a", depth: 1 }, other: 1 });
});

test("what is no setting, and what goes through a plain value, is refused by name", () => {
  for (const setting of ["", "a", "=1", "a.=1", ".a=1", "a..b=1", "__proto__.x=1", "a.__proto__=1"]) {
    assert.throws(() => withSettings({}, [setting]), UsageError, setting);
  }
  assert.throws(() => withSettings({}, ["a=1", "a.b=2"]), /"a\.b=2": "a" is a value already/);
});

test("what is set is what is there, and nothing else changes", () => {
  const name = fc.stringMatching(/^[a-z]{1,4}$/);
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), fc.jsonValue(), (path, value) => {
      const found = withSettings({ Kept: 1 }, [`${path.join(".")}=${JSON.stringify(value)}`]);
      const reached = path.reduce<unknown>((at, part) => (at as JsonObject)[part], found);
      assert.deepEqual(reached, JSON.parse(JSON.stringify(value)));
      assert.equal(found.Kept, 1);
      assert.deepEqual(Object.keys(found).length, 2);
    }),
  );
});
