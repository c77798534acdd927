// Goal: a small upload takes little disk, all bundles together keep to their quota, and what is not kept is freed at
// once. Method: real zips that inflate, and what lies on the disk afterwards.

import assert from "node:assert/strict";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import {
  bundleFiles,
  makePlace,
  makeZip,
  manifestJson,
  noise,
  type Place,
  refusals,
  type ZipEntry,
  zipOf,
} from "../../test/support/bundles.ts";
import { KeyedMutex } from "../lib/async.ts";
import { DiskQuota } from "./disk-quota.ts";
import { BundlesFull } from "./problem.ts";

const MiB = 1024 * 1024;
const upload = (zip: Buffer) => ({ file: Readable.from([zip]) });
const left = async ({ home }: Place) => (await readdir(join(home, "bundles"))).sort();
const withManifest = (entries: readonly ZipEntry[]) =>
  makeZip([{ name: "manifest.json", content: manifestJson }, ...entries]);

test("an entry that unpacks to more than 100 times its size is refused before it is unpacked", async () => {
  await using place = await makePlace({ bundleBytesMax: 64 * MiB });
  const bomb = withManifest([{ name: "payloads/zeros", content: Buffer.alloc(11 * MiB) }]);
  assert.deepEqual(await refusals(place.bundles.registerZip(upload(bomb))), ["/payloads/zeros inflated"]);
  assert.deepEqual(await left(place), ["incoming"]);
});

test("entries that each unpack to little, and together to more than 100 times the upload, are refused", async () => {
  await using place = await makePlace({ bundleBytesMax: 64 * MiB });
  const content = Buffer.alloc(MiB);
  const bomb = withManifest(Array.from({ length: 12 }, (_, i) => ({ name: `payloads/${i}`, content })));
  assert.deepEqual(await refusals(place.bundles.registerZip(upload(bomb))), [" inflated"]);
  assert.deepEqual(await left(place), ["incoming"]);
});

test("a small zip with a high ratio, and a large one with a low ratio, are accepted", async () => {
  await using place = await makePlace({ bundleBytesMax: 64 * MiB });
  const small = withManifest([{ name: "payloads/zeros", content: Buffer.alloc(9 * MiB) }]);
  await place.bundles.registerZip(upload(small));
  const stored = withManifest([{ name: "payloads/zeros", content: Buffer.alloc(11 * MiB), isStored: true }]);
  await place.bundles.registerZip(upload(stored));
});

const bundleOf = (sizeBytes: number, name: string) =>
  zipOf(bundleFiles(), [{ name, content: noise(sizeBytes) }]);

test("bundles over the quota together are refused, folders too; a deleted one makes room", async () => {
  await using place = await makePlace({ bundlesBytesMax: 50_000 });
  const { bundles, records } = place;
  const first = await bundles.registerZip(upload(bundleOf(30_000, "a")));
  const isFull = (error: unknown) => {
    assert.ok(error instanceof BundlesFull);
    assert.match(
      error.message,
      /SVC_BUNDLES_MAX_BYTES \(50000\)\. Delete bundles that no job uses, or raise/,
    );
    return true;
  };
  await assert.rejects(bundles.registerZip(upload(bundleOf(30_000, "b"))), isFull);
  // A fresh process finds out what there is.
  const fresh = await place.reopen();
  await assert.rejects(fresh.registerZip(upload(bundleOf(30_000, "b"))), isFull);
  assert.deepEqual(await left(place), [first.fingerprint, "incoming"].sort());
  await fresh.detach(first, () => records.delete(first.bundleId));
  assert.deepEqual(await left(place), ["incoming"]);
  await fresh.registerZip(upload(bundleOf(30_000, "b")));
});

test("a quota that could not be measured once is measured again", async () => {
  await using place = await makePlace();
  const root = join(place.home, "not-yet-a-folder");
  await writeFile(root, "");
  const quota = new DiskQuota(root, { bytesMax: 100, turns: new KeyedMutex() });
  await assert.rejects(quota.reserve(1), { code: "ENOTDIR" });
  await rm(root);
  await mkdir(root);
  (await quota.reserve(100))[Symbol.dispose]();
});

test("uploads that arrive together share one quota", async () => {
  await using place = await makePlace({ bundlesBytesMax: 50_000 });
  const uploads = Array.from({ length: 6 }, (_, i) =>
    place.bundles.registerZip(upload(bundleOf(20_000, `file-${i}`))),
  );
  const settled = await Promise.allSettled(uploads);
  assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 2);
  assert.equal((await left(place)).length, 3);
});

test("a bundle larger than the free space is refused before a byte is unpacked", async () => {
  await using place = await makePlace();
  const room = new DiskQuota(place.home, { bytesMax: 0, turns: new KeyedMutex() });
  await assert.rejects(room.reserve(Number.MAX_VALUE), { code: "ENOSPC", syscall: "statfs" });
  (await room.reserve(1))[Symbol.dispose]();
});

test("a snapshot that a blueprint's addition or a submission holds stays until it is released", async () => {
  await using place = await makePlace();
  const { bundles, records } = place;
  const record = await bundles.registerZip(upload(zipOf(bundleFiles())));
  const launch = await bundles.launch(record.bundleId, {});
  assert.equal(launch?.fingerprint, record.fingerprint);
  await bundles.detach(record, () => records.delete(record.bundleId));
  assert.ok((await left(place)).includes(record.fingerprint));
  assert.equal(await bundles.launch(record.bundleId, {}), null);
  await bundles.snapshots.release(record.fingerprint);
  assert.deepEqual(await left(place), ["incoming"]);
});

test("a snapshot that a killed process was detaching is removed by the next start, unless it is still referenced", async () => {
  await using place = await makePlace();
  const { bundles, records } = place;
  const one = await bundles.registerZip(upload(zipOf(bundleFiles({ "payloads/n": "1" }))));
  const other = await bundles.registerZip(upload(zipOf(bundleFiles({ "payloads/n": "2" }))));
  // As far as a deletion comes before it is killed: before its commit, and behind it.
  await bundles.holdForDetach(one.fingerprint);
  await bundles.holdForDetach(other.fingerprint);
  await records.delete(other.bundleId);
  await place.reopen();
  assert.deepEqual(await left(place), [one.fingerprint, "incoming"].sort());
});
