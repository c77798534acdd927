// Goal: a zip writes nothing but its own files below its own folder, and no more of them than it said. Method:
// zips made by hand, each wrong in one way, and one that is wrong in every way at once.

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import {
  BUNDLE_BYTES_MAX,
  bundleFiles,
  makePlace,
  makeZip,
  manifestJson,
  refusals,
  type ZipEntry,
  zipOf,
} from "./test-support.ts";

async function refusalsOf(zip: Buffer): Promise<readonly string[]> {
  await using place = await makePlace();
  const refused = await refusals(place.bundles.registerZip({ file: Readable.from([zip]) }));
  assert.deepEqual(await readdir(place.folder), ["home"]);
  assert.deepEqual(await readdir(place.home), ["bundles"]);
  assert.deepEqual(await readdir(join(place.home, "bundles")), ["incoming"]);
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
  return refused;
}

const wrong: readonly (readonly [string, ZipEntry, string])[] = [
  ["leaves through ..", { name: "../evil" }, "/../evil leaves_bundle"],
  ["leaves through .. further down", { name: "a/../../evil" }, "/a/../../evil leaves_bundle"],
  ["is a folder that leaves", { name: "a/../../" }, "/a/../.. leaves_bundle"],
  ["has an absolute name", { name: "/etc/cron.d/evil" }, "//etc/cron.d/evil absolute_name"],
  ["has a drive's name", { name: "C:/evil" }, "/C:/evil absolute_name"],
  ["has a backslash", { name: "..\\evil" }, "/..\\evil invalid_name"],
  ["has an empty part", { name: "a//b" }, "/a//b invalid_name"],
  ["has a part that is a dot", { name: "a/./b" }, "/a/./b invalid_name"],
  ["has no name", { name: "" }, " invalid_name"],
  ["has a NUL in its name", { name: "a\0b" }, "/a\0b invalid_name"],
  ["has a name that is no UTF-8", { name: Buffer.from([0x61, 0xff]) }, "/a\ufffd invalid_name"],
  ["has a very long part", { name: "n".repeat(256) }, `/${"n".repeat(199)}… invalid_name`],
  [
    "has a very long name",
    { name: `${"n/".repeat(600)}n` },
    `/${"n/".repeat(100).slice(0, 199)}… invalid_name`,
  ],
  ["is a symlink", { name: "a", content: "/etc/passwd", mode: 0o120777 }, "/a symlink"],
  ["is a device", { name: "a", mode: 0o020666 }, "/a special_file"],
  ["is a pipe", { name: "a", mode: 0o010666 }, "/a special_file"],
  ["is a folder by mode only", { name: "a", mode: 0o040755 }, "/a special_file"],
  ["is encrypted", { name: "a", flags: 1 }, "/a encrypted"],
  ["is compressed in a rare way", { name: "a", method: 12 }, "/a unsupported_compression"],
  ["is there twice", { name: "manifest.json" }, "/manifest.json duplicate_entry"],
  ["differs in case only", { name: "Manifest.JSON" }, "/Manifest.JSON duplicate_entry"],
  ["is a folder where a file is", { name: "manifest.json/" }, "/manifest.json duplicate_entry"],
  ["lies in a file", { name: "manifest.json/x" }, "/manifest.json/x duplicate_entry"],
  ["lies two levels below a file", { name: "Manifest.json/x/y" }, "/Manifest.json/x/y duplicate_entry"],
  ["declares less than it holds", { name: "a", content: "12345", claimedSizeBytes: 4 }, "/a size_mismatch"],
  ["declares more than it holds", { name: "a", content: "12345", claimedSizeBytes: 6 }, "/a size_mismatch"],
  [
    "is stored and declares another size",
    { name: "a", content: "12345", isStored: true, claimedSizeBytes: 4 },
    "/a size_mismatch",
  ],
  ["has another checksum", { name: "a", content: "12345", claimedCrc32: 7 }, "/a damaged_entry"],
  [
    "is not what deflate makes",
    { name: "a", content: "\xff\xff\xff", isStored: true, method: 8 },
    "/a damaged_entry",
  ],
];

for (const [name, entry, expected] of wrong) {
  test(`a zip with an entry that ${name} is refused, and writes nothing`, async () => {
    assert.deepEqual(await refusalsOf(zipOf({ "manifest.json": manifestJson }, [entry])), [expected]);
  });
}

test("every wrong entry is reported at once", async () => {
  const byDirectory = wrong.filter(([, entry]) => entry.content === undefined);
  const zip = zipOf(
    bundleFiles(),
    byDirectory.map(([, entry]) => entry),
  );
  const expected = byDirectory.map(([, , problem]) => problem);
  assert.deepEqual((await refusalsOf(zip)).toSorted(), expected.toSorted());
});

test("names that Unicode writes in two ways are duplicates", async () => {
  const refused = await refusalsOf(zipOf(bundleFiles({ "payloads/\u00e9": "", "payloads/e\u0301": "" })));
  assert.deepEqual(refused, ["/payloads/e\u0301 duplicate_entry"]);
});

test("a zip that declares more than 20 times the limit is refused before it is unpacked", async () => {
  const entry = (sizeBytes: number) => ({ name: "payloads/bomb", content: Buffer.alloc(sizeBytes) });
  const room = BUNDLE_BYTES_MAX * 20 - manifestJson.length;
  const zip = (sizeBytes: number) =>
    makeZip([{ name: "manifest.json", content: manifestJson }, entry(sizeBytes)]);
  assert.deepEqual(await refusalsOf(zip(room + 1)), [" too_large"]);
  await using place = await makePlace();
  const record = await place.bundles.registerZip({ file: Readable.from([zip(room)]) });
  assert.equal(record.sizeBytes, BUNDLE_BYTES_MAX * 20);
});

test("a bomb that declares little is stopped at what it declared", async () => {
  const bomb = { name: "payloads/bomb", content: Buffer.alloc(30 * 1024 * 1024), claimedSizeBytes: 100 };
  assert.deepEqual(await refusalsOf(zipOf(bundleFiles(), [bomb])), ["/payloads/bomb size_mismatch"]);
});

test("an upload of more bytes than the limit is refused", async () => {
  const refused = await refusalsOf(Buffer.alloc(BUNDLE_BYTES_MAX + 1));
  assert.deepEqual(refused, [" too_large"]);
});

test("more than 20,000 entries are refused", async () => {
  await using place = await makePlace();
  const count = Buffer.alloc(22);
  count.write("PK\x05\x06", "latin1");
  count.writeUInt16LE(20_001, 8);
  count.writeUInt16LE(20_001, 10);
  assert.deepEqual(await refusals(place.bundles.registerZip({ file: Readable.from([count]) })), [
    " too_many_entries",
  ]);
});

test("what is no zip, is empty, or is cut off is refused", async () => {
  assert.deepEqual(await refusalsOf(Buffer.from("hello")), [" not_a_zip"]);
  assert.deepEqual(await refusalsOf(Buffer.alloc(0)), [" not_a_zip"]);
  const zip = zipOf(bundleFiles());
  assert.deepEqual(await refusalsOf(zip.subarray(0, zip.length - 10)), [" not_a_zip"]);
  assert.deepEqual(await refusalsOf(zip.subarray(20)), [" invalid_zip"]);
});

test("a zip without a manifest, or with more than one folder at the top, is refused", async () => {
  assert.deepEqual(await refusalsOf(makeZip([])), ["/manifest.json missing_manifest"]);
  assert.deepEqual(await refusalsOf(zipOf({ "payloads/x": "" })), ["/manifest.json missing_manifest"]);
  const two = zipOf({ "a/manifest.json": manifestJson, "b/x": "" });
  assert.deepEqual(await refusalsOf(two), ["/manifest.json missing_manifest"]);
});

test("a zip with an invalid manifest is refused with the manifest's problems", async () => {
  assert.deepEqual(
    await refusalsOf(zipOf({ "manifest.json": '{"manifest_version":"1.0","graph_id":"g"}' })),
    ["/nodes missing", "/entrypoints missing"],
  );
});

test("random damage to a zip is a problem or goes unnoticed, and never anything else", async () => {
  await using place = await makePlace();
  const zip = zipOf(bundleFiles());
  for (let at = 0; at < zip.length; at += 3) {
    const damaged = Buffer.from(zip);
    damaged[at] = (damaged[at] ?? 0) ^ 0xff;
    await refusals(place.bundles.registerZip({ file: Readable.from([damaged]), bundleId: "x" }));
  }
  assert.deepEqual(await readdir(place.home), ["bundles"]);
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
});
