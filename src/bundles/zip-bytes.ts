// Random access to the bytes of a zip on this machine.
//
// - Small reads that lie close together share one read of the disk: 20,000 entries cost hundreds of reads, not
//   tens of thousands.
// - What is kept in memory is one window, whatever the zip's size; a stream has one chunk at a time.

import { type FileHandle, open } from "node:fs/promises";

/** Small enough that handling its entries, in one turn of the event loop, takes milliseconds. */
const WINDOW_BYTES = 32 * 1024;
const CHUNK_BYTES = 128 * 1024;

interface Window {
  readonly start: number;
  readonly bytes: Buffer;
}

export class ZipBytes {
  readonly sizeBytes: number;
  readonly #file: FileHandle;
  #window: Window = { start: 0, bytes: Buffer.alloc(0) };

  private constructor(file: FileHandle, sizeBytes: number) {
    this.#file = file;
    this.sizeBytes = sizeBytes;
  }

  static async open(path: string): Promise<ZipBytes> {
    const file = await open(path, "r");
    try {
      return new ZipBytes(file, (await file.stat()).size);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** @returns the bytes from `position` on, which nobody may change; fewer than `length` where the file ends */
  async read(position: number, length: number): Promise<Buffer> {
    const { start, bytes } = this.#window;
    if (position >= start && position + length <= start + bytes.length) {
      return bytes.subarray(position - start, position - start + length);
    }
    const found = await this.#readAt(position, Math.max(length, WINDOW_BYTES));
    if (length <= WINDOW_BYTES) this.#window = { start: position, bytes: found };
    return found.subarray(0, length);
  }

  /** The bytes from `position` on, in chunks; fewer than `length` where the file ends. */
  async *stream(position: number, length: number): AsyncGenerator<Buffer> {
    const end = Math.min(position + length, this.sizeBytes);
    for (let at = position; at < end; ) {
      const chunk = await this.#readAt(at, Math.min(CHUNK_BYTES, end - at));
      if (chunk.length === 0) return;
      yield chunk;
      at += chunk.length;
    }
  }

  async #readAt(position: number, length: number): Promise<Buffer> {
    const room = Math.min(length, this.sizeBytes - position);
    if (!(room > 0)) return Buffer.alloc(0);
    const bytes = Buffer.allocUnsafe(room);
    let filled = 0;
    while (filled < room) {
      const { bytesRead } = await this.#file.read(bytes, filled, room - filled, position + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }
}
