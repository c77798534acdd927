import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder } from "./files.ts";

test("a folder is made with those above it, and one that is there is left as it is", async () => {
  const root = await mkdtemp(join(tmpdir(), "troupe-folder-"));
  const folder = join(root, "a/b/c");
  makeFolder(folder, 0o700);
  makeFolder(folder);
  for (const made of [folder, join(root, "a")]) assert.equal((await stat(made)).mode & 0o777, 0o700);
  await symlink(folder, join(root, "link"));
  makeFolder(join(root, "link/d"));
  assert.ok(existsSync(join(folder, "d")));
  await rm(root, { recursive: true });
});

test("a folder that cannot be made is an error", async () => {
  const root = await mkdtemp(join(tmpdir(), "troupe-folder-"));
  await writeFile(join(root, "file"), "");
  assert.throws(() => makeFolder(join(root, "file")), { code: "EEXIST" });
  assert.throws(() => makeFolder(join(root, "file/a")), { code: "ENOTDIR" });
  // Its parent is there, and still: no such folder.
  if (existsSync("/proc/self")) assert.throws(() => makeFolder("/proc/nothing/here"), { code: "ENOENT" });
  await rm(root, { recursive: true });
});
