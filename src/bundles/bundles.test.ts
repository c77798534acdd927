// Goal: what was registered stays what it was, a reload reaches later submissions only, and neither a refusal nor
// a crash leaves anything half. Method: real folders, real zips and a real database.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { scheduler, setImmediate } from "node:timers/promises";
import yazl from "yazl";
import {
  bundleFiles,
  makePlace,
  makeZip,
  manifestJson,
  refusals,
  writeFiles,
  zipOf,
} from "../../test/support/bundles.ts";
import { endEachSlice } from "../../test/support/turns.ts";

/** Names of the snapshots that are on disk. */
async function snapshots(home: string): Promise<readonly string[]> {
  return (await readdir(join(home, "bundles"))).filter((name) => /^[0-9a-f]+$/.test(name));
}

test("a folder becomes a read-only snapshot and a record", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "digest"), bundleFiles({ "README.md": "hello" }));
  await writeFiles(path, { "payloads/worker/go.sh": "#!/bin/sh\n" }, 0o755);
  const record = await place.bundles.registerFolder({ path });
  assert.deepEqual(record, {
    bundleId: "digest",
    fingerprint: record.fingerprint,
    graphId: "digest",
    name: "digest",
    source: { kind: "folder", path },
    sizeBytes: manifestJson.length + 9 + 5 + 10,
    createdAtMs: 1_000,
    updatedAtMs: 1_000,
  });
  assert.match(record.fingerprint, /^[0-9a-f]{64}$/);
  assert.deepEqual(await place.bundles.get("digest"), record);
  const payload = place.bundles.snapshots.payloads(record.fingerprint);
  assert.equal(payload, join(place.home, "bundles", record.fingerprint, "payloads"));
  assert.equal(await readFile(join(payload, "worker/run.py"), "utf8"), "print(1)\n");
  assert.equal((await stat(join(payload, "worker/run.py"))).mode & 0o777, 0o400);
  assert.equal((await stat(join(payload, "worker/go.sh"))).mode & 0o777, 0o500);
  assert.equal(await readFile(join(payload, "../README.md"), "utf8"), "hello");
});

test("a bundle of many files is taken in with pauses, and a second copy of it is removed a few files at a time", async (t) => {
  await using place = await makePlace();
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`payloads/${n}.txt`, `${n}`]));
  const path = await writeFiles(join(place.folder, "many"), bundleFiles(many));
  endEachSlice(t);
  const pauses = t.mock.method(scheduler, "yield");
  const first = await place.bundles.registerFolder({ path });
  assert.ok(pauses.mock.callCount() >= 300, `${pauses.mock.callCount()} pauses`);

  let isOver = false;
  const second = place.bundles.registerFolder({ path }).finally(() => {
    isOver = true;
  });
  let atOnce = 0;
  while (!isOver) {
    const underWay = process.getActiveResourcesInfo().filter((name) => name.startsWith("FSReq"));
    atOnce = Math.max(atOnce, underWay.length);
    await setImmediate();
  }
  assert.equal((await second).fingerprint, first.fingerprint);
  assert.ok(atOnce > 0 && atOnce < 20, `${atOnce} requests to the disk at once`);
});

test("a snapshot does not share its bytes with the folder it came from", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const { fingerprint } = await place.bundles.registerFolder({ path });
  await writeFile(join(path, "payloads/worker/run.py"), "changed");
  const kept = join(place.bundles.snapshots.payloads(fingerprint), "worker/run.py");
  assert.equal(await readFile(kept, "utf8"), "print(1)\n");
  assert.equal((await stat(kept)).nlink, 1);
});

test("equal content is stored once, whatever its id and source", async () => {
  await using place = await makePlace();
  const one = await writeFiles(join(place.folder, "one"), bundleFiles());
  const two = await writeFiles(join(place.folder, "two"), bundleFiles());
  await mkdir(join(two, "payloads/empty"));
  const zip = join(place.folder, "b.zip");
  await writeFile(zip, zipOf(bundleFiles()));
  const a = await place.bundles.registerFolder({ path: one });
  const b = await place.bundles.registerFolder({ path: two, bundleId: "second" });
  const c = await place.bundles.registerZip({ file: zip });
  assert.equal(a.fingerprint, b.fingerprint);
  assert.equal(a.fingerprint, c.fingerprint);
  assert.deepEqual(await snapshots(place.home), [a.fingerprint]);
  assert.deepEqual(
    (await place.bundles.list({ limit: 10, after: null })).map((record) => record.bundleId),
    [`bundle_${a.fingerprint.slice(0, 16)}`, "one", "second"],
  );
});

test("the order of a zip's entries does not matter", async () => {
  await using place = await makePlace();
  const files = bundleFiles({ "payloads/a.txt": "1", "payloads/a/b": "2", "payloads/Z": "3" });
  const path = await writeFiles(join(place.folder, "b"), files);
  const reversed = zipOf(Object.fromEntries(Object.entries(files).reverse()));
  const fromFolder = await place.bundles.registerFolder({ path });
  const fromZip = await place.bundles.registerZip({ file: Readable.from([reversed]) });
  assert.equal(fromZip.fingerprint, fromFolder.fingerprint);
});

test("registering a folder again replaces the record, and its time of creation stays", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const first = await place.bundles.registerFolder({ path });
  await writeFiles(path, { "payloads/more.txt": "x" });
  const second = await place.bundles.registerFolder({ path });
  assert.notEqual(second.fingerprint, first.fingerprint);
  assert.deepEqual([second.createdAtMs, second.updatedAtMs], [1_000, 1_001]);
  assert.deepEqual(await place.bundles.get("b"), second);
});

test("a name, a byte and the executable bit each make another fingerprint", async () => {
  await using place = await makePlace();
  const path = join(place.folder, "b");
  const seen = new Set<string>();
  const register = async () => seen.add((await place.bundles.registerFolder({ path })).fingerprint);
  await writeFiles(path, bundleFiles());
  await register();
  await writeFiles(path, { "payloads/worker/run.py": "print(2)\n" });
  await register();
  await chmod(join(path, "payloads/worker/run.py"), 0o755);
  await register();
  await rename(join(path, "payloads/worker/run.py"), join(path, "payloads/worker/runs.py"));
  await register();
  assert.equal(seen.size, 4);
});

test("files of tools are left out, and payloads always exists", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), {
    "manifest.json": manifestJson,
    ".env": "TOKEN=1",
    ".git/config": "",
    "node_modules/x/index.js": "",
    "lib/.git/config": "",
    "lib/__pycache__/x.pyc": "",
    "lib/.keep": "",
    "lib/node_modules/y/index.js": "",
  });
  const { fingerprint } = await place.bundles.registerFolder({ path });
  const kept = await readdir(join(place.home, "bundles", fingerprint), { recursive: true });
  assert.deepEqual(kept.sort(), [
    "lib",
    "lib/.keep",
    "lib/node_modules",
    "lib/node_modules/y",
    "lib/node_modules/y/index.js",
    "manifest.json",
    "payloads",
  ]);
});

test("a symlink inside the folder becomes a copy of what it points to", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles({ "shared/data.txt": "data" }));
  await symlink("../shared", join(path, "payloads/shared"));
  await symlink("../../shared/data.txt", join(path, "payloads/worker/data.txt"));
  const { fingerprint } = await place.bundles.registerFolder({ path });
  const payload = place.bundles.snapshots.payloads(fingerprint);
  assert.equal(await readFile(join(payload, "shared/data.txt"), "utf8"), "data");
  assert.equal(await readFile(join(payload, "worker/data.txt"), "utf8"), "data");
});

test("a reload of an unchanged folder reports that", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const { fingerprint } = await place.bundles.registerFolder({ path });
  assert.deepEqual(await place.bundles.reload("b"), {
    bundle_id: "b",
    changed: false,
    reloaded: true,
    previous_fingerprint: fingerprint,
    current_fingerprint: fingerprint,
    reason: "api_request",
    message: "Bundle b was read again and has not changed.",
    timestamp: "1970-01-01T00:00:01.003Z",
  });
});

test("a reload reaches later submissions, and the old snapshot stays until an earlier one has ended", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const before = await place.bundles.registerFolder({ path });
  const earlier = await place.bundles.launch("b", {});
  assert.equal(earlier?.fingerprint, before.fingerprint);
  await writeFiles(path, { "payloads/worker/run.py": "print(2)\n", "config/default.json": '{"a":1}' });
  const result = await place.bundles.reload("b");
  assert.ok(result?.changed && result.reloaded);
  assert.equal(result.previous_fingerprint, before.fingerprint);
  const launch = await place.bundles.launch("b", {});
  assert.equal(launch?.fingerprint, result.current_fingerprint);
  assert.deepEqual(launch.configuration, { a: 1 });
  const old = join(place.bundles.snapshots.payloads(before.fingerprint), "worker/run.py");
  assert.equal(await readFile(old, "utf8"), "print(1)\n");
  await place.bundles.snapshots.release(before.fingerprint);
  assert.deepEqual(await snapshots(place.home), [result.current_fingerprint]);
  const record = await place.bundles.get("b");
  assert.deepEqual([record?.createdAtMs, record?.updatedAtMs], [1_000, 1_001]);
});

test("a reload of a folder that is invalid now, or has gone, is refused and changes nothing", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const before = await place.bundles.registerFolder({ path });
  await writeFile(join(path, "manifest.json"), "{");
  assert.deepEqual(await refusals(place.bundles.reload("b")), ["/manifest.json invalid_json"]);
  await rm(path, { recursive: true });
  assert.deepEqual(await refusals(place.bundles.reload("b")), [" folder_missing"]);
  assert.deepEqual(await place.bundles.get("b"), before);
  assert.deepEqual(await snapshots(place.home), [before.fingerprint]);
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
});

test("a bundle from a zip reloads as unchanged", async () => {
  await using place = await makePlace();
  const { bundleId } = await place.bundles.registerZip({ file: Readable.from([zipOf(bundleFiles())]) });
  const result = await place.bundles.reload(bundleId);
  assert.deepEqual([result?.changed, result?.reloaded], [false, false]);
  assert.equal(result?.previous_fingerprint, result?.current_fingerprint);
});

test("an unknown id is null everywhere", async () => {
  await using place = await makePlace();
  assert.equal(await place.bundles.get("x"), null);
  assert.equal(await place.bundles.reload("x"), null);
  assert.equal(await place.bundles.launch("x", {}), null);
});

test("reloads and registrations of one bundle happen one after the other", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  await place.bundles.registerFolder({ path });
  await writeFiles(path, { "payloads/more.txt": "x" });
  const [first, second] = await Promise.all([place.bundles.reload("b"), place.bundles.reload("b")]);
  assert.deepEqual([first?.changed, second?.changed], [true, false]);
  assert.equal(second?.previous_fingerprint, first?.current_fingerprint);
});

test("the configuration is the default, the overwrite and the caller's, laid over each other", async () => {
  await using place = await makePlace();
  const path = await writeFiles(
    join(place.folder, "b"),
    bundleFiles({
      "config/default.json": '{"model":{"name":"a","heat":1},"list":[1,2]}',
      "config/overwrite.json": '\ufeff{"model":{"heat":2}}',
    }),
  );
  await place.bundles.registerFolder({ path });
  const launch = await place.bundles.launch("b", { list: [3], model: { size: null } });
  assert.deepEqual(launch?.configuration, {
    model: { name: "a", heat: 2, size: null },
    list: [3],
  });
  assert.equal(launch?.manifestJson, manifestJson);
  assert.equal(launch?.graph.graphId, "digest");
});

test("without any configuration there is none", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  await place.bundles.registerFolder({ path });
  assert.equal((await place.bundles.launch("b", {}))?.configuration, null);
  assert.deepEqual((await place.bundles.launch("b", { a: 1 }))?.configuration, { a: 1 });
});

test("a bundle is called by its metadata's name, else its job_name, else its graph_id", async () => {
  await using place = await makePlace();
  const named = async (more: object) => {
    const manifest = JSON.stringify({ ...JSON.parse(manifestJson), ...more });
    const path = await writeFiles(join(place.folder, "b"), bundleFiles({ "manifest.json": manifest }));
    return (await place.bundles.registerFolder({ path })).name;
  };
  assert.equal(await named({ metadata: { name: "The digest" }, job_name: "nightly" }), "The digest");
  assert.equal(await named({ metadata: { name: 5 }, job_name: "nightly" }), "nightly");
});

test("a zip that yazl makes is taken, from its single top folder, with its executable bits", async () => {
  await using place = await makePlace();
  const zip = new yazl.ZipFile();
  for (const [name, content] of Object.entries(bundleFiles()))
    zip.addBuffer(Buffer.from(content), `top/${name}`);
  zip.addBuffer(Buffer.from("#!/bin/sh\n"), "top/payloads/go.sh", { mode: 0o100755, compress: false });
  zip.addEmptyDirectory("top/payloads/empty");
  zip.addBuffer(Buffer.from(""), "__MACOSX/top/._manifest.json");
  zip.end();
  const record = await place.bundles.registerZip({ file: Readable.from(zip.outputStream), bundleId: "mine" });
  assert.equal(record.bundleId, "mine");
  assert.deepEqual(record.source, { kind: "zip" });
  const payload = place.bundles.snapshots.payloads(record.fingerprint);
  assert.equal((await stat(join(payload, "go.sh"))).mode & 0o777, 0o500);
  assert.deepEqual((await readdir(join(place.home, "bundles", record.fingerprint))).sort(), [
    "manifest.json",
    "payloads",
  ]);
});

test("a large entry is unpacked whole", async () => {
  await using place = await makePlace();
  const content = Buffer.alloc(900 * 1024, "abcdefg");
  const entries = [
    { name: "manifest.json", content: manifestJson },
    { name: "payloads/big", content },
    { name: "payloads/none", content: "" },
  ];
  const { fingerprint } = await place.bundles.registerZip({ file: Readable.from([makeZip(entries)]) });
  assert.ok((await readFile(join(place.bundles.snapshots.payloads(fingerprint), "big"))).equals(content));
});

test("an upload that breaks off leaves nothing behind", async () => {
  await using place = await makePlace();
  const upload = Readable.from(
    (async function* () {
      yield Buffer.from("PK");
      throw new Error("the client went away");
    })(),
  );
  await assert.rejects(place.bundles.registerZip({ file: upload }), /the client went away/);
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
});

/** Runs a program that uses `bundles` on this home, and kills it once it has printed something. */
async function killWhenItPrints(home: string, program: string): Promise<void> {
  const head = `
    const { Bundles } = await import(${JSON.stringify(new URL("./bundles.ts", import.meta.url).href)});
    const { Readable } = await import("node:stream");
    const records = {
      get: async () => null,
      list: async () => [],
      isSnapshotNamed: async () => false,
      save: () => { console.log("saving"); return new Promise(() => {}); },
    };
    const bundles = await Bundles.open({ home: ${JSON.stringify(home)}, records, bundleBytesMax: 65536, bundlesBytesMax: 0, nowMs: () => 0 });
    setInterval(() => {}, 1000);`;
  const args = ["--input-type=module", "-e", head + program];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exit = once(child, "exit");
  const first = await Promise.race([
    once(child.stdout, "data").then(() => "printed"),
    exit.then(() => "ended"),
  ]);
  assert.equal(first, "printed");
  child.kill("SIGKILL");
  await exit;
}

test("a process killed between snapshot and record leaves the old record, and the next start frees the snapshot", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const before = await place.bundles.registerFolder({ path });
  await writeFiles(path, { "payloads/more.txt": "x" });
  await killWhenItPrints(place.home, `await bundles.registerFolder({ path: ${JSON.stringify(path)} });`);
  assert.equal((await snapshots(place.home)).length, 2);
  const after = await place.reopen();
  assert.deepEqual(await readdir(join(place.home, "bundles")), [before.fingerprint, "incoming"].sort());
  assert.deepEqual(await after.get("b"), before);
  const { current_fingerprint: current } = (await after.reload("b"))!;
  assert.notEqual(current, before.fingerprint);
  assert.deepEqual(await snapshots(place.home), [current]);
});

test("a process killed in the middle of a registration leaves nothing after the next start", async () => {
  await using place = await makePlace();
  const incoming = join(place.home, "bundles/incoming");
  const program = `
    async function* upload() { yield Buffer.from("PK"); yield Buffer.from("PK"); console.log("half"); await new Promise(() => {}); }
    await bundles.registerZip({ file: Readable.from(upload()) });`;
  await killWhenItPrints(place.home, program);
  assert.deepEqual(await readdir(incoming), ["1"]);
  await place.reopen();
  assert.deepEqual(await readdir(incoming), []);
  assert.deepEqual(await snapshots(place.home), []);
});

test("a snapshot that somebody removed is named as missing", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles());
  const { fingerprint } = await place.bundles.registerFolder({ path });
  await rm(join(place.home, "bundles", fingerprint), { recursive: true });
  assert.deepEqual(await refusals(place.bundles.launch("b", {})), ["/manifest.json missing_manifest"]);
});

test("only a fingerprint names a payload folder", async () => {
  await using place = await makePlace();
  for (const bad of ["", "..", "../../etc", "A".repeat(64)]) {
    assert.throws(() => place.bundles.snapshots.payloads(bad), /not a fingerprint/);
  }
});
