// The order of the layers, and values that a form has left blank.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mergedLayers, withoutBlanks } from "./resolved-launch.ts";

test("a higher layer wins, key by key; lists and null replace", () => {
  const layers = [
    { a: { x: 1, y: 1, z: 1 }, list: [1, 2], gone: 1 },
    { a: { y: 2, z: 2 }, list: [3] },
    { a: { z: 3 }, gone: null },
  ];
  assert.deepEqual(mergedLayers(layers), { a: { x: 1, y: 2, z: 3 }, list: [3], gone: null });
});

test("a blank value does not hide that of the highest lower layer", () => {
  const layers = [
    { documents: { folder: "shipped" }, note: "kept" },
    { documents: { folder: "/home/me" } },
    { documents: { folder: "  " }, note: "" },
  ];
  const filled = withoutBlanks(layers, mergedLayers(layers), ["documents.folder"]);
  assert.deepEqual(filled, { documents: { folder: "/home/me" }, note: "" });
});

test("a section that was blanked gets the path back, and a value that is set is not touched", () => {
  for (const blank of [null, "", "  "]) {
    const layers = [{ documents: { folder: "shipped" } }, { documents: blank }];
    assert.deepEqual(withoutBlanks(layers, mergedLayers(layers), ["documents.folder"]), {
      documents: { folder: "shipped" },
    });
  }
  const standing = [{ folder: "low" }, { folder: "high" }];
  assert.deepEqual(withoutBlanks(standing, mergedLayers(standing), ["folder"]), { folder: "high" });
});

test("a path that is blank everywhere stays blank", () => {
  const layers = [{ folder: null }, { folder: "" }];
  assert.deepEqual(withoutBlanks(layers, mergedLayers(layers), ["folder"]), { folder: "" });
});
