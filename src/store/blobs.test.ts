import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { pathsSynced, seesHandles } from "../../test/support/synced.ts";
import { until } from "../../test/support/until.ts";
import { FileBlobs } from "./blobs.ts";

describe("file blobs", () => {
  let folder: string;
  let blobs: FileBlobs;
  const root = () => join(folder, "blobs");
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-blobs-"));
    blobs = new FileBlobs(root());
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const sha256 = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");

  it("moves a file in under the hash of its bytes, read-only", async () => {
    const content = Buffer.alloc(600_000, "abc");
    const path = join(folder, "report.md");
    await writeFile(path, content, { mode: 0o666 });
    const blob = await blobs.put(path);
    assert.deepEqual(blob, { sha256: sha256(content), size: 600_000 });
    await assert.rejects(lstat(path), { code: "ENOENT" });
    const found = await blobs.open(blob.sha256);
    assert.equal(found?.path, join(root(), blob.sha256.slice(0, 2), blob.sha256));
    assert.equal(found?.size, 600_000);
    assert.deepEqual(await readFile(found.path), content);
    assert.equal((await lstat(found.path)).mode & 0o777, 0o400);
  });

  it("has synced the bytes, their name and the names of new folders when it resolves", {
    skip: !seesHandles,
  }, async () => {
    const path = join(folder, "report.md");
    await writeFile(path, "abc");
    const folderOf = (text: string) => join(root(), sha256(text).slice(0, 2));
    const kept = async (put: () => Promise<unknown>) => {
      const synced = await pathsSynced(async () => void (await put()));
      return synced.map((one) => (one.startsWith(join(root(), "incoming/")) ? "bytes" : one));
    };
    assert.deepEqual(await kept(() => blobs.put(path)), [folder, "bytes", folderOf("abc"), root()]);
    const other = Buffer.from("another");
    assert.deepEqual(await kept(() => blobs.putBytes(other)), ["bytes", folderOf("another"), root()]);
    assert.deepEqual(await kept(() => blobs.putBytes(other)), ["bytes", folderOf("another")]);
  });

  it("keeps the same content once, also when it is put twice at the same time", async () => {
    const put = await Promise.all([blobs.putBytes(Buffer.from("same")), blobs.putBytes(Buffer.from("same"))]);
    assert.deepEqual(put[0], put[1]);
    assert.deepEqual(await readdir(join(root(), put[0].sha256.slice(0, 2))), [put[0].sha256]);
    assert.deepEqual(await readdir(join(root(), "incoming")), []);
  });

  it("keeps empty content", async () => {
    const blob = await blobs.putBytes(new Uint8Array());
    assert.deepEqual(blob, { sha256: sha256(""), size: 0 });
    assert.equal((await blobs.open(blob.sha256))?.size, 0);
  });

  it("copies a file with another hard link, so that the blob cannot be written through it", async () => {
    const path = join(folder, "a");
    await writeFile(path, "first");
    await link(path, join(folder, "b"));
    const blob = await blobs.put(path);
    await writeFile(join(folder, "b"), "other");
    const found = await blobs.open(blob.sha256);
    assert.equal(await readFile(found?.path ?? "", "utf8"), "first");
    await assert.rejects(lstat(path), { code: "ENOENT" });
  });

  it("refuses symlinks and folders, and leaves them where they are", async () => {
    await writeFile(join(folder, "real"), "x");
    await symlink(join(folder, "real"), join(folder, "link"));
    await mkdir(join(folder, "sub"));
    await assert.rejects(blobs.put(join(folder, "link")), /not a regular file/);
    await assert.rejects(blobs.put(join(folder, "sub")), /not a regular file/);
    assert.ok((await lstat(join(folder, "link"))).isSymbolicLink());
    assert.equal(await readFile(join(folder, "real"), "utf8"), "x");
  });

  it("answers null for a hash that is none and for a blob that is not there", async () => {
    assert.equal(await blobs.open("../../etc/passwd"), null);
    assert.equal(await blobs.open("A".repeat(64)), null);
    assert.equal(await blobs.open("0".repeat(64)), null);
  });

  it("removes a blob, once or twice, and nothing by a name that is no hash", async () => {
    const blob = await blobs.putBytes(Buffer.from("gone"));
    await writeFile(join(folder, "kept"), "x");
    await blobs.removeUnlessPutSince(blob.sha256, 0);
    assert.notEqual(await blobs.open(blob.sha256), null, "it was put after that");
    const later = Date.now() + 60_000;
    await blobs.removeUnlessPutSince(blob.sha256, later);
    await blobs.removeUnlessPutSince(blob.sha256, later);
    await blobs.removeUnlessPutSince("../../kept", later);
    assert.equal(await blobs.open(blob.sha256), null);
    assert.equal(await readFile(join(folder, "kept"), "utf8"), "x");
  });

  it("a content that is put while it is being removed is there afterwards", async () => {
    const contents = Array.from({ length: 400 }, (_, i) => Buffer.from(`again ${i}`));
    const old = await Promise.all(contents.map((content) => blobs.putBytes(content)));
    const { ctimeMs } = await stat((await blobs.open(old.at(-1)!.sha256))?.path ?? "");
    const sinceMs = Math.max(ctimeMs, Date.now()) + 10;
    await until("the clock of the file system to move on", () => Date.now() > sinceMs + 20);
    // A removal at every moment of a put, so that some come right before the content gets its name.
    const race = async (content: Buffer, i: number) => {
      const put = blobs.putBytes(content);
      for (let turn = 0; turn < i % 100; turn++) await new Promise((resolve) => setImmediate(resolve));
      await blobs.removeUnlessPutSince(old[i]!.sha256, sinceMs);
      await put;
    };
    for (let i = 0; i < contents.length; i += 100) {
      await Promise.all(contents.slice(i, i + 100).map((content, j) => race(content, i + j)));
    }
    const found = await Promise.all(old.map((blob) => blobs.open(blob.sha256)));
    assert.ok(found.every((blob) => blob !== null));
  });

  it("reports what a removal would do, and does nothing, in a preview", async () => {
    const { sha256 } = await blobs.putBytes(Buffer.from("shown"));
    const later = Date.now() + 60_000;
    const preview = (sinceMs: number) => blobs.removeUnlessPutSince(sha256, sinceMs, { isPreview: true });
    assert.deepEqual(await preview(later), { kind: "removed", size: 5 });
    assert.deepEqual(await preview(0), { kind: "kept" });
    assert.deepEqual(await blobs.removeUnlessPutSince(sha256, later), { kind: "removed", size: 5 });
    assert.deepEqual(await preview(later), { kind: "missing" });
  });

  it("lists every blob once, a page at a time, and nothing else", async () => {
    assert.deepEqual(await Array.fromAsync(new FileBlobs(join(folder, "nowhere")).pages()), []);
    const put = await Promise.all(
      Array.from({ length: 300 }, (_, i) => blobs.putBytes(Buffer.from(`listed ${i}`))),
    );
    await mkdir(join(root(), "incoming"), { recursive: true });
    await writeFile(join(root(), "incoming", "0".repeat(64)), "half");
    await writeFile(join(root(), put[0]!.sha256.slice(0, 2), "stray"), "x");
    const pages = await Array.fromAsync(blobs.pages());
    assert.ok(pages.every((page) => page.length > 0 && page.length <= 200));
    assert.deepEqual(pages.flat().sort(), put.map(({ sha256 }) => sha256).sort());
  });

  it("repairs a damaged blob when the content is put again", async () => {
    const blob = await blobs.putBytes(Buffer.from("whole"));
    const path = (await blobs.open(blob.sha256))?.path ?? "";
    await rm(path);
    await writeFile(path, "dam");
    await blobs.putBytes(Buffer.from("whole"));
    assert.equal(await readFile(path, "utf8"), "whole");
  });

  it("removes partial files of a crash, and keeps the blobs", async () => {
    const blob = await blobs.putBytes(Buffer.from("kept"));
    await writeFile(join(root(), "incoming", "999-1"), "half");
    await new FileBlobs(root()).sweep();
    assert.deepEqual(await readdir(root()), [blob.sha256.slice(0, 2)]);
    assert.deepEqual(await blobs.putBytes(Buffer.from("kept")), blob);
  });
});
