import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { pathsSynced, seesHandles, treePaths, writeTree } from "../../../test/support/synced.ts";
import { preparedFolders } from "../../execution/runner/paths.ts";
import { RunFolders } from "./run-folders.ts";
import { SharedRuns } from "./shared-runs.ts";

test("what was prepared for a run is on disk before it has its name, and the name after it", {
  skip: !seesHandles,
}, async () => {
  const home = await mkdtemp(join(tmpdir(), "troupe-sync-"));
  const folders = new RunFolders({
    home,
    feed: { subscribe: () => () => {} },
    openRun: async () => ({ runtimeJobId: "job" }),
    commandsEnded: async () => {},
    sharedRuns: new SharedRuns(home, null),
    log: { warn: () => {}, error: () => {} },
  });
  const { root } = preparedFolders(home, "run_1");
  await writeTree(await folders.begin("run_1"));
  const synced = await pathsSynced(() => folders.finish("run_1", new AbortController().signal));
  const before = synced.slice(0, treePaths.length).map((path) => relative(`${root}.tmp`, path));
  assert.deepEqual(before.sort(), treePaths);
  assert.deepEqual(synced.slice(treePaths.length), [dirname(root), dirname(dirname(root))]);
  assert.deepEqual(await readdir(dirname(root)), ["prepared"]);
  await rm(home, { recursive: true });
});
