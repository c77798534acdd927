// Folders that are compared with the snapshot that was taken of them.

import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, open, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../test/support/until.ts";
import { FolderChanges } from "./folder-changes.ts";

const LARGER_THAN_WAITED_FOR = 65 * 1024 * 1024;

test("edits of small files show at once, beside a large file that is compared in the background", async () => {
  const home = await mkdtemp(join(tmpdir(), "folder-changes-"));
  try {
    const folder = join(home, "folder");
    const model = join(folder, "payloads/model.bin");
    await mkdir(join(folder, "payloads"), { recursive: true });
    await writeFile(join(folder, "manifest.json"), "{}");
    await writeFile(join(folder, "payloads/work.py"), "one");
    await writeFile(model, "");
    await truncate(model, LARGER_THAN_WAITED_FOR);
    await cp(folder, join(home, "bundles", "added"), { recursive: true });
    // Later than the files by so much that what was read of them once is taken for granted.
    let nowMs = Date.now() + 60_000;
    const changes = new FolderChanges({ home, bundleBytesMax: LARGER_THAN_WAITED_FOR, nowMs: () => nowMs });
    const look = () => {
      nowMs += 1_000;
      return changes.of(folder, "added");
    };
    assert.deepEqual(await look(), []);
    await writeFile(join(folder, "payloads/work.py"), "two");
    assert.deepEqual(await look(), ["payloads/work.py"]);
    assert.deepEqual(await look(), ["payloads/work.py"]);
    await writeFile(join(folder, "payloads/work.py"), "one");
    assert.deepEqual(await look(), []);
    {
      await using file = await open(model, "r+");
      await file.write("x", LARGER_THAN_WAITED_FOR - 1);
    }
    await until("the edit of the large file to show", async () =>
      (await look()).includes("payloads/model.bin"),
    );
    // It is another package's by now.
    await cp(folder, join(home, "bundles", "again"), { recursive: true });
    await rm(join(home, "bundles", "added"), { recursive: true });
    await writeFile(join(folder, "payloads/work.py"), "three");
    assert.deepEqual(await changes.of(folder, "again"), ["payloads/work.py"]);
  } finally {
    await rm(home, { recursive: true });
  }
});
