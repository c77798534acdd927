// Content-addressed files: <root>/ab/abcd…, named by the SHA-256 of what they hold.
//
// Owns: everything below its root. Does not own who refers to a blob, nor when one may be removed.
//
// - A blob's name is the hash of its bytes; the file is complete, read-only and on disk before its name exists.
// - Nothing outside can write into a blob: a file with other hard links is copied, not moved. A symlink or a pipe that
//   replaced the file meanwhile is refused, and not followed.
// - A crash leaves at most a temporary file below <root>/incoming, which the next sweep removes.
// - Content that is put while it is being removed exists afterwards: the two are serialized.

import { createHash } from "node:crypto";
import { constants, createWriteStream } from "node:fs";
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { WrongBytes } from "../cluster/bytes.ts";
import { KeyedMutex } from "../lib/async.ts";
import { isMissing, syncFolder, writeNew } from "../lib/files.ts";
import type { BlobRemoval } from "../runs/cleanup.ts";
import { fileBytes } from "../runs/store/open-bytes.ts";

export interface Blob {
  /** 64 lower-case hex digits. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

/** Where the bytes of artifacts are kept: in SVC_HOME, or in a store that several machines share (shared/). */
export interface Blobs {
  /**
   * Takes a regular file in: `path` is gone afterwards. It can be read by everyone, and lasts, when it resolves.
   *
   * @throws when `path` is no regular file, or it cannot be kept
   */
  put(path: string): Promise<Blob>;
  /**
   * Opens some of a blob's bytes; both ends are included.
   *
   * @returns null when there is no such blob or the hash is none
   * @throws when it has another size
   */
  read(blob: Blob, first: number, last: number): Promise<Readable | null>;
  /**
   * Removes a blob that is not referenced any more, unless it was put again after `sinceMs`: a row that references it may
   * follow.
   *
   * @param sinceMs wall time in ms since 1970
   * @param options.isPreview only reports what would be removed
   */
  removeUnlessPutSince(
    sha256: string,
    sinceMs: number,
    options?: { readonly isPreview?: boolean },
  ): Promise<BlobRemoval>;
  /** The hashes of all blobs there are, a bounded page at a time; those that come and go meanwhile may be left out. */
  pages(): AsyncGenerator<readonly string[]>;
}

const BLOBS_PER_PAGE = 200;
export const HASH_PATTERN = /^[0-9a-f]{64}$/;
const READ_CHUNK_BYTES = 256 * 1024;

export class FileBlobs implements Blobs {
  readonly #root: string;
  readonly #incoming: string;
  #incomingSeq = 0;
  /** By hash. */
  readonly #turns = new KeyedMutex();

  /** @param root folder of the blobs; made when the first one is put */
  constructor(root: string) {
    this.#root = root;
    this.#incoming = join(root, "incoming");
  }

  /** Removes what a crash left half-written. To be called once, before the first put. */
  async sweep(): Promise<void> {
    await rm(this.#incoming, { recursive: true, force: true });
  }

  async put(path: string): Promise<Blob> {
    const temporary = await this.#temporaryName();
    try {
      if (!(await lstat(path)).isFile()) throw notRegular(path);
      await moveIn(path, temporary);
      return await this.#keep(temporary, path);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Keeps bytes as a blob. On disk when it resolves. */
  async putBytes(bytes: Uint8Array): Promise<Blob> {
    const temporary = await this.#temporaryName();
    try {
      await writeFile(temporary, bytes, { flag: "wx" });
      return await this.#keep(temporary, temporary);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /**
   * Keeps a copy of a blob whose bytes come from elsewhere. On disk when it resolves.
   *
   * @throws WrongBytes when they are not the blob's; the errors of `bytes`
   */
  async putCopy({ sha256, size }: Blob, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const temporary = await this.#temporaryName();
    try {
      await writeNew(temporary, atMost(size, bytes));
      await this.#keep(temporary, temporary, sha256);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** @returns where the blob's bytes are, or null when there is no such blob or the hash is none */
  async open(sha256: string): Promise<{ readonly path: string; readonly size: number } | null> {
    if (!HASH_PATTERN.test(sha256)) return null;
    const path = this.#pathOf(sha256);
    try {
      return { path, size: (await stat(path)).size };
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async read(blob: Blob, first: number, last: number): Promise<Readable | null> {
    const found = await this.open(blob.sha256);
    return found === null ? null : fileBytes({ path: found.path, size: blob.size })(first, last);
  }

  async removeUnlessPutSince(
    sha256: string,
    sinceMs: number,
    { isPreview = false }: { readonly isPreview?: boolean } = {},
  ): Promise<BlobRemoval> {
    if (!HASH_PATTERN.test(sha256)) return { kind: "missing" };
    const path = this.#pathOf(sha256);
    return this.#turns.run(sha256, async (): Promise<BlobRemoval> => {
      try {
        // A put renames the file into place, which stamps its change time.
        const { ctimeMs, size } = await stat(path);
        if (ctimeMs >= sinceMs) return { kind: "kept" };
        if (!isPreview) await rm(path, { force: true });
        return { kind: "removed", size };
      } catch (error) {
        if (isMissing(error)) return { kind: "missing" };
        throw error;
      }
    });
  }

  async *pages(): AsyncGenerator<readonly string[]> {
    const folders = await readdir(this.#root).catch(orNone);
    for (const name of folders.filter((one) => /^[0-9a-f]{2}$/.test(one)).sort()) {
      const folder = await opendir(join(this.#root, name)).catch(orNone);
      let page: string[] = [];
      for await (const entry of folder) {
        if (HASH_PATTERN.test(entry.name)) page.push(entry.name);
        if (page.length < BLOBS_PER_PAGE) continue;
        yield page;
        page = [];
      }
      if (page.length > 0) yield page;
    }
  }

  /** Keeps a copy of a file that has another name, through which it may still be written. */
  async #keepCopy(temporary: string, origin: string): Promise<Blob> {
    const copied = await this.#temporaryName();
    try {
      await copy(temporary, copied);
      return await this.#keep(copied, origin);
    } finally {
      await rm(copied, { force: true });
    }
  }

  #pathOf(sha256: string): string {
    return join(this.#root, sha256.slice(0, 2), sha256);
  }

  async #temporaryName(): Promise<string> {
    const made = await mkdir(this.#incoming, { recursive: true });
    // The folder of all blobs may be new, and its name has to last as well.
    if (made !== undefined) await syncFolder(dirname(made));
    return join(this.#incoming, `${process.pid}-${++this.#incomingSeq}`);
  }

  /**
   * Hashes, syncs and names a file that already lies in `incoming`; it came from `origin`.
   *
   * @param wanted the hash that it must have
   */
  async #keep(temporary: string, origin: string, wanted: string | null = null): Promise<Blob> {
    let blob: Blob;
    const file = await openRegular(temporary, origin);
    try {
      if ((await file.stat()).nlink > 1) return await this.#keepCopy(temporary, origin);
      await file.chmod(0o400);
      blob = await hash(file);
      if (wanted !== null && blob.sha256 !== wanted)
        throw new WrongBytes("They are not those of their hash.");
      await file.sync();
    } finally {
      await file.close();
    }
    const path = this.#pathOf(blob.sha256);
    const folder = join(path, "..");
    // Only a folder that is new needs its own entry on disk; `made` names the topmost one.
    const made = await mkdir(folder, { recursive: true });
    // Replaces an equal blob, which also repairs a damaged file.
    await this.#turns.run(blob.sha256, () => rename(temporary, path));
    await syncFolder(folder);
    if (made !== undefined) await syncFolder(this.#root);
    return blob;
  }
}

/** Passes on no more bytes than there should be. */
async function* atMost(bytesMax: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const chunk of bytes) {
    count += chunk.length;
    if (count > bytesMax) throw new WrongBytes(`They are more than ${bytesMax}.`);
    yield chunk;
  }
}

/** Moves a file to `target`, whatever it is by then; copies it when it lies on another device. */
async function moveIn(path: string, target: string): Promise<void> {
  try {
    await rename(path, target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await copy(path, target);
    await rm(path, { force: true });
  }
}

/** Copies a regular file's bytes; a symlink is not followed. */
async function copy(path: string, target: string): Promise<void> {
  const source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!(await source.stat()).isFile()) throw notRegular(path);
    await pipeline(source.createReadStream({ autoClose: false }), createWriteStream(target, { flags: "wx" }));
  } finally {
    await source.close();
  }
}

/**
 * Opens a file for reading; a symlink is not followed.
 *
 * @param origin what errors call it
 * @throws when it is no regular file
 */
export async function openRegular(path: string, origin: string): Promise<FileHandle> {
  // Not blocking: it might be a pipe.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ELOOP" || error.code === "ENXIO" ? notRegular(origin) : error;
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw notRegular(origin);
}

function notRegular(path: string): Error {
  return new Error(`${path} is not a regular file and cannot be kept as a blob.`);
}

/** @param file from its beginning */
export async function hash(file: FileHandle): Promise<Blob> {
  const digest = createHash("sha256");
  // One buffer for the whole file: a stream, which makes one per chunk, takes a fifth longer.
  const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES);
  let size = 0;
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
    if (bytesRead === 0) break;
    digest.update(chunk.subarray(0, bytesRead));
    size += bytesRead;
  }
  return { sha256: digest.digest("hex"), size };
}

/** A missing folder counts as empty. */
function orNone(error: unknown): [] {
  if (isMissing(error)) return [];
  throw error;
}
