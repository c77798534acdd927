// Writes the zip of a backup: one entry after the other, in constant memory but for the list of entries.

import { createHash, type Hash } from "node:crypto";
import { once } from "node:events";
import { constants, createWriteStream } from "node:fs";
import { type FileHandle, lstat, open, readlink } from "node:fs/promises";
import { dirname, isAbsolute, relative } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ZipFile } from "yazl";
import { isInside } from "../lib/paths.ts";
import { type EntryKind, fileTypes, SUMS_FILE, storedName, sumLine } from "./layout.ts";

const READ_CHUNK_BYTES = 1024 * 1024;

export class ArchiveWriter {
  readonly #zip = new ZipFile();
  readonly #failed: Promise<never>;
  readonly #written: Promise<void>;
  readonly #sums: Buffer[] = [];
  readonly #names = new Set<string>();
  #bytes = 0;

  /** @param path a file that does not exist yet */
  constructor(path: string, signal: AbortSignal) {
    const target = createWriteStream(path, { flags: "wx", mode: 0o600, flush: true });
    this.#written = pipeline(this.#zip.outputStream as Readable, target, { signal });
    this.#failed = Promise.race([
      once(this.#zip, "error").then(([error]) => Promise.reject(error as Error)),
      this.#written.then(() => new Promise<never>(() => {})),
    ]);
    this.#failed.catch(() => {});
    this.#written.catch(() => {});
  }

  /** Entries so far, and their bytes. */
  get size(): { readonly files: number; readonly bytes: number } {
    return { files: this.#names.size, bytes: this.#bytes };
  }

  has(path: string): boolean {
    return this.#names.has(path);
  }

  /**
   * Adds a file as it is at this moment; a link as a link.
   *
   * @param home SVC_HOME: an absolute link into it becomes a relative one, which is right in any home
   * @returns the hex SHA-256 of its bytes
   * @throws ENOENT when it is not there; an error when it changes while it is read
   */
  async addFile(path: string, source: string, home: string): Promise<string> {
    if ((await lstat(source)).isSymbolicLink()) {
      const target = await readlink(source);
      const isOwn = isAbsolute(target) && isInside(home, target);
      return this.#add(path, Buffer.from(isOwn ? relative(dirname(source), target) : target), "link");
    }
    await using file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { size, mode } = await file.stat();
    const digest = createHash("sha256");
    const bytes = Readable.from(chunksOf(file, { source, size, digest }), { objectMode: false });
    this.#names.add(path);
    const name = storedName(path);
    const options = { size, mode: fileTypes.file | (mode & 0o777), compress: false };
    this.#zip.addReadStreamLazy(name, options, (give) => give(null, bytes));
    await Promise.race([once(bytes, "end"), this.#failed]);
    return this.#sum(path, digest, { kind: "file", size });
  }

  /** Adds a file of these bytes. */
  addText(path: string, text: string): string {
    return this.#add(path, Buffer.from(text), "file");
  }

  addEmptyFolder(path: string): void {
    this.#names.add(path);
    this.#zip.addEmptyDirectory(storedName(path), { mode: fileTypes.folder | 0o700 });
    this.#sum(path, createHash("sha256"), { kind: "folder", size: 0 });
  }

  /** Adds SHA256SUMS; on disk when it resolves. */
  async finish(): Promise<void> {
    this.#zip.addBuffer(Buffer.concat(this.#sums), SUMS_FILE, {
      mode: fileTypes.file | 0o600,
      compress: false,
    });
    this.#zip.end();
    await Promise.race([this.#written, this.#failed]);
  }

  #add(path: string, bytes: Buffer, kind: "file" | "link"): string {
    this.#names.add(path);
    this.#zip.addBuffer(bytes, storedName(path), { mode: fileTypes[kind] | 0o600, compress: false });
    return this.#sum(path, createHash("sha256").update(bytes), { kind, size: bytes.length });
  }

  #sum(path: string, digest: Hash, { kind, size }: { kind: EntryKind; size: number }): string {
    const sha256 = digest.digest("hex");
    this.#sums.push(Buffer.from(sumLine({ path, kind, sha256 })));
    this.#bytes += size;
    return sha256;
  }
}

/** As many bytes as the file had when it was opened. */
async function* chunksOf(file: FileHandle, of: { source: string; size: number; digest: Hash }) {
  for (let left = of.size; left > 0; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(left, READ_CHUNK_BYTES)));
    if (bytesRead === 0)
      throw new Error(`${of.source} became shorter while it was read. Run the backup again.`);
    const chunk = buffer.subarray(0, bytesRead);
    of.digest.update(chunk);
    left -= bytesRead;
    yield chunk;
  }
}
