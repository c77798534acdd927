import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { OpenFolder, SymlinkInPath } from "./open-folder.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-folder-"));
after(() => rmSync(root, { recursive: true, force: true }));
mkdirSync(join(root, "own/below"), { recursive: true });
mkdirSync(join(root, "others/below"), { recursive: true });
symlinkSync(join(root, "others"), join(root, "link"));
symlinkSync(join(root, "others"), join(root, "own/link"));

for (const way of ["link", "own/link", "link/below", "own/link/below"]) {
  test(`no symlink is followed on the way to a folder: ${way}`, () => {
    assert.throws(() => OpenFolder.below(root, way), SymlinkInPath);
    assert.throws(() => OpenFolder.madeBelow(root, way), SymlinkInPath);
  });
}

test("a folder is opened one step and several below, and what is missing of one is made", () => {
  for (const way of ["own", "own/below", "new/and/below"]) {
    using folder = OpenFolder.madeBelow(root, way);
    assert.equal(folder.realPath(), join(root, way));
  }
  assert.throws(() => OpenFolder.below(root, "nothing"), { code: "ENOENT" });
  writeFileSync(join(root, "file"), "");
  assert.throws(() => OpenFolder.below(root, "file"), { code: "ENOTDIR" });
});

test("an entry is in the folder that was opened, whatever takes its place", {
  skip: process.platform !== "linux",
}, () => {
  using folder = OpenFolder.below(root, "own");
  renameSync(join(root, "own"), join(root, "moved"));
  symlinkSync(join(root, "others"), join(root, "own"));
  using below = folder.folder("below");
  assert.equal(below.realPath(), join(root, "moved/below"));
});
