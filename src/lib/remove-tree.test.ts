import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { removeTree } from "./remove-tree.ts";

const removeTreeFile = fileURLToPath(new URL("./remove-tree.ts", import.meta.url));
/** Root may do everything until it gives up its capabilities. */
const ordinary = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : [];

/** Removes as a user for whom modes mean something. */
function removeAsOrdinaryUser(path: string): void {
  const script = `import { removeTree } from ${JSON.stringify(removeTreeFile)}; await removeTree(process.argv[1]);`;
  const [file = "", ...args] = [...ordinary, process.execPath, "--input-type=module", "--eval", script, path];
  execFileSync(file, args);
}

test("folders without permissions are removed, and the targets of their links are unchanged", () => {
  const base = mkdtempSync(join(tmpdir(), "troupe-remove-"));
  try {
    const tree = join(base, "tree");
    const outside = join(base, "outside");
    mkdirSync(join(tree, "a", "b"), { recursive: true });
    mkdirSync(outside, { mode: 0o500 });
    writeFileSync(join(tree, "a", "b", "file"), "x");
    symlinkSync(outside, join(tree, "a", "link"));
    for (const folder of ["a/b", "a", "."]) chmodSync(join(tree, folder), 0);
    removeAsOrdinaryUser(tree);
    assert.equal(existsSync(tree), false);
    assert.equal(statSync(outside).mode & 0o777, 0o500);
    removeAsOrdinaryUser(tree);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
});

test("of a link, the link is removed", async () => {
  const base = mkdtempSync(join(tmpdir(), "troupe-remove-"));
  try {
    mkdirSync(join(base, "kept"));
    writeFileSync(join(base, "kept", "file"), "x");
    symlinkSync(join(base, "kept"), join(base, "link"));
    await removeTree(join(base, "link"));
    assert.deepEqual(readdirSync(base), ["kept"]);
    assert.deepEqual(readdirSync(join(base, "kept")), ["file"]);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
});

test("a large tree is removed a few files at a time, so that others have their turn", async () => {
  const base = mkdtempSync(join(tmpdir(), "troupe-remove-"));
  for (const folder of ["a", "b", "a/c"]) {
    mkdirSync(join(base, folder), { recursive: true });
    for (let i = 0; i < 1_000; i++) writeFileSync(join(base, folder, `file-${i}`), "");
  }
  let isOver = false;
  const removal = removeTree(base).finally(() => {
    isOver = true;
  });
  let atOnce = 0;
  while (!isOver) {
    const underWay = process.getActiveResourcesInfo().filter((name) => name.startsWith("FSReq"));
    atOnce = Math.max(atOnce, underWay.length);
    await setImmediate();
  }
  await removal;
  assert.equal(existsSync(base), false);
  assert.ok(atOnce > 0 && atOnce < 20, `${atOnce} requests to the disk at once`);
});

test("a tree deeper than a path can be is removed", () => {
  const base = mkdtempSync(join(tmpdir(), "troupe-remove-"));
  try {
    const script =
      "import os, sys\nos.chdir(sys.argv[1])\nfor i in range(1000): os.mkdir('folder'); os.chdir('folder')";
    execFileSync("python3", ["-c", script, base]);
    removeAsOrdinaryUser(base);
    assert.equal(existsSync(base), false);
  } finally {
    execFileSync("rm", ["-rf", base]);
  }
});

test("when a symlink replaces a folder during the removal, nothing outside is removed", async () => {
  const base = mkdtempSync(join(tmpdir(), "troupe-remove-"));
  const outside = join(base, "outside");
  mkdirSync(outside);
  for (let i = 0; i < 50; i++) writeFileSync(join(outside, `kept-${i}`), "");
  // Swaps folders for symlinks, in both trees, as fast as it can.
  const script = `import os, sys
tree, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    for name in list(os.listdir(tree)):
        path = os.path.join(tree, name)
        try:
            os.rename(path, path + "-moved")
            os.symlink(outside, path)
        except OSError: pass`;
  const tree = join(base, "tree");
  for (let i = 0; i < 200; i++) {
    mkdirSync(join(tree, `folder-${i}`), { recursive: true });
    writeFileSync(join(tree, `folder-${i}`, "file"), "");
  }
  const hostile = spawn("python3", ["-c", script, tree, outside], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    await once(hostile.stdout, "data");
    await removeTree(tree).catch(() => {});
    assert.equal(readdirSync(outside).length, 50);
  } finally {
    hostile.kill("SIGKILL");
    await once(hostile, "exit");
    rmSync(base, { recursive: true, force: true });
  }
});

test("two removals of one tree at a time both end, and nothing is left", async () => {
  const root = mkdtempSync(join(tmpdir(), "troupe-remove-"));
  for (let round = 0; round < 20; round++) {
    const tree = join(root, String(round));
    for (let i = 0; i < 10; i++) mkdirSync(join(tree, `a${i}`, "b", "c", "d"), { recursive: true });
    await Promise.all([removeTree(tree), removeTree(tree)]);
    assert.equal(existsSync(tree), false);
  }
  rmSync(root, { recursive: true });
});
