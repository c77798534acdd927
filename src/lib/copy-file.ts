// Copies one file: as a clone where the file system can (a reflink: no bytes move, and a write to either side is not seen
// by the other), otherwise its bytes. Never a hard link.
//
// - The copy may be written by its owner, whatever the original's mode, and is executable if the original is.
// - A large file is copied in pieces, so that memory stays flat and an abort takes effect within one of them.
// - A file that changed or was replaced while it was copied is an error.

import { constants, type Stats } from "node:fs";
import { chmod, copyFile, type FileHandle, lstat, open, rm } from "node:fs/promises";
import { pathOfDescriptor } from "./open-folder.ts";

/** Up to this size the system copies a file in one call, which cannot be interrupted. */
const ONE_CALL_BYTES_MAX = 4 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
const OWNER_ACCESS = 0o600;
/** Error codes of a clone that the file system does not support. */
const NO_CLONE: ReadonlySet<string> = new Set([
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "ENOTTY",
  "EXDEV",
  "EINVAL",
  "EPERM",
]);

/** The original is not what it was when the copy began. */
export class FileChanged extends Error {
  override readonly name = "FileChanged";
}

interface Copying {
  readonly source: FileHandle;
  /** A path to the very file that is open. */
  readonly from: string;
  readonly to: string;
  readonly size: number;
  /** Whether it takes room on a disk. */
  readonly isStored: boolean;
}

/** Copies files from one place to another. */
export class FileCopier {
  readonly #signal: AbortSignal;
  /** Tried with the first large file. */
  #canClone = true;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /**
   * @param from a regular file, not a link
   * @param to a name that does not exist yet
   * @param copied called with the number of bytes as they are copied
   * @throws FileChanged; the signal's reason when it is aborted; the system's errors. Nothing is left at `to` then.
   */
  async copy(from: string, to: string, copied: (bytes: number) => void): Promise<void> {
    this.#signal.throwIfAborted();
    // Not blocking: it might have become a pipe.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    await using source = await open(from, flags).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ELOOP" || error.code === "ENXIO" ? new FileChanged() : error;
    });
    const before = await source.stat();
    if (!before.isFile()) throw new FileChanged();
    try {
      const path = pathOfDescriptor(source.fd, from);
      await this.#copyBytes(
        { source, from: path, to, size: before.size, isStored: before.blocks > 0 },
        copied,
      );
      if (!isSame(before, await lstat(from))) throw new FileChanged();
      await chmod(to, (before.mode & 0o777) | OWNER_ACCESS);
    } catch (error) {
      await rm(to, { force: true });
      throw error;
    }
  }

  async #copyBytes(file: Copying, copied: (bytes: number) => void): Promise<void> {
    const { from, to, size, isStored } = file;
    // The one call goes on until all of the size is there: for ever where a file only claims one, as those of /sys do.
    if (size <= ONE_CALL_BYTES_MAX && size > 0 && !isStored) return this.#stream(file, copied);
    if (size <= ONE_CALL_BYTES_MAX)
      await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    else if (!(await this.#clone(from, to))) return this.#stream(file, copied);
    copied(size);
  }

  /** @returns false when the disk cannot */
  async #clone(from: string, to: string): Promise<boolean> {
    if (!this.#canClone) return false;
    try {
      await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
      return true;
    } catch (error) {
      if (!NO_CLONE.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      await rm(to, { force: true });
      this.#canClone = false;
      return false;
    }
  }

  /** Stops behind the size that the file had: one that grows, such as a log, would have no end. */
  async #stream({ source, to, size }: Copying, copied: (bytes: number) => void): Promise<void> {
    await using target = await open(to, "wx", OWNER_ACCESS);
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let done = 0; done <= size; ) {
      this.#signal.throwIfAborted();
      const { bytesRead } = await source.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) return;
      await writeAll(target, chunk.subarray(0, bytesRead));
      done += bytesRead;
      copied(bytesRead);
    }
  }
}

async function writeAll(target: FileHandle, bytes: Buffer): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await target.write(bytes, done);
    done += bytesWritten;
  }
}

function isSame(before: Stats, now: Stats): boolean {
  return (
    before.dev === now.dev &&
    before.ino === now.ino &&
    before.size === now.size &&
    before.mtimeMs === now.mtimeMs
  );
}
