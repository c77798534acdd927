// Copies that are nobody else's: never a hard link, flat memory, a signal that takes effect, and no half-copied file.

import assert from "node:assert/strict";
import { appendFileSync, constants, existsSync } from "node:fs";
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { FileChanged, FileCopier } from "../../lib/copy-file.ts";
import { CopyFailed, copyPayload, copyScanned } from "./payload.ts";
import { scanFolder } from "./scan-folder.ts";

const MiB = 1024 * 1024;
/** A file of the system's, some bytes long, that says it has 4096. */
const CLAIMS_MORE = "/sys/kernel/address_bits";
const never = new AbortController().signal;
let folder = "";
let canClone = false;

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "copy-")));
  await writeFile(join(folder, "probe"), "x");
  canClone = await copyFile(
    join(folder, "probe"),
    join(folder, "clone"),
    constants.COPYFILE_FICLONE_FORCE,
  ).then(
    () => true,
    () => false,
  );
});
after(() => rm(folder, { recursive: true, force: true }));

/** A file of this size that takes no room. */
async function hollow(name: string, sizeBytes: number): Promise<string> {
  const path = join(folder, name);
  await using file = await open(path, "w");
  await file.truncate(sizeBytes);
  return path;
}

for (const [what, size] of [
  ["small", 10],
  ["large", 9 * MiB + 7],
] as const) {
  test(`a ${what} file's copy has the same bytes and is another file: a write to it is not seen by the original`, async () => {
    const from = join(folder, `from-${what}`);
    const to = join(folder, `to-${what}`);
    const bytes = Buffer.alloc(size, "troupe ");
    await writeFile(from, bytes);
    let told = 0;
    await new FileCopier(never).copy(from, to, (more) => {
      told += more;
    });
    assert.equal(told, size);
    assert.ok(bytes.equals(await readFile(to)));
    const [original, copy] = await Promise.all([stat(from), stat(to)]);
    assert.notEqual(original.ino, copy.ino);
    assert.deepEqual([original.nlink, copy.nlink], [1, 1]);
    appendFileSync(to, "changed by a worker");
    assert.ok(bytes.equals(await readFile(from)));
  });
}

test("a copy may be written by its owner, and is executable if the original is; nothing else of a mode comes along", async () => {
  for (const [mode, expected] of [
    [0o444, 0o644],
    [0o555, 0o755],
    [0o4755, 0o755],
    [0o640, 0o640],
  ] as const) {
    const from = join(folder, `mode-${mode}`);
    await writeFile(from, "x");
    await chmod(from, mode);
    await new FileCopier(never).copy(from, `${from}.copy`, () => {});
    assert.equal((await stat(`${from}.copy`)).mode & 0o7777, expected, mode.toString(8));
  }
});

test("a large file leaves memory flat", { skip: canClone }, async () => {
  const from = await hollow("large", 160 * MiB);
  const before = process.memoryUsage().rss;
  let peak = before;
  await new FileCopier(never).copy(from, join(folder, "large.copy"), () => {
    peak = Math.max(peak, process.memoryUsage().rss);
  });
  assert.equal((await stat(join(folder, "large.copy"))).size, 160 * MiB);
  assert.ok(peak - before < 64 * MiB, `${(peak - before) / MiB} MiB more`);
  await rm(join(folder, "large.copy"));
});

test("an abort takes effect within a chunk, and leaves nothing", async () => {
  const from = await hollow("aborted", 300 * MiB);
  const to = join(folder, "aborted.copy");
  const abort = new AbortController();
  const reason = new Error("cancelled");
  let bytes = 0;
  const copying = new FileCopier(abort.signal).copy(from, to, (more) => {
    bytes += more;
    abort.abort(reason);
  });
  if (canClone) return await copying;
  await assert.rejects(copying, reason);
  assert.equal(bytes, MiB);
  await assert.rejects(stat(to), { code: "ENOENT" });
});

test("a file that changes while it is copied is not accepted", { skip: canClone }, async () => {
  const from = await hollow("growing", 8 * MiB);
  const to = join(folder, "growing.copy");
  const copying = new FileCopier(never).copy(from, to, () => appendFileSync(from, "more"));
  await assert.rejects(copying, FileChanged);
  await assert.rejects(stat(to), { code: "ENOENT" });
});

test("a link in place of the file that was found is not followed", async () => {
  await writeFile(join(folder, "target"), "secret");
  await symlink(join(folder, "target"), join(folder, "swapped"));
  const copying = new FileCopier(never).copy(join(folder, "swapped"), join(folder, "swapped.copy"), () => {});
  await assert.rejects(copying, FileChanged);
});

test("a folder that has become a link by the time it is copied is not followed out of the user's", async () => {
  const from = join(folder, "swapping");
  const outside = join(folder, "elsewhere");
  for (const place of [join(from, "sub"), outside]) {
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "a.txt"), place);
  }
  const scan = await scanFolder(from, { allowedExtensions: null, signal: never });
  await rename(join(from, "sub"), join(from, "before"));
  await symlink(outside, join(from, "sub"));
  const to = join(folder, "swapped-folder");
  await assert.rejects(copyScanned(scan, to, { signal: never, copied: () => {} }), {
    path: "sub/a.txt",
    message: "it changed while it was copied",
  });
  await assert.rejects(stat(join(to, "sub/a.txt")), { code: "ENOENT" });
});

test("a folder's copy has its files and its inner links, and tells how far it is", async () => {
  const from = join(folder, "chosen");
  await mkdir(join(from, "2024"), { recursive: true });
  await writeFile(join(from, "2024/a.txt"), "aaa");
  await writeFile(join(from, "b.txt"), "bb");
  await writeFile(join(from, "c.bin"), "");
  await symlink("2024", join(from, "latest"));
  await symlink("2024/a.txt", join(from, "alias.txt"));
  await mkdir(join(from, "empty"));
  await symlink("empty", join(from, "to-empty"));
  const scan = await scanFolder(from, { allowedExtensions: [".txt"], signal: never });
  const told: [number, number][] = [];
  const to = join(folder, "staged/here");
  await copyScanned(scan, to, { signal: never, copied: (...numbers) => told.push(numbers) });
  assert.deepEqual((await readdir(to)).sort(), ["2024", "alias.txt", "b.txt", "latest"]);
  assert.equal(await readlink(join(to, "latest")), "2024");
  assert.equal(await readFile(join(to, "alias.txt"), "utf8"), "aaa");
  assert.ok((await stat(join(to, "alias.txt"))).isFile());
  assert.deepEqual(told.at(-1), [3, 8]);
});

test("reading a file ends when it is shorter than its size", { skip: !existsSync(CLAIMS_MORE) }, async () => {
  const to = join(folder, "claims-more");
  await new FileCopier(never).copy(CLAIMS_MORE, to, () => {});
  assert.equal(await readFile(to, "utf8"), await readFile(CLAIMS_MORE, "utf8"));
});

test("a file that is gone by the time it is copied is named", async () => {
  const from = join(folder, "vanishing");
  await mkdir(from);
  await writeFile(join(from, "gone.txt"), "x");
  const scan = await scanFolder(from, { allowedExtensions: null, signal: never });
  await rm(join(from, "gone.txt"));
  const copying = copyScanned(scan, join(folder, "vanished"), { signal: never, copied: () => {} });
  await assert.rejects(copying, (error) => {
    assert.ok(error instanceof CopyFailed);
    assert.deepEqual([error.path, error.message], ["gone.txt", "it is not there any more"]);
    return true;
  });
});

test("a payload's copy is whole; for a check, large files that the disk cannot clone are links to the package's", async () => {
  const from = join(folder, "payloads");
  await mkdir(join(from, "sub"), { recursive: true });
  await writeFile(join(from, "small.txt"), "small", { mode: 0o444 });
  await writeFile(join(from, "sub/large.bin"), "large enough", { mode: 0o444 });
  const whole = join(folder, "whole");
  await copyPayload(from, whole, { signal: never });
  for (const path of ["small.txt", "sub/large.bin"]) {
    assert.ok((await lstat(join(whole, path))).isFile());
    assert.equal((await lstat(join(whole, path))).mode & 0o200, 0o200);
  }
  const linked = join(folder, "linked");
  await copyPayload(from, linked, { signal: never, linkFromBytes: 10 });
  assert.ok((await lstat(join(linked, "small.txt"))).isFile());
  assert.equal((await lstat(join(linked, "sub/large.bin"))).isSymbolicLink(), !canClone);
  assert.equal(await readFile(join(linked, "sub/large.bin"), "utf8"), "large enough");
});
