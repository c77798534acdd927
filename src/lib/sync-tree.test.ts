import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { pathsSynced, seesHandles, treePaths, writeTree } from "../../test/support/synced.ts";
import { syncTree } from "./files.ts";

test("every file and folder is synced, and nothing that a link leads to", {
  skip: !seesHandles,
}, async () => {
  const root = await mkdtemp(join(tmpdir(), "troupe-sync-"));
  await writeTree(root);
  const synced = await pathsSynced(() => syncTree(root, new AbortController().signal));
  assert.deepEqual(synced.map((path) => relative(root, path)).sort(), treePaths);
  await rm(root, { recursive: true });
});

test("an abort takes effect between two files", async () => {
  const root = await mkdtemp(join(tmpdir(), "troupe-sync-"));
  await writeTree(root);
  await assert.rejects(syncTree(root, AbortSignal.abort(new Error("enough"))), /enough/);
  await rm(root, { recursive: true });
});
