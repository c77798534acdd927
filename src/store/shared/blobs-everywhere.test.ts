// One contract for all stores of blobs: a folder of SVC_HOME, a folder that machines share, and a bucket.

import assert from "node:assert/strict";
import { createHash, randomFillSync } from "node:crypto";
import { link, lstat, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { type S3Server, startS3 } from "../../../test/support/s3-server.ts";
import { systemClock } from "../../app/clock.ts";
import { type Blobs, FileBlobs } from "../blobs.ts";
import { FolderObjects } from "./folder-objects.ts";
import { Removals } from "./removals.ts";
import { SharedBlobs } from "./shared-blobs.ts";

const sha256 = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest("hex");
const bytesOf = async (stream: Readable | null) => (stream === null ? null : buffer(stream));
const hourAhead = () => Date.now() + 3_600_000;

let s3: S3Server;
before(async () => {
  s3 = await startS3();
});
after(() => s3.close());

let prefixes = 0;

const kinds: readonly (readonly [string, (folder: string) => Promise<Blobs>])[] = [
  ["a folder of SVC_HOME", async (folder) => new FileBlobs(join(folder, "blobs"))],
  [
    "a shared folder",
    async (folder) => {
      await mkdir(join(folder, "shared"));
      return shared(new FolderObjects(join(folder, "shared"), "tester", Date.now));
    },
  ],
  ["a bucket", async () => shared(s3.objects(`of test ${++prefixes}/ä+b/`))],
];

function shared(objects: ConstructorParameters<typeof SharedBlobs>[0]) {
  return new SharedBlobs(objects, new Removals(objects, "tester", systemClock));
}

for (const [name, open] of kinds) {
  describe(`${name} as a store of blobs`, () => {
    let folder: string;
    let blobs: Blobs;
    let files = 0;
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), "troupe-blobs-"));
      blobs = await open(folder);
    });
    afterEach(() => rm(folder, { recursive: true, force: true }));

    const fileOf = async (bytes: string | Buffer, as = `file ${++files}`) => {
      await writeFile(join(folder, as), bytes);
      return join(folder, as);
    };
    const put = async (bytes: string | Buffer) => blobs.put(await fileOf(bytes));

    it("takes a file in under the hash of its bytes, and gives the bytes back", async () => {
      const path = await fileOf("abc", "odd näme +%20'\"\n.md");
      const blob = await blobs.put(path);
      assert.deepEqual(blob, { sha256: sha256("abc"), size: 3 });
      await assert.rejects(lstat(path), { code: "ENOENT" });
      assert.equal(String(await bytesOf(await blobs.read(blob, 0, 2))), "abc");
    });

    it("gives any part of a blob, ends included", async () => {
      const content = randomFillSync(Buffer.alloc(200_000));
      const blob = await put(content);
      const place = fc.integer({ min: 0, max: content.length - 1 });
      await fc.assert(
        fc.asyncProperty(place, place, async (one, other) => {
          const [first, last] = one < other ? [one, other] : [other, one];
          const read = await bytesOf(await blobs.read(blob, first, last));
          assert.ok(read?.equals(content.subarray(first, last + 1)));
        }),
        { numRuns: 20 },
      );
    });

    it("keeps a file of many parts", async () => {
      const content = randomFillSync(Buffer.alloc(20 * 1024 * 1024 + 1));
      const blob = await put(content);
      assert.deepEqual(blob, { sha256: sha256(content), size: content.length });
      assert.ok((await bytesOf(await blobs.read(blob, 0, blob.size - 1)))?.equals(content));
      const tail = await bytesOf(await blobs.read(blob, blob.size - 5, blob.size - 1));
      assert.ok(tail?.equals(content.subarray(-5)));
    });

    it("keeps empty content, and the same content once, also when it is put twice at the same time", async () => {
      await put("");
      const [one, other] = await Promise.all([put("same"), put("same")]);
      assert.deepEqual(one, other);
      const found = (await Array.fromAsync(blobs.pages())).flat();
      assert.deepEqual(found.sort(), [sha256(""), sha256("same")].sort());
    });

    it("refuses symlinks and folders, and takes no write through another link of a file", async () => {
      const real = await fileOf("real");
      await symlink(real, join(folder, "link"));
      await assert.rejects(blobs.put(join(folder, "link")), /not a regular file/);
      await assert.rejects(blobs.put(folder), /not a regular file/);
      await link(real, join(folder, "other name"));
      const blob = await blobs.put(real);
      await writeFile(join(folder, "other name"), "changed");
      assert.equal(String(await bytesOf(await blobs.read(blob, 0, 3))), "real");
    });

    it("answers null for a blob that is not there and for a hash that is none", async () => {
      for (const name of ["0".repeat(64), "../../etc/passwd", "A".repeat(64)]) {
        assert.equal(await blobs.read({ sha256: name, size: 1 }, 0, 0), null);
        assert.deepEqual(await blobs.removeUnlessPutSince(name, hourAhead()), { kind: "missing" });
      }
    });

    it("gives nothing of a blob that has another size than it must have", async () => {
      const blob = await put("whole");
      await assert.rejects(blobs.read({ ...blob, size: 6 }, 0, 5), /damaged|is not what was stored/);
      await assert.rejects(blobs.read({ ...blob, size: 6 }, 1, 2), /damaged|is not what was stored/);
    });

    it("removes a blob unless it was put since, and only when it is no preview", async () => {
      const { sha256: hash } = await put("gone");
      assert.deepEqual(await blobs.removeUnlessPutSince(hash, Date.now() - 60_000), { kind: "kept" });
      const removed = { kind: "removed", size: 4 };
      assert.deepEqual(await blobs.removeUnlessPutSince(hash, hourAhead(), { isPreview: true }), removed);
      assert.deepEqual(await blobs.removeUnlessPutSince(hash, hourAhead()), removed);
      assert.deepEqual(await blobs.removeUnlessPutSince(hash, hourAhead()), { kind: "missing" });
      assert.equal(await blobs.read({ sha256: hash, size: 4 }, 0, 3), null);
    });

    it("lists every blob once, a page at a time, and nothing else", async () => {
      assert.deepEqual(await Array.fromAsync(blobs.pages()), []);
      const contents = Array.from({ length: 201 }, (_, i) => `listed ${i}`);
      const all = await Promise.all(contents.map((content) => put(content)));
      const pages = await Array.fromAsync(blobs.pages());
      assert.ok(pages.every((page) => page.length > 0 && page.length <= 200));
      assert.deepEqual(pages.flat().sort(), all.map((blob) => blob.sha256).sort());
    });
  });
}
