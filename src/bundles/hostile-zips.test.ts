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
} from "../../test/support/bundles.ts";
import { BundleProblem } from "./problem.ts";

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
  ["has the name of another machine's folder", { name: "//host/share" }, "///host/share absolute_name"],
  ["has a drive's name", { name: "C:/evil" }, "/C:/evil absolute_name"],
  ["has a drive's name without a slash", { name: "c:evil" }, "/c:evil absolute_name"],
  ["has a backslash", { name: "..\\evil" }, "/..\\evil invalid_name"],
  ["has a name as Windows writes it", { name: "payloads\\a.py" }, "/payloads\\a.py invalid_name"],
  ["has a line break in its name", { name: "a\nb" }, "/a\nb invalid_name"],
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
  ["has a name of 4,096 characters", { name: "n".repeat(4096) }, `/${"n".repeat(199)}… invalid_name`],
  ["is a symlink", { name: "a", content: "/etc/passwd", mode: 0o120777 }, "/a symlink"],
  ["is a device", { name: "a", mode: 0o020666 }, "/a special_file"],
  ["is a pipe", { name: "a", mode: 0o010666 }, "/a special_file"],
  ["is a folder by mode only", { name: "a", mode: 0o040755 }, "/a special_file"],
  ["is encrypted", { name: "a", flags: 1 }, "/a encrypted"],
  ["is compressed in a rare way", { name: "a", method: 12 }, "/a unsupported_compression"],
  ["is there twice", { name: "manifest.json" }, "/manifest.json duplicate_entry"],
  ["is a folder where a file is", { name: "manifest.json/" }, "/manifest.json duplicate_entry"],
  ["lies in a file", { name: "manifest.json/x" }, "/manifest.json/x duplicate_entry"],
  ["lies two levels below a file", { name: "manifest.json/x/y" }, "/manifest.json/x/y duplicate_entry"],
  ["declares less than it holds", { name: "a", content: "12345", claimedSizeBytes: 4 }, "/a size_mismatch"],
  ["declares more than it holds", { name: "a", content: "12345", claimedSizeBytes: 6 }, "/a size_mismatch"],
  [
    "is stored and declares another size",
    { name: "a", content: "12345", isStored: true, claimedSizeBytes: 4 },
    "/a size_mismatch",
  ],
  [
    "is large and declares less than it holds",
    { name: "a", content: Buffer.alloc(100_000), claimedSizeBytes: 99_999 },
    "/a size_mismatch",
  ],
  [
    "is large and declares more than it holds",
    { name: "a", content: Buffer.alloc(100_000), claimedSizeBytes: 100_001 },
    "/a size_mismatch",
  ],
  ["has another name in its own header", { name: "a", own: { name: "../a" } }, "/a contradictory_entry"],
  ["has a longer name in its own header", { name: "a", own: { name: "ab" } }, "/a contradictory_entry"],
  ["has another compression in its own header", { name: "a", own: { method: 0 } }, "/a contradictory_entry"],
  [
    "has another size in its own header",
    { name: "a", content: "12345", own: { sizeBytes: 4 } },
    "/a contradictory_entry",
  ],
  [
    "has another packed size in its own header",
    { name: "a", content: "12345", own: { packedBytes: 1 } },
    "/a contradictory_entry",
  ],
  [
    "has another checksum in its own header",
    { name: "a", content: "12345", own: { crc32: 7 } },
    "/a contradictory_entry",
  ],
  ["shares the bytes of another", { name: "a", samePlaceAs: 0 }, "/a shared_bytes"],
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
  const byDirectory = wrong.filter(([, entry]) => entry.content === undefined && entry.own === undefined);
  const zip = zipOf(
    bundleFiles(),
    byDirectory.map(([, entry]) => entry),
  );
  const expected = byDirectory.map(([, , problem]) => problem);
  assert.deepEqual((await refusalsOf(zip)).toSorted(), expected.toSorted());
});

test("every entry whose content is wrong is reported at once", async () => {
  const zip = zipOf(bundleFiles(), [
    { name: "a", content: "12345", claimedSizeBytes: 4 },
    { name: "b", content: "12345", claimedCrc32: 7 },
    { name: "c", own: { name: "d" } },
  ]);
  assert.deepEqual((await refusalsOf(zip)).toSorted(), [
    "/a size_mismatch",
    "/b damaged_entry",
    "/c contradictory_entry",
  ]);
});

test("wrong entries, a wrong manifest and wrong configuration are reported together", async () => {
  const files = { "manifest.json": '{"manifest_version":"1.0","graph_id":"g"}', "config/default.json": "[]" };
  const zip = zipOf(files, [{ name: "link", mode: 0o120777 }]);
  assert.deepEqual(await refusalsOf(zip), [
    "/link symlink",
    "/config/default.json wrong_type",
    "/nodes missing",
    "/entrypoints missing",
  ]);
});

test("a manifest that was refused itself is not called missing", async () => {
  for (const [entry, problem] of [
    [{ flags: 1 }, "encrypted"],
    [{ mode: 0o120777 }, "symlink"],
    [{ claimedCrc32: 7 }, "damaged_entry"],
  ] as const) {
    const zip = makeZip([{ name: "manifest.json", content: manifestJson, ...entry }]);
    assert.deepEqual(await refusalsOf(zip), [`/manifest.json ${problem}`]);
  }
  const half = makeZip([{ name: "manifest.json", content: '{"graph_id":"g"}', claimedCrc32: 7 }]);
  assert.deepEqual(await refusalsOf(half), ["/manifest.json damaged_entry"]);
  const nested = makeZip([{ name: "top/manifest.json", content: manifestJson, flags: 1 }]);
  assert.deepEqual(await refusalsOf(nested), ["/top/manifest.json encrypted"]);
});

test("a problem's message names the file it is in", async () => {
  await using place = await makePlace();
  const files = { "manifest.json": '{"manifest_version":"1.0","graph_id":"g"}', "config/default.json": "[" };
  const zip = zipOf(files, [{ name: "payloads/x", mode: 0o120777 }]);
  const names = ["payloads/x", "config/default.json", "manifest.json: ", "manifest.json: "];
  await assert.rejects(place.bundles.receiveZip(Readable.from([zip])), (error) => {
    assert.ok(error instanceof BundleProblem);
    for (const [i, { message }] of error.problems.entries())
      assert.ok(message.includes(names[i] ?? "?"), message);
    return error.problems.length === names.length;
  });
});

test("a zip that hides entries behind the last one it counts is refused", async () => {
  const zip = zipOf(bundleFiles({ "payloads/hidden": "x" }));
  const count = zip.readUInt16LE(zip.length - 12) - 1;
  zip.writeUInt16LE(count, zip.length - 12);
  zip.writeUInt16LE(count, zip.length - 14);
  assert.deepEqual(await refusalsOf(zip), [" invalid_zip"]);
});

test("files in more than 20,000 folders are refused before one is made, however few files there are", async () => {
  await using place = await makePlace({ bundleBytesMax: 1024 * 1024 });
  const deep = Array.from({ length: 45 }, (_, i) => ({ name: `${i}/${"a/".repeat(500)}f` }));
  const zip = zipOf(bundleFiles(), deep);
  assert.deepEqual(await refusals(place.bundles.registerZip({ file: Readable.from([zip]) })), [
    " too_many_entries",
  ]);
});

test("bytes behind the end of the zip are refused", async () => {
  const zip = Buffer.concat([zipOf(bundleFiles()), Buffer.from("garbage")]);
  assert.deepEqual(await refusalsOf(zip), [" not_a_zip"]);
});

test("a zip that declares more than 20 times the limit is refused before it is unpacked", async () => {
  const room = BUNDLE_BYTES_MAX * 20 - manifestJson.length;
  const zip = (entry: Omit<ZipEntry, "name">) =>
    makeZip([
      { name: "manifest.json", content: manifestJson },
      { name: "payloads/bomb", ...entry },
    ]);
  // It would be found to hold less, were it unpacked.
  assert.deepEqual(await refusalsOf(zip({ content: "x", claimedSizeBytes: room + 1 })), [" too_large"]);
  await using place = await makePlace();
  const record = await place.bundles.registerZip({
    file: Readable.from([zip({ content: Buffer.alloc(room) })]),
  });
  assert.equal(record.sizeBytes, BUNDLE_BYTES_MAX * 20);
});

test("a bomb that declares little is stopped at what it declared", async () => {
  for (const claimedSizeBytes of [0, 100, 100_000]) {
    await using place = await makePlace();
    const zip = zipOf(bundleFiles(), [
      { name: "payloads/bomb", content: Buffer.alloc(30 * 1024 * 1024), claimedSizeBytes },
    ]);
    await assert.rejects(place.bundles.receiveZip(Readable.from([zip])), {
      name: "BundleProblem",
      message: `Invalid bundle: the entry "payloads/bomb" declares ${claimedSizeBytes} bytes and holds more`,
    });
  }
});

test("an upload of more bytes than the limit is refused", async () => {
  const refused = await refusalsOf(Buffer.alloc(BUNDLE_BYTES_MAX + 1));
  assert.deepEqual(refused, [" upload_too_large"]);
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

test("a file that is no zip, is empty, or is truncated is refused", async () => {
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

test("random damage to a zip is a problem or has no effect, and never anything else", async () => {
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
