// Bundles of machines that share a store and a database: what one has taken in, another one launches.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { bundleFiles, makePlace, type Place, writeFiles } from "../../test/support/bundles.ts";
import { systemClock, systemRandomness } from "../app/clock.ts";
import { ArchivedFolders } from "../store/shared/archived-folders.ts";
import { FolderObjects } from "../store/shared/folder-objects.ts";
import { Removals } from "../store/shared/removals.ts";
import { Bundles } from "./bundles.ts";
import type { SharedFolders } from "./shared-folders.ts";

describe("bundles of machines that share a store", () => {
  let shared: string;
  let one: Place;
  let otherHome: string;
  let fetches: string[];
  beforeEach(async () => {
    shared = await mkdtemp(join(tmpdir(), "troupe-shared-"));
    otherHome = await mkdtemp(join(tmpdir(), "troupe-other-"));
    fetches = [];
    one = await makePlace({ shared: (home) => folders(home) });
  });
  afterEach(async () => {
    await one[Symbol.asyncDispose]();
    for (const folder of [shared, otherHome]) await rm(folder, { recursive: true, force: true });
  });

  function folders(home: string): SharedFolders {
    const objects = new FolderObjects(shared, systemRandomness.id(), Date.now);
    const removals = new Removals(objects, systemRandomness.id(), systemClock);
    const all = new ArchivedFolders({
      objects,
      removals,
      home,
      clock: systemClock,
      newId: systemRandomness.id,
    });
    return Object.assign(all, {
      fetch: async (name: string, folder: string) => {
        fetches.push(name);
        return ArchivedFolders.prototype.fetch.call(all, name, folder);
      },
    });
  }

  const other = (bundlesBytesMax = 0) =>
    Bundles.open({
      home: otherHome,
      records: one.records,
      shared: folders(otherHome),
      bundleBytesMax: 64 * 1024,
      bundlesBytesMax,
      nowMs: Date.now,
    });

  const registered = async (more = {}) => {
    const path = await writeFiles(join(one.folder, "src"), bundleFiles(more), 0o755);
    return one.bundles.registerFolder({ path, bundleId: "b" });
  };

  const archiveOf = async (fingerprint: string) => {
    const folder = join(shared, "bundles", fingerprint);
    return join(folder, (await readdir(folder))[0] ?? "");
  };
  const snapshotsOfOther = async () =>
    (await readdir(join(otherHome, "bundles"))).filter((name) => name !== "incoming");

  it("are launched by a machine that has not taken them in, with the same files", async () => {
    const { fingerprint } = await registered();
    const bundles = await other();
    const launch = await bundles.launch("b", {});
    assert.equal(launch?.fingerprint, fingerprint);
    const file = join(bundles.snapshots.payloads(fingerprint), "worker/run.py");
    assert.equal(await readFile(file, "utf8"), "print(1)\n");
    assert.deepEqual(await snapshotsOfOther(), [fingerprint]);
  });

  it("are fetched once, however many need them at the same time, and not again", async () => {
    const { fingerprint } = await registered();
    const bundles = await other();
    await Promise.all(Array.from({ length: 8 }, () => bundles.snapshots.ensure(fingerprint)));
    await bundles.snapshots.ensure(fingerprint);
    assert.deepEqual(fetches, [`bundles/${fingerprint}`]);
    await one.bundles.snapshots.ensure(fingerprint);
    assert.equal(fetches.length, 1, "the machine that has it fetches nothing");
  });

  it("are not registered while the store takes nothing, and nothing of them is left", async () => {
    await rename(shared, `${shared}-gone`);
    await assert.rejects(registered(), { name: "SharedStoreUnavailable" });
    assert.equal(await one.bundles.get("b"), null);
    assert.deepEqual(await readdir(join(one.home, "bundles")), ["incoming"]);
    await rename(`${shared}-gone`, shared);
    assert.equal((await registered()).bundleId, "b");
  });

  it("are not launched from damaged bytes, nor from another bundle's, and nothing half is left", async () => {
    const { fingerprint } = await registered();
    const bundles = await other();
    const archive = await archiveOf(fingerprint);
    const bytes = await readFile(archive);
    await chmod(archive, 0o600);
    await writeFile(archive, Buffer.from(bytes).fill(1, 60, 61));
    await assert.rejects(bundles.launch("b", {}), { name: "ObjectDamaged" });
    await rm(join(shared, "bundles", fingerprint), { recursive: true });
    const { fingerprint: second } = await registered({ "payloads/more": "x" });
    await one.records.save({ ...(await one.bundles.existing("b")), fingerprint });
    await mkdir(join(shared, "bundles"), { recursive: true });
    await rename(join(shared, "bundles", second), join(shared, "bundles", fingerprint));
    await assert.rejects(bundles.launch("b", {}), /is another one/);
    assert.deepEqual(await snapshotsOfOther(), []);
    assert.deepEqual(await readdir(join(otherHome, "tmp")), []);
  });

  it("count against the quota of the machine that fetches them", async () => {
    await registered({ "payloads/large": "x".repeat(2_000) });
    const bundles = await other(1_000);
    await assert.rejects(bundles.launch("b", {}), { name: "BundlesFull" });
  });

  it("that a machine has from before there was a store are stored when asked", async () => {
    const { fingerprint } = await registered();
    await rm(join(shared, "bundles"), { recursive: true });
    await one.bundles.snapshots.shareAll((error) => assert.fail(String(error)));
    assert.ok((await other().then((bundles) => bundles.launch("b", {}))) !== null);
    const { mtimeMs } = await stat(await archiveOf(fingerprint));
    await one.bundles.snapshots.shareAll((error) => assert.fail(String(error)));
    assert.equal((await stat(await archiveOf(fingerprint))).mtimeMs, mtimeMs);
  });

  it("go from the store when nothing names them any more", async () => {
    const { fingerprint } = await registered();
    const request = { isNamed: async () => false, beforeMs: Date.now() + 60_000, isPreview: true };
    const preview = await one.bundles.snapshots.removeUnused(request);
    assert.equal(preview.count, 1);
    const removed = await one.bundles.snapshots.removeUnused({ ...request, isPreview: false });
    assert.deepEqual(removed, preview);
    assert.deepEqual(await readdir(join(shared, "bundles", fingerprint)), []);
  });
});
