// Copies a model's content, and finds out what it is: of a file its SHA-256, of a folder that of the list of its files, as
// `sha256sum` prints it: "<sha256>  <path>\n", in the order of the paths.

import { createHash, type Hash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { copyFile, type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FileChanged } from "../lib/copy-file.ts";
import { pathOfDescriptor } from "../lib/open-folder.ts";

const CHUNK_BYTES = 1024 * 1024;
const READ_ONLY = 0o400;

export interface Content {
  readonly sha256: string;
  readonly bytes: number;
}

/** Told of the bytes that are done, as they are. */
export type Done = (bytes: number) => void;

/**
 * Copies a file: as a clone where the file system can, otherwise what is read is hashed while it is written.
 *
 * @param to a name that does not exist; afterwards a read-only file that is on disk
 * @throws FileChanged when somebody wrote to it meanwhile; the system's errors
 */
export async function copyContent(from: string, to: string, done: Done): Promise<Content> {
  // A pipe would be waited for until somebody writes to it.
  await using source = await open(from, constants.O_RDONLY | constants.O_NONBLOCK);
  const before = await source.stat();
  if (!before.isFile()) throw new FileChanged();
  const isClone = await cloned(pathOfDescriptor(source.fd, from), to);
  const hash = createHash("sha256");
  {
    await using target = await open(to, isClone ? "r" : "wx", READ_ONLY);
    const written = isClone ? null : target;
    const bytes = await pass(isClone ? target : source, written, hash, done);
    if (!isSame(before, await source.stat()) || bytes !== before.size) throw new FileChanged();
    if (isClone) await target.chmod(READ_ONLY);
    await target.sync();
  }
  return { sha256: hash.digest("hex"), bytes: before.size };
}

/** @returns false when the file system cannot, and nothing is at `to` */
async function cloned(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" || code === "ENOSPC" || code === "EDQUOT") throw error;
    await rm(to, { force: true });
    return false;
  }
}

/** Reads, hashes and writes: while one piece is hashed, the next is read and the one before is written. @returns the bytes */
async function pass(source: FileHandle, target: FileHandle | null, hash: Hash, done: Done): Promise<number> {
  const buffers = [0, 1, 2].map(() => Buffer.allocUnsafeSlow(CHUNK_BYTES));
  let at = 0;
  let writing: Promise<unknown> = Promise.resolve();
  const read = (n: number, position: number) => source.read(buffers[n % 3]!, 0, CHUNK_BYTES, position);
  let reading = read(0, 0);
  for (let n = 0; ; n++) {
    const { bytesRead } = await reading;
    if (bytesRead === 0) break;
    const piece = buffers[n % 3]!.subarray(0, bytesRead);
    reading = read(n + 1, at + bytesRead);
    // Its failure is seen where it is waited for.
    reading.catch(() => {});
    hash.update(piece);
    await writing;
    writing = target === null ? writing : writeAll(target, piece, at);
    writing.catch(() => {});
    at += bytesRead;
    done(at);
  }
  await writing;
  return at;
}

async function writeAll(target: FileHandle, piece: Buffer, at: number): Promise<void> {
  for (let written = 0; written < piece.length; )
    written += (await target.write(piece, written, piece.length - written, at + written)).bytesWritten;
}

const isSame = (one: Stats, other: Stats) =>
  one.size === other.size && one.mtimeMs === other.mtimeMs && one.ino === other.ino;

/** Hashes what a file has, up to so many bytes, on top of what was hashed before. */
export async function hashInto(hash: Hash, path: string, done: Done): Promise<number> {
  await using source = await open(path, "r");
  return await pass(source, null, hash, done);
}

export async function hashedFile(path: string, done: Done): Promise<Content> {
  const hash = createHash("sha256");
  const bytes = await hashInto(hash, path, done);
  return { sha256: hash.digest("hex"), bytes };
}

/** @param files paths in the folder, with "/" */
export async function copyFolderContent(
  from: string,
  to: string,
  files: readonly string[],
  done: Done,
): Promise<Content> {
  return folderContent(files, done, async (path, told) => {
    const target = join(to, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    return copyContent(join(from, path), target, told);
  });
}

async function folderContent(
  files: readonly string[],
  done: Done,
  each: (path: string, done: Done) => Promise<Content>,
): Promise<Content> {
  const list = createHash("sha256");
  let bytes = 0;
  for (const path of files.toSorted()) {
    const before = bytes;
    const content = await each(path, (fileBytes) => done(before + fileBytes));
    bytes = before + content.bytes;
    list.update(`${content.sha256}  ${path}\n`);
  }
  return { sha256: list.digest("hex"), bytes };
}
