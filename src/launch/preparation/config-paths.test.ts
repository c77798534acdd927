// Dotted paths: what is written is read back, nothing else changes, and no path reaches what is not the value's own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import type { JsonObject, JsonValue } from "../../engine/json.ts";
import { partsOf } from "../../lib/text.ts";
import { blanksTakenAt, canSetAt, isBlank, pointerOf, valueAt, withValuesAt } from "./config-paths.ts";

const withValueAt = (base: JsonObject, path: string, value: JsonValue) =>
  withValuesAt(base, [{ path, value }]);
const escaped = (part: string) => part.replaceAll("\\", "\\\\").replaceAll(".", "\\.");
const part = fc.string({ minLength: 1, maxLength: 6 }).filter((text) => text !== "__proto__");
const path = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.map(escaped).join("."));

test("a path is read back as the parts it was made of", () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
      assert.deepEqual(partsOf(parts.map(escaped).join(".")), parts);
    }),
  );
});

test("a value that was put at a path is found there, and is gone as a blank that is taken away", () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 3 }), path, fc.jsonValue(), (base, at, value) => {
      const before = JSON.parse(JSON.stringify(base)) as JsonObject;
      const copy = structuredClone(before);
      const changed = withValueAt(before, at, value as never);
      assert.deepEqual(before, copy, "the original stays as it was");
      assert.equal(canSetAt(before, at), changed !== before);
      if (changed === before) return;
      assert.deepEqual(valueAt(changed, at), value);
      const blank = withValueAt(before, at, " ");
      assert.equal(valueAt(blanksTakenAt([at])(blank), at), undefined);
    }),
  );
});

test("items of lists are addressed by their index, and only those that are there", () => {
  const configuration = { folders: [{ path: "a" }, { path: "b" }] };
  assert.equal(valueAt(configuration, "folders.1.path"), "b");
  assert.deepEqual(withValueAt(configuration, "folders.1.path", "c"), {
    folders: [{ path: "a" }, { path: "c" }],
  });
  assert.equal(withValueAt(configuration, "folders.2.path", "c"), configuration);
  assert.equal(valueAt(configuration, "folders.01.path"), undefined);
  assert.equal(valueAt(configuration, "folders.length"), undefined);
});

test("no path leads into what a value inherits, and none changes a prototype", () => {
  for (const at of ["__proto__.polluted", "a.__proto__.polluted", "", ".", "a..b"]) {
    assert.equal(partsOf(at), null, at);
    assert.equal(valueAt({ a: {} }, at), undefined);
    const configuration = { a: {} };
    assert.equal(withValueAt(configuration, at, 1), configuration);
  }
  assert.equal(valueAt({}, "constructor.name"), undefined);
  withValueAt({}, "constructor.prototype.polluted", true);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("a path through a text changes nothing; a blank one is nothing", () => {
  const configuration = { documents: "here" };
  assert.equal(withValueAt(configuration, "documents.folder", "x"), configuration);
  assert.deepEqual(withValueAt({ documents: " " }, "documents.folder", "x"), { documents: { folder: "x" } });
});

test("what is blank on the way to a path goes with it; values and the items of lists stay", () => {
  const at = (base: JsonObject, path = "documents.folder") => blanksTakenAt([path])(base);
  assert.deepEqual(at({ documents: "", note: "" }), { note: "" });
  assert.deepEqual(at({ documents: null }), {});
  assert.deepEqual(at({ documents: { folder: " ", depth: 1 } }), { documents: { depth: 1 } });
  for (const standing of [{ documents: { folder: "x" } }, { documents: "x" }, { other: "" }, {}]) {
    assert.deepEqual(at(standing), standing);
  }
  assert.deepEqual(at({ list: ["", { a: "" }] }, "list.0"), { list: ["", { a: "" }] });
  assert.deepEqual(at({ list: ["", { a: "" }] }, "list.1.a"), { list: ["", {}] });
});

test("many paths change what one after the other would", () => {
  const value = fc.oneof(fc.constant(" "), fc.jsonValue());
  const settings = fc.array(fc.tuple(path, value), { maxLength: 6 });
  fc.assert(
    fc.property(fc.object({ maxDepth: 3 }), settings, (base, given) => {
      const before = JSON.parse(JSON.stringify(base)) as JsonObject;
      const changes = given.map(([at, put]) => ({ path: at, value: put as never }));
      const copies = structuredClone([before, changes]);
      const changed = withValuesAt(before, changes);
      const paths = changes.map((one) => one.path);
      const cleaned = blanksTakenAt(paths)(changed);
      assert.deepEqual([before, changes], copies, "the originals stay as they were");
      const inTurn = changes.reduce((one, { path: at, value: put }) => withValueAt(one, at, put), before);
      assert.deepEqual(changed, inTurn);
      assert.deepEqual(
        cleaned,
        paths.reduce((one, at) => blanksTakenAt([at])(one), changed),
      );
    }),
  );
});

test("a hundred thousand paths, and an object of as many keys: minutes, if each path cost what the object does", () => {
  const paths = Array.from({ length: 100_000 }, (_, i) => `setting_${i}`);
  const object = Object.fromEntries(paths.map((at) => [at, "x"]));
  const changed = withValuesAt(
    object,
    paths.map((at) => ({ path: at, value: "y" })),
  );
  const clean = blanksTakenAt(paths);
  for (let i = 0; i < 10_000; i++) clean({});
  assert.deepEqual(new Set(Object.values(clean(changed))), new Set(["y"]));
});

test("a pointer names the same place", () => {
  assert.equal(pointerOf("documents.folder"), "/documents/folder");
  assert.equal(pointerOf("a\\.b.c/d.e~f"), "/a.b/c~1d/e~0f");
});

test("nothing, an empty text and spaces are blank; false and 0 are not", () => {
  for (const value of [undefined, null, "", "  \n"]) assert.equal(isBlank(value), true);
  for (const value of [false, 0, "x", [], {}]) assert.equal(isBlank(value), false);
});
