import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { testCall } from "../../test/support/test-call.ts";
import type { JsonObject } from "../engine/json.ts";
import { readTarget } from "./bundles.ts";
import { UsageError } from "./command.ts";
import { readObject, withInputs, withSettings } from "./input.ts";

test("a value that is JSON is that JSON, any other one a text", () => {
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

test("a dot goes one level deeper, and a dot in a name has a backslash", () => {
  const base: JsonObject = { documents: { folder: "/a", depth: 1 }, other: 1 };
  const found = withSettings(base, ["documents.folder=/srv/my docs", "new.a.b=1", "new.a.c=2", "v1\\.2=x"]);
  assert.deepEqual(found, {
    documents: { folder: "/srv/my docs", depth: 1 },
    other: 1,
    new: { a: { b: 1, c: 2 } },
    "v1.2": "x",
  });
  assert.deepEqual(base, { documents: { folder: "/a", depth: 1 }, other: 1 });
  assert.deepEqual(withSettings({ list: [1, { a: 2 }] }, ["list.1.a=3"]), { list: [1, { a: 3 }] });
});

test("what is no setting, and what goes through a plain value, is refused by name", () => {
  for (const setting of ["", "a", "=1", "a.=1", ".a=1", "a..b=1", "__proto__.x=1", "a.__proto__=1"]) {
    assert.throws(() => withSettings({}, [setting]), UsageError, setting);
  }
  assert.throws(() => withSettings({}, ["a=1", "a.b=2"]), /"a\.b=2": the path goes through a value/);
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

test("inputs replace a manifest's own: one body for every entrypoint, or lists by name", () => {
  const manifest = { entrypoints: ["a", "b"], initial_inputs: { a: [1] } };
  assert.deepEqual(withInputs(manifest, { n: 1 }).initial_inputs, { a: [{ n: 1 }], b: [{ n: 1 }] });
  assert.deepEqual(withInputs(manifest, { $entrypoints: { b: [2, 3] } }).initial_inputs, {
    a: [1],
    b: [2, 3],
  });
  assert.deepEqual(withInputs(manifest, {}), manifest);
  assert.throws(() => withInputs(manifest, { $entrypoints: { b: [2] }, n: 1 }), /"n" beside \$entrypoints/);
  assert.throws(() => withInputs(manifest, { $entrypoints: [2] }), /must be an object/);
});

describe("files of the user", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-input-"));
  after(() => rmSync(folder, { recursive: true }));
  const put = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  test("what a command runs is a folder, a zip, whatever it is called, or a manifest", () => {
    const target = (path: string) => readTarget(testCall({}, [path]));
    assert.deepEqual(target(folder), { kind: "folder", path: folder });
    const zip = put("bundle", "PK\x03\x04");
    assert.deepEqual(target(zip), { kind: "zip", path: zip });
    const manifest = put("manifest", '{"entrypoints":["a"]}');
    assert.deepEqual(target(manifest), {
      kind: "manifest",
      path: manifest,
      manifest: { entrypoints: ["a"] },
    });
  });

  const read = (option: string, content: string | Uint8Array) => () =>
    readObject(testCall({ [option]: put(`${option}.json`, content) }), option);
  const target = (name: string, content: string | Uint8Array) => () =>
    readTarget(testCall({}, [put(name, content)]));
  const refused: readonly (readonly [string, () => unknown, RegExp])[] = [
    [
      "a path that is not there",
      () => readTarget(testCall({}, [join(folder, "nothing")])),
      /does not exist; give the folder of a bundle, a zip of it, or a manifest/,
    ],
    ["text that is not JSON", target("x.json", "{"), /x\.json is not valid JSON: .*/],
    ["bytes that are no text", target("y.json", new Uint8Array([0xff, 0xfe])), /y\.json is not UTF-8/],
    [
      "JSON that nests too deep",
      target("z.json", "[".repeat(200) + "]".repeat(200)),
      /nests deeper than 100/,
    ],
    ["a manifest that is a list", target("l.json", "[]"), /not a manifest/],
    ["a configuration that is a list", read("config", "[]"), /--config: .* does not hold a JSON object/],
    ["an input that is no object", read("input", "3"), /--input: .* does not hold a JSON object/],
    [
      "an input that is not there",
      () => readObject(testCall({ input: join(folder, "none.json") }), "input"),
      /none\.json cannot be read/,
    ],
    [
      "JSON in place of a file",
      () => readObject(testCall({ input: '{"a": 1}' }), "input"),
      /is JSON, and a file is wanted/,
    ],
  ];
  for (const [name, act, message] of refused) {
    test(`refused: ${name}`, () => void assert.throws(act, { name: "UsageError", message }));
  }
});
