// What was prepared for a run on one machine, needed on another.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { systemClock, systemRandomness } from "../../app/clock.ts";
import { preparedFolders } from "../../execution/runner/paths.ts";
import { namesIn } from "../../lib/files.ts";
import { ArchivedFolders } from "../../store/shared/archived-folders.ts";
import { FolderObjects } from "../../store/shared/folder-objects.ts";
import { Removals } from "../../store/shared/removals.ts";
import { SharedRuns } from "./shared-runs.ts";

describe("what was prepared for a run", () => {
  let place: string;
  beforeEach(async () => {
    place = await mkdtemp(join(tmpdir(), "troupe-shared-runs-"));
    await mkdir(join(place, "store"));
  });
  afterEach(() => rm(place, { recursive: true, force: true }));

  const home = (machine: string) => join(place, machine);
  function foldersOn(machine: string): ArchivedFolders {
    const objects = new FolderObjects(join(place, "store"), systemRandomness.id(), Date.now);
    const removals = new Removals(objects, systemRandomness.id(), systemClock);
    const parts = { objects, removals, home: home(machine), clock: systemClock, newId: systemRandomness.id };
    return new ArchivedFolders(parts);
  }
  const on = (machine: string) => new SharedRuns(home(machine), foldersOn(machine));
  async function prepare(machine: string, text: string): Promise<void> {
    const { payload } = preparedFolders(home(machine), "run_1");
    await mkdir(payload, { recursive: true });
    await writeFile(join(payload, "data"), text);
  }
  const dataOn = (machine: string) =>
    readFile(join(preparedFolders(home(machine), "run_1").payload, "data"), "utf8");
  const runFolderOn = (machine: string) => namesIn(join(home(machine), "runs/run_1"));

  it("is fetched once by the machine that needs it, which is told of it", async () => {
    await prepare("one", "rows");
    await on("one").share("run_1");
    const other = on("other");
    const fetched: string[] = [];
    other.onFetched = (runId) => fetched.push(runId);
    await Promise.all([other.ensure("run_1"), other.ensure("run_1"), other.ensure("run_1")]);
    assert.equal(await dataOn("other"), "rows");
    assert.deepEqual(fetched, ["run_1"]);
    assert.deepEqual(await runFolderOn("other"), ["prepared"]);
  });

  it("is what was prepared last, and what a killed fetch has left does not count", async () => {
    for (const text of ["first", "second"]) {
      await prepare("one", text);
      await on("one").share("run_1");
    }
    await mkdir(join(home("other"), "runs/run_1/prepared.tmp/payload/half"), { recursive: true });
    await on("other").ensure("run_1");
    assert.equal(await dataOn("other"), "second");
    assert.deepEqual(await readdir(preparedFolders(home("other"), "run_1").payload), ["data"]);
  });

  it("comes with what it links to in the home: resources and models", async () => {
    await prepare("one", "rows");
    const { root } = preparedFolders(home("one"), "run_1");
    for (const [folder, target] of [
      ["resources", "resources/bp/index~1"],
      ["models", "models/m/abc"],
    ] as const) {
      await mkdir(join(home("one"), dirname(target)), { recursive: true });
      await mkdir(join(root, folder));
      await symlink(join(home("one"), target), join(root, folder, "named"));
    }
    await mkdir(join(home("one"), "resources/bp/index~1"));
    await writeFile(join(home("one"), "resources/bp/index~1/rows"), "indexed");
    await writeFile(join(home("one"), "models/m/abc"), "weights");
    for (const name of ["resources/bp/index~1", "models/m/abc"])
      await foldersOn("one").store(name, join(home("one"), name), { isFixed: true });
    await on("one").share("run_1");
    await on("other").ensure("run_1");
    const { resources, models } = preparedFolders(home("other"), "run_1");
    await rm(home("one"), { recursive: true });
    assert.equal(await readFile(join(resources, "named/rows"), "utf8"), "indexed");
    assert.equal(await readFile(join(models, "named"), "utf8"), "weights");
  });

  it("is missing where nobody has shared it, and goes with its run", async () => {
    await on("other").ensure("run_1");
    assert.deepEqual(await runFolderOn("other"), []);
    await prepare("one", "rows");
    const one = on("one");
    await one.share("run_1");
    const unused = { beforeMs: Date.now() + 60_000, isPreview: false };
    await one.removeUnused({ ...unused, isNamed: async (runId) => runId === "run_1" });
    await on("third").ensure("run_1");
    assert.equal(await dataOn("third"), "rows");
    await one.remove("run_1");
    await on("other").ensure("run_1");
    assert.deepEqual(await runFolderOn("other"), []);
    await one.share("run_1");
    await one.removeUnused({ ...unused, isNamed: async () => false });
    await on("other").ensure("run_1");
    assert.deepEqual(await runFolderOn("other"), []);
  });
});
