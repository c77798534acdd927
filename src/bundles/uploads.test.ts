// Goal: an upload is kept whole or not at all, saves no record by itself, and a definition is at hand afterwards.
// Method: real zips and a real disk, a full one included.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { bundleFiles, makePlace, makeZip, manifestJson, noise, zipOf } from "../../test/support/bundles.ts";
import { onOwnDisk, whyNoMounts } from "../../test/support/mounts.ts";
import { BundleProblem } from "./problem.ts";

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
/** The bytes in chunks, as they come from a socket. */
function* chunksOf(bytes: Buffer, sizeBytes = 100): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += sizeBytes) yield bytes.subarray(at, at + sizeBytes);
}

test("a received zip has its content kept and its record still to be saved", async () => {
  await using place = await makePlace();
  const zip = zipOf(bundleFiles());
  const { record, uploadSha256 } = await place.bundles.receiveZip(Readable.from(chunksOf(zip)));
  assert.equal(uploadSha256, sha256(zip));
  assert.deepEqual(record, {
    bundleId: `bundle_${record.fingerprint.slice(0, 16)}`,
    fingerprint: record.fingerprint,
    graphId: "digest",
    name: "digest",
    source: { kind: "zip" },
    sizeBytes: manifestJson.length + 9,
    createdAtMs: 1_000,
    updatedAtMs: 1_000,
  });
  assert.equal(await place.bundles.get(record.bundleId), null);
  assert.deepEqual(await place.bundles.list({ limit: 10, after: null }), []);
  assert.equal((await place.bundles.definition(record.fingerprint)).manifestJson, manifestJson);
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
});

test("a zip is received from a file as from a stream, and the file stays", async () => {
  await using place = await makePlace();
  const zip = zipOf(bundleFiles());
  const file = join(place.folder, "b.zip");
  await writeFile(file, zip);
  const fromFile = await place.bundles.receiveZip(file);
  const fromStream = await place.bundles.receiveZip(Readable.from([zip]));
  assert.equal(fromFile.uploadSha256, fromStream.uploadSha256);
  assert.equal(fromFile.record.fingerprint, fromStream.record.fingerprint);
  assert.deepEqual((await readdir(place.folder)).sort(), ["b.zip", "home"]);
});

test("other bytes with the same content are another upload of the same bundle", async () => {
  await using place = await makePlace();
  const files = bundleFiles();
  const reversed = Object.fromEntries(Object.entries(files).reverse());
  const [one, other] = await Promise.all(
    [files, reversed].map((each) => place.bundles.receiveZip(Readable.from([zipOf(each)]))),
  );
  assert.notEqual(one?.uploadSha256, other?.uploadSha256);
  assert.equal(one?.record.bundleId, other?.record.bundleId);
});

test("the same upload many times at once is one snapshot and one record", async () => {
  await using place = await makePlace();
  const zip = zipOf(bundleFiles({ "payloads/more": "x".repeat(5_000) }));
  const records = await Promise.all(
    Array.from({ length: 8 }, () => place.bundles.registerZip({ file: Readable.from(chunksOf(zip)) })),
  );
  assert.equal(new Set(records.map(({ bundleId }) => bundleId)).size, 1);
  assert.equal(new Set(records.map(({ createdAtMs }) => createdAtMs)).size, 1);
  const kept = await readdir(join(place.home, "bundles"));
  assert.deepEqual(kept.sort(), [records[0]?.fingerprint ?? "", "incoming"].sort());
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
});

test("a definition is the same object every time, for launches too", async () => {
  await using place = await makePlace();
  const files = bundleFiles({ "config/default.json": '{"a":1}' });
  const { bundleId, fingerprint } = await place.bundles.registerZip({ file: Readable.from([zipOf(files)]) });
  const definition = await place.bundles.definition(fingerprint);
  assert.deepEqual(definition.configuration, { a: 1 });
  assert.deepEqual(definition.manifest, JSON.parse(manifestJson));
  assert.equal(await place.bundles.definition(fingerprint), definition);
  const launch = await place.bundles.launch(bundleId, { b: 2 });
  assert.equal(launch?.graph, definition.graph);
  assert.deepEqual(launch?.configuration, { a: 1, b: 2 });
  assert.deepEqual(definition.configuration, { a: 1 }, "an override changes nothing that is shared");
});

test("the error for a removed or damaged snapshot has the remedy, and the definition is found again once it is back", async () => {
  await using place = await makePlace();
  const zip = zipOf(bundleFiles());
  const { record } = await place.bundles.receiveZip(Readable.from([zip]));
  const folder = join(place.home, "bundles", record.fingerprint);
  const isNamed = (error: unknown) => {
    assert.ok(error instanceof BundleProblem);
    assert.match(error.message, /removed or damaged from outside .*register the bundle again/);
    assert.ok(!error.message.includes(place.home), "no path of the machine");
    return true;
  };
  await rm(folder, { recursive: true });
  await assert.rejects(place.bundles.definition(record.fingerprint), isNamed);
  await mkdir(folder);
  await writeFile(join(folder, "manifest.json"), "{");
  await assert.rejects(place.bundles.definition(record.fingerprint), isNamed);
  await rm(folder, { recursive: true });
  await place.bundles.receiveZip(Readable.from([zip]));
  assert.equal((await place.bundles.definition(record.fingerprint)).manifestJson, manifestJson);
});

test("only a fingerprint names a definition", async () => {
  await using place = await makePlace();
  for (const bad of ["", "..", "../../etc"]) {
    await assert.rejects(place.bundles.definition(bad), /not a fingerprint/);
  }
});

const MiB = 1024 * 1024;
const full: readonly (readonly [string, Buffer])[] = [
  ["while it arrives", noise(2 * MiB)],
  [
    "while it is unpacked",
    makeZip([
      { name: "manifest.json", content: manifestJson },
      { name: "payloads/large", content: Buffer.alloc(4 * MiB) },
      { name: "payloads/small", content: "x" },
    ]),
  ],
];

for (const [when, upload] of full) {
  test(`an upload for which the disk has no room ${when} fails as ENOSPC and leaves nothing behind`, async (t) => {
    const why = whyNoMounts();
    if (why !== null) return t.skip(why);
    await using place = await makePlace();
    const file = join(place.folder, "upload.zip");
    await writeFile(file, upload);
    const program = `
      const { Bundles } = await import(${JSON.stringify(new URL("./bundles.ts", import.meta.url).href)});
      const { readdirSync } = await import("node:fs");
      const home = ${JSON.stringify(place.home)};
      const bundles = await Bundles.open({ home, records: {}, bundleBytesMax: ${16 * MiB}, bundlesBytesMax: 0, nowMs: () => 0 });
      const outcome = await bundles.receiveZip(${JSON.stringify(file)}).then(() => "kept", (error) => error.code);
      console.log(outcome, JSON.stringify(readdirSync(home + "/bundles", { recursive: true })));`;
    const [command = "", ...words] = onOwnDisk(place.home, { sizeBytes: MiB });
    const child = spawnSync(command, [...words, process.execPath, "--input-type=module", "-e", program], {
      encoding: "utf8",
    });
    assert.equal(child.stdout, 'ENOSPC ["incoming"]\n', child.stderr);
  });
}
