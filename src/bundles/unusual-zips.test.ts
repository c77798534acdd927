// Goal: zips that are unusual and not wrong are taken, whatever program made them. Method: zips made by hand and by a
// library, each with one thing that few zips have.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import yazl from "yazl";
import {
  bundleFiles,
  makePlace,
  makeZip,
  manifestJson,
  noise,
  refusals,
  writeFiles,
  type ZipEntry,
  zipOf,
} from "../../test/support/bundles.ts";
import { type BundleSource, writeFileOnce } from "./snapshot-files.ts";
import { Snapshots } from "./snapshots.ts";

/** Whether the disk for temporary files keeps these two names apart. */
async function areTwoNames(a: string, b: string): Promise<boolean> {
  await using place = await makePlace();
  await writeFile(join(place.folder, a), "");
  return writeFile(join(place.folder, b), "", { flag: "wx" }).then(
    () => true,
    () => false,
  );
}

test("names that differ in case or accents only are two files where the disk keeps them apart", async () => {
  for (const [a, b] of [
    ["Read.me", "READ.ME"],
    ["\u00e9", "e\u0301"],
  ] as const) {
    await using place = await makePlace();
    const zip = zipOf(bundleFiles({ [`payloads/${a}`]: "1", [`payloads/${b}`]: "2" }));
    const refused = await refusals(place.bundles.registerZip({ file: Readable.from([zip]) }));
    const isKept = await areTwoNames(a, b);
    assert.deepEqual(
      refused.map((problem) => problem.split(" ")[1]),
      isKept ? ["refused"] : ["duplicate_entry"],
    );
  }
});

test("two names that the disk treats as one are a problem of the bundle", async () => {
  await using place = await makePlace();
  const snapshots = new Snapshots(join(place.folder, "one-name"), {
    bytesMax: 1_000,
    totalBytesMax: 0,
    nowMs: () => 1,
    isNamed: async () => true,
    shared: null,
  });
  await snapshots.open();
  const files = ["manifest.json", "payloads/a", "payloads/a"].map((path) => ({
    path,
    isExecutable: false,
    sizeBytes: 0,
  }));
  const source: BundleSource = {
    files,
    problems: [],
    write: ({ path }, target) =>
      writeFileOnce(target, [Buffer.from(path === "manifest.json" ? manifestJson : "")], false),
    close: async () => {},
  };
  const taken = snapshots.withTemporary((folder) => snapshots.take(source, folder, { isMarked: true }));
  assert.deepEqual(await refusals(taken), ["/payloads/a duplicate_entry"]);
});

const unusual: readonly (readonly [string, ZipEntry])[] = [
  ["a name that Windows reserves", { name: "payloads/aux.py" }],
  ["a name with a colon", { name: "payloads/12:30.log" }],
  ["a name that only looks like a way out", { name: "payloads/..a/b.." }],
  ["an entry without a mode, as Windows makes it", { name: "payloads/a", mode: 0 }],
  ["a folder's entry", { name: "payloads/a/", mode: 0o040755 }],
  [
    "more extra fields in its own header",
    { name: "payloads/a", content: "12", own: { extra: Buffer.alloc(64) } },
  ],
  [
    "no sizes in its own header",
    { name: "payloads/a", content: "12", own: { crc32: 0, packedBytes: 0, sizeBytes: 0 } },
  ],
  [
    "sizes in a field for large zips",
    { name: "payloads/a", content: "12", own: { packedBytes: 0xffffffff, sizeBytes: 0xffffffff } },
  ],
  [
    "sizes and checksum after the content",
    { name: "payloads/a", content: "12", flags: 8, own: { crc32: 0, packedBytes: 0, sizeBytes: 0 } },
  ],
];

for (const [name, entry] of unusual) {
  test(`a zip with ${name} is taken`, async () => {
    await using place = await makePlace();
    const zip = zipOf(bundleFiles(), [entry]);
    assert.deepEqual(await refusals(place.bundles.receiveZip(Readable.from([zip]))), ["not refused"]);
  });
}

test("zips with comments, with sizes after the content and with the fields for large zips are taken alike", async () => {
  await using place = await makePlace();
  const fingerprints = new Set<string>();
  for (const way of ["plain", "comments", "streamed", "zip64"]) {
    const zip = new yazl.ZipFile();
    for (const [name, content] of Object.entries(bundleFiles())) {
      const bytes = Buffer.from(content);
      if (way === "streamed") zip.addReadStream(Readable.from([bytes]), name);
      else {
        const more =
          way === "comments" ? { fileComment: "PK\x01\x02" } : { forceZip64Format: way === "zip64" };
        zip.addBuffer(bytes, name, more);
      }
    }
    zip.end({ forceZip64Format: way === "zip64", comment: way === "comments" ? "made by hand" : "" });
    const { record } = await place.bundles.receiveZip(Readable.from(zip.outputStream));
    fingerprints.add(record.fingerprint);
  }
  assert.equal(fingerprints.size, 1);
});

test("large entries, packed and not, are unpacked whole", async () => {
  await using place = await makePlace({ bundleBytesMax: 4 * 1024 * 1024 });
  const content = noise(900 * 1024 + 7);
  const zip = makeZip([
    { name: "manifest.json", content: manifestJson },
    { name: "payloads/packed", content },
    { name: "payloads/stored", content, isStored: true },
  ]);
  const { record } = await place.bundles.receiveZip(Readable.from([zip]));
  for (const name of ["packed", "stored"]) {
    const kept = await readFile(join(place.bundles.snapshots.payloads(record.fingerprint), name));
    assert.ok(kept.equals(content), name);
  }
});

test("a zip leaves out what a folder leaves out, so that both are the same bundle", async () => {
  await using place = await makePlace();
  const tools = {
    ".env": "TOKEN=1",
    ".git/config": "",
    "node_modules/x/index.js": "",
    "__MACOSX/._manifest.json": "",
    "lib/.git/config": "",
    "lib/__pycache__/x.pyc": "",
  };
  const kept = {
    "lib/.keep": "",
    "lib/node_modules/y/index.js": "",
    "lib/x.git/y": "",
    "lib/.gitignore": "",
  };
  const path = await writeFiles(join(place.folder, "b"), bundleFiles({ ...tools, ...kept }));
  const fromFolder = await place.bundles.registerFolder({ path });
  const bare = await place.bundles.receiveZip(Readable.from([zipOf(bundleFiles(kept))]));
  assert.equal(bare.record.fingerprint, fromFolder.fingerprint);
  const all = bundleFiles({ ...tools, ...kept });
  const inFolder = Object.entries(all).map(([name, content]) => [`my/${name}`, content] as const);
  for (const files of [all, { ".DS_Store": "", "__MACOSX/my/._x": "", ...Object.fromEntries(inFolder) }]) {
    const { record } = await place.bundles.receiveZip(Readable.from([zipOf(files)]));
    assert.equal(record.fingerprint, fromFolder.fingerprint);
  }
});
