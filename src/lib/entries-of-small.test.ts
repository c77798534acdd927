import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { entriesOfSmall, isEmptyFolder } from "./files.ts";

it("an empty folder differs from one with an entry, from a file and from a missing one", () => {
  const root = mkdtempSync(join(tmpdir(), "troupe-small-folder-"));
  try {
    assert.equal(isEmptyFolder(root), true);
    mkdirSync(join(root, "inner"));
    assert.equal(isEmptyFolder(root), false);
    assert.deepEqual(
      entriesOfSmall(root)?.map(({ name }) => name),
      ["inner"],
    );
    writeFileSync(join(root, "file"), "");
    assert.equal(isEmptyFolder(join(root, "file")), false);
    assert.equal(isEmptyFolder(join(root, "absent")), false);
    symlinkSync(join(root, "inner"), join(root, "link"));
    assert.equal(isEmptyFolder(join(root, "inner")), true);
    assert.equal(isEmptyFolder(join(root, "link")), false);
    assert.equal(isEmptyFolder(join(root, "a name that is too long ".repeat(20))), false);
    assert.equal(entriesOfSmall(join(root, "absent")), null);
    for (let i = 0; i < 2_000; i++) writeFileSync(join(root, `a file whose name is long ${i}`), "");
    assert.notEqual(entriesOfSmall(root)?.length, 0);
  } finally {
    rmSync(root, { recursive: true });
  }
});
