// Resources and models that one machine has made and installed, needed on another.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { systemClock, systemRandomness } from "../app/clock.ts";
import { folderName } from "../lib/paths.ts";
import { ModelFiles } from "../models/model-files.ts";
import { ArchivedFolders } from "../store/shared/archived-folders.ts";
import { FolderObjects } from "../store/shared/folder-objects.ts";
import { Removals } from "../store/shared/removals.ts";
import type { BlueprintAsset } from "./records.ts";
import { Resources } from "./resources.ts";
import { SharedAssets } from "./shared-assets.ts";

const RECIPE = "a1".repeat(32);
const VERSION = RECIPE.slice(0, 16);
const weights = "the weights";
const sha256 = createHash("sha256").update(weights).digest("hex");

describe("what was made for a blueprint", () => {
  let place: string;
  let assets: BlueprintAsset[];
  let openRuns: number;
  beforeEach(async () => {
    place = await mkdtemp(join(tmpdir(), "troupe-shared-assets-"));
    await mkdir(join(place, "store"));
    const common = { blueprintId: "bp", ready: true, bytes: 1, createdAtMs: 0 };
    assets = [
      { ...common, kind: "resource", assetId: "index", recipe: RECIPE },
      { ...common, kind: "model", assetId: "org/Model", recipe: sha256 },
    ];
    openRuns = 0;
  });
  afterEach(() => rm(place, { recursive: true, force: true }));

  function on(machine: string) {
    const home = join(place, machine);
    const objects = new FolderObjects(join(place, "store"), systemRandomness.id(), Date.now);
    const removals = new Removals(objects, systemRandomness.id(), systemClock);
    const shared = new ArchivedFolders({
      objects,
      removals,
      home,
      clock: systemClock,
      newId: systemRandomness.id,
    });
    const resources = new Resources({ home, runCommand: async () => assert.fail("nothing is made here") });
    const models = new ModelFiles(home);
    const records = {
      assets: async (blueprintId: string) => (blueprintId === "bp" ? assets : []),
      allPrepared: async () => [{ blueprintId: "bp" } as never],
      openRunsOf: async () => openRuns,
    };
    const parts = { home, shared, records, models: { allInstallations: async () => [] }, resources };
    return { home, resources, models, shared: new SharedAssets(parts) };
  }

  /** Makes a version, as an addition does, and shares it. */
  async function make(machine: string, version: string, text: string): Promise<void> {
    const { home, resources, shared } = on(machine);
    const folder = join(home, `resources/bp/index~${version}`);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "rows"), text);
    await resources.show("bp", "index", version);
    await shared.shareResource("bp", "index", version);
  }
  async function rowsOn(machine: string): Promise<string> {
    const { resources, shared } = on(machine);
    await shared.ensureResources("bp");
    const folder = (await resources.folders("bp")).get("index");
    return folder === undefined ? "none" : readFile(join(folder, "rows"), "utf8");
  }

  it("is found by a machine that did not make it, each resource in its newest version", async () => {
    await make("one", VERSION, "first");
    assert.equal(await rowsOn("other"), "first");
    await make("one", `${VERSION}-forced`, "again");
    assert.equal(await rowsOn("other"), "again");
    assert.equal(await rowsOn("one"), "again");
    await make("one", "of-another-recipe", "not asked for");
    assert.equal(await rowsOn("other"), "again");
  });

  it("is none where its row says that it is not whole", async () => {
    await make("one", VERSION, "first");
    assets = assets.map((asset) => ({ ...asset, ready: false }));
    assert.equal(await rowsOn("other"), "none");
  });

  it("includes models, as files of their content", async () => {
    const { home, shared } = on("one");
    const folder = join(home, "models", folderName("org/Model"));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, sha256), weights);
    await shared.shareModel("org/Model", sha256);
    const other = on("other");
    await other.shared.ensureModel("org/Model", sha256);
    const file = await other.models.file("org/Model", sha256);
    assert.equal(await readFile(file ?? "", "utf8"), weights);
    await other.shared.ensureModel("org/Model", "0".repeat(64));
    assert.equal(await other.models.file("org/Model", "0".repeat(64)), null);
  });

  it("is stored after a start, when it is from before there was a store", async () => {
    await make("one", VERSION, "first");
    await rm(join(place, "store/resources"), { recursive: true });
    assert.equal(await rowsOn("other"), "none");
    await on("other").shared.shareAll((error) => assert.fail(String(error)));
    await on("one").shared.shareAll((error) => assert.fail(String(error)));
    assert.equal(await rowsOn("other"), "first");
  });

  it("goes from the store when no row needs it, and no run of the blueprint is open", async () => {
    await make("one", VERSION, "first");
    const { shared } = on("one");
    const names = () => readdir(join(place, "store/resources/bp", `index~${VERSION}`));
    const sweep = () => shared.removeUnused({ beforeMs: Date.now() + 60_000, isPreview: false });
    await sweep();
    assert.equal((await names()).length, 1, "its row needs it");
    assets = [];
    openRuns = 1;
    await sweep();
    assert.equal((await names()).length, 1, "a run may read it");
    openRuns = 0;
    await sweep();
    assert.deepEqual(await names(), []);
  });
});
