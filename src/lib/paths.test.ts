import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { folderName, isInside, joinInside } from "./paths.ts";

describe("paths", () => {
  it("keeps plain ids as folder names", () => {
    for (const id of ["worker", "run_01jx", "a-b_c"]) assert.equal(folderName(id), id);
  });

  it("makes a safe folder name of any id, different from that of any other id", () => {
    const ids = [
      "..",
      ".",
      "",
      "a/b",
      "a\\b",
      "Worker",
      "worker",
      "ä",
      "-x",
      "a".repeat(200),
      "con\0",
      "../../etc",
    ];
    const names = ids.map(folderName);
    assert.equal(new Set(names.map((name) => name.toLowerCase())).size, ids.length);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string(), (a, b) => {
        assert.match(folderName(a), /^[a-z0-9-]*~?[a-z0-9_-]+$/);
        if (a !== b) assert.notEqual(folderName(a), folderName(b));
      }),
    );
  });

  it("refuses paths that leave their root", () => {
    for (const path of ["..", "../x", "a/../../x", "/etc/passwd", "a\0b"]) {
      assert.equal(joinInside("/root", path), null, path);
    }
    assert.equal(joinInside("/root", "a/../b"), "/root/b");
    assert.equal(joinInside("/root", "..a"), "/root/..a");
    assert.equal(joinInside("/root", "."), "/root");
    assert.equal(joinInside("/root", "a/"), "/root/a");
  });

  it("knows what lies inside", () => {
    assert.ok(isInside("/a", "/a"));
    assert.ok(isInside("/a", "/a/..b"));
    assert.ok(!isInside("/a", "/ab"));
    assert.ok(!isInside("/a/b", "/a"));
  });
});
