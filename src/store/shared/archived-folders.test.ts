// Folders that one machine stores and another one fetches: what comes back, and what is refused.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ZipFile } from "yazl";
import { anyString, fc } from "../../../test/support/fast-check.ts";
import { startS3 } from "../../../test/support/s3-server.ts";
import { systemClock, systemRandomness } from "../../app/clock.ts";
import { ArchivedFolders } from "./archived-folders.ts";
import { ArchiveRefused, packFolder, unpackFolder } from "./folder-archive.ts";
import { FolderObjects } from "./folder-objects.ts";
import { SharedStoreUnavailable } from "./object-store.ts";
import { Removals } from "./removals.ts";

describe("folders in a shared store", () => {
  let place: string;
  let store: string;
  let nowMs = 0;
  beforeEach(async () => {
    place = await mkdtemp(join(tmpdir(), "troupe-archives-"));
    store = join(place, "store");
    for (const name of ["store", "one", "other"]) await mkdir(join(place, name));
    nowMs = Date.now();
  });
  afterEach(() => rm(place, { recursive: true, force: true }));

  /** The folders as the machine with this home sees them. */
  function on(machine: "one" | "other"): ArchivedFolders {
    const objects = new FolderObjects(store, machine, Date.now);
    const removals = new Removals(objects, machine, systemClock);
    const home = join(place, machine);
    return new ArchivedFolders({
      objects,
      removals,
      home,
      clock: { nowMs: () => nowMs },
      newId: systemRandomness.id,
    });
  }

  async function write(path: string, text: string, mode = 0o600): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    await chmod(path, mode);
  }

  /** What a folder holds: paths with kind, mode and content. */
  async function seen(folder: string): Promise<readonly string[]> {
    // It goes through links to folders.
    const all = await readdir(folder, { recursive: true });
    const names = all.filter((name) => !name.startsWith("resources/index/")).sort();
    return Promise.all(
      names.map(async (name) => {
        const path = join(folder, name);
        const found = await lstat(path);
        if (found.isSymbolicLink()) return `${name} -> ${await readlink(path)}`;
        if (found.isDirectory()) return `${name}/`;
        return `${name} ${(found.mode & 0o777).toString(8)} ${await readFile(path, "utf8")}`;
      }),
    );
  }

  it("come back as they were: bytes, modes, links, empty folders, odd names", async () => {
    const folder = join(place, "one/runs/r/prepared");
    await write(join(folder, "payload/run.py"), "print(1)", 0o700);
    await write(join(folder, "payload/a\\b: 100% \n'ä'"), "odd", 0o400);
    await mkdir(join(folder, "payload/empty/inside"), { recursive: true });
    await symlink("../payload/run.py", join(folder, "payload/link"));
    await write(join(place, "one/resources/bp/index~1/data"), "rows");
    await mkdir(join(folder, "resources"));
    await symlink(join(place, "one/resources/bp/index~1"), join(folder, "resources/index"));
    await on("one").store("runs/r", folder, { isFixed: false });
    const fetched = join(place, "other/prepared");
    assert.equal(await on("other").fetch("runs/r", fetched), true);
    const moved = (line: string) => line.replace(join(place, "one"), join(place, "other"));
    assert.deepEqual(await seen(fetched), (await seen(folder)).map(moved));
    assert.deepEqual(await readdir(join(place, "other/tmp")), []);
    assert.equal(await on("other").fetch("runs/another", join(place, "x")), false);
  });

  it("come back from a bucket as well, and files as files", async () => {
    await using s3 = Object.assign(await startS3(), {
      async [Symbol.asyncDispose]() {
        await s3.close();
      },
    });
    const objects = s3.objects("of folders/");
    const inBucket = (machine: string) =>
      new ArchivedFolders({
        objects,
        removals: new Removals(objects, machine, systemClock),
        home: join(place, machine),
        clock: systemClock,
        newId: systemRandomness.id,
      });
    const name = "resources/b-p~0f/index~a1-forced";
    await write(join(place, "one", name, "rows"), "indexed");
    await write(join(place, "one/models/m/abc"), "weights", 0o400);
    for (const path of [name, "models/m/abc"])
      await inBucket("one").store(path, join(place, "one", path), { isFixed: true });
    assert.deepEqual(await inBucket("other").names("resources/b-p~0f"), ["index~a1-forced"]);
    for (const path of [name, "models/m/abc"])
      assert.equal(await inBucket("other").fetch(path, join(place, "other", path)), true);
    assert.deepEqual(await seen(join(place, "other", name)), ["rows 600 indexed"]);
    assert.equal(await readFile(join(place, "other/models/m/abc"), "utf8"), "weights");
  });

  it("come back whatever their files are called and hold", async () => {
    const name = anyString({ minLength: 1, maxLength: 12 }).filter(
      (one) => !/[/\0]/.test(one) && !/^\.+$/.test(one) && one.isWellFormed(),
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, anyString({ maxLength: 40 }), { maxKeys: 8 }), async (files) => {
        const folder = await mkdtemp(join(place, "any-"));
        for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text);
        await packFolder(folder, `${folder}.zip`, place);
        await unpackFolder(`${folder}.zip`, `${folder}.out`, place);
        assert.deepEqual(await seen(`${folder}.out`), await seen(folder));
      }),
      { numRuns: 40 },
    );
  });

  it("are the same bytes on every machine, and stored once while they are young", async () => {
    const folder = join(place, "one/bundle");
    await write(join(folder, "manifest.json"), "{}");
    await on("one").store("bundles/f", folder, { isFixed: true });
    const files = await readdir(join(store, "bundles/f"));
    const { ctimeMs } = await lstat(join(store, "bundles/f", files[0] ?? ""));
    await on("other").store("bundles/f", folder, { isFixed: true });
    assert.deepEqual(await readdir(join(store, "bundles/f")), files);
    assert.equal((await lstat(join(store, "bundles/f", files[0] ?? ""))).ctimeMs, ctimeMs);
    nowMs += 13 * 60 * 60 * 1_000;
    await on("other").store("bundles/f", folder, { isFixed: true });
    assert.notEqual((await lstat(join(store, "bundles/f", files[0] ?? ""))).ctimeMs, ctimeMs);
  });

  it("are those that were stored last under their name", async () => {
    for (const text of ["first", "second"]) {
      await write(join(place, "one/p/file"), text);
      await on("one").store("runs/r", join(place, "one/p"), { isFixed: false });
    }
    await on("other").fetch("runs/r", join(place, "other/p"));
    assert.deepEqual(await seen(join(place, "other/p")), ["file 600 second"]);
  });

  it("are refused when the store has other bytes, or none", async () => {
    await write(join(place, "one/p/file"), "text");
    await on("one").store("runs/r", join(place, "one/p"), { isFixed: false });
    const [name = ""] = await readdir(join(store, "runs/r"));
    const archive = join(store, "runs/r", name);
    const bytes = await readFile(archive);
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    await chmod(archive, 0o600);
    await writeFile(archive, bytes);
    await assert.rejects(on("other").fetch("runs/r", join(place, "other/p")), { name: "ObjectDamaged" });
    await truncate(archive, 10);
    await assert.rejects(on("other").fetch("runs/r", join(place, "other/q")), { name: "ObjectDamaged" });
    await rm(store, { recursive: true });
    await assert.rejects(on("other").fetch("runs/r", join(place, "other/q")), SharedStoreUnavailable);
    assert.deepEqual(await readdir(join(place, "other")), ["tmp"]);
    assert.deepEqual(await readdir(join(place, "other/tmp")), []);
  });

  it("go when nothing names them and they are old, and only then", async () => {
    await write(join(place, "one/p/file"), "text");
    for (const name of ["named", "unnamed"])
      await on("one").store(`bundles/${name}`, join(place, "one/p"), { isFixed: true });
    const isNamed = async (name: string) => name === "named";
    const removed = async (beforeMs: number, isPreview = false) =>
      (await on("other").removeUnused("bundles", { isNamed, beforeMs, isPreview })).count;
    assert.equal(await removed(Date.now() - 60_000), 0);
    assert.equal(await removed(Date.now() + 60_000, true), 1);
    assert.equal(await removed(Date.now() + 60_000), 1);
    assert.deepEqual(
      [await on("one").has("bundles/named"), await on("one").has("bundles/unnamed")],
      [true, false],
    );
    await on("one").remove("bundles/named");
    assert.equal(await on("one").has("bundles/named"), false);
  });

  it("hold no entry that leaves them", async () => {
    const link = 0o120777;
    for (const [name, target, mode] of [
      ["link", "../outside", link],
      ["link", "/etc/passwd", link],
      ["link", "//SVC_HOME/../outside", link],
      ["link", "a/../../outside", link],
      ["device", "", 0o020600],
    ] as const) {
      const zip = new ZipFile();
      zip.addBuffer(Buffer.from(target), name, { mode, compress: false });
      zip.end();
      const file = join(place, `${createHash("sha256").update(`${target}${mode}`).digest("hex")}.zip`);
      await pipeline(zip.outputStream as Readable, createWriteStream(file));
      await assert.rejects(unpackFolder(file, `${file}.out`, join(place, "one")), ArchiveRefused, target);
      assert.deepEqual(await readdir(`${file}.out`), []);
    }
  });
});
