// Reads a binary file from its start on, a chunk at a time.

import type { FileHandle } from "node:fs/promises";
import { ModelInvalid } from "./model-invalid.ts";

const CHUNK_BYTES = 1024 * 1024;

/**
 * A place in a file, which moves on with what is read. Before numbers and texts are taken, `has` or `load` sees to it that
 * they are in memory: a header has hundreds of thousands of them, and a promise for each would take longer than the rest.
 */
export class FileCursor {
  readonly #file: FileHandle;
  readonly #size: number;
  /** What is passed over counts as well. */
  readonly #endMax: number;
  #chunk = Buffer.alloc(0);
  #at = 0;
  /** Where the chunk is in the file. */
  #chunkStart = 0;

  /**
   * @param size bytes of the file
   * @param endMax bytes of the file that may be read
   */
  constructor(file: FileHandle, size: number, endMax: number) {
    this.#file = file;
    this.#size = size;
    this.#endMax = endMax;
  }

  /** Bytes from the file's start. */
  get position(): number {
    return this.#chunkStart + this.#at;
  }

  /** Whether so many bytes are in memory. */
  has(bytes: number): boolean {
    return this.#chunk.length - this.#at >= bytes;
  }

  /** Brings so many bytes into memory. @throws ModelInvalid when the file does not have them, or they are too many */
  async load(bytes: number): Promise<void> {
    if (this.has(bytes)) return;
    const { position } = this;
    this.#check(position + bytes);
    const chunk = Buffer.allocUnsafe(Math.min(Math.max(bytes, CHUNK_BYTES), this.#size - position));
    for (let read = 0; read < chunk.length; ) {
      const { bytesRead } = await this.#file.read(chunk, read, chunk.length - read, position + read);
      if (bytesRead === 0) throw new ModelInvalid("The file became shorter while it was read.");
      read += bytesRead;
    }
    this.#chunk = chunk;
    this.#chunkStart = position;
    this.#at = 0;
  }

  /** Passes over bytes. @throws ModelInvalid */
  skip(bytes: number): void {
    this.#check(this.position + bytes);
    this.#at += bytes;
  }

  /** The next bytes, which are in memory. */
  take(bytes: number): Buffer {
    const start = this.#at;
    this.#at += bytes;
    return this.#chunk.subarray(start, this.#at);
  }

  u32(): number {
    this.#at += 4;
    return this.#chunk.readUInt32LE(this.#at - 4);
  }

  /** @throws ModelInvalid for a number that no file of today needs */
  u64(): number {
    const low = this.u32();
    const value = low + this.u32() * 2 ** 32;
    if (Number.isSafeInteger(value)) return value;
    throw new ModelInvalid(`The number at byte ${this.position - 8} is too large to be true.`);
  }

  #check(end: number): void {
    if (end > this.#size)
      throw new ModelInvalid(
        `The file ends in the middle of its header, at byte ${this.#size}: it was not copied whole.`,
      );
    if (end > this.#endMax)
      throw new ModelInvalid(
        `Its header is larger than ${this.#endMax / 1024 / 1024} MiB, which no model needs.`,
      );
  }
}
