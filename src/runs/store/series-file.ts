// One series of a run's history files: lines that are appended, in parts of at most PART_BYTES_MAX.
//
// - A part is only ever appended to, so that a reader of its first n bytes is not disturbed; one that is full is on
//   disk, and is never touched again.
// - Where parts end follows from the lines alone, not from when they were written.
// - Size and hash are those of what was flushed.

import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { readThrough } from "./chunks.ts";
import { type SeriesName, segmentFile } from "./history-names.ts";

export const PART_BYTES_MAX = 10 * 1024 * 1024;
const BUFFER_BYTES = 128 * 1024;
/** No character takes more as UTF-8 than this for each of a string's units. */
const BYTES_PER_UNIT_MAX = 3;

export interface FilePart {
  readonly size: number;
  /** Hex. */
  readonly sha256: string;
  /** When it was last written, as the system tells; null for a part that may grow, or has no file yet. */
  readonly mtimeMs: number | null;
}

export const EMPTY_SHA256 = createHash("sha256").digest("hex");
const EMPTY: FilePart = { size: 0, sha256: EMPTY_SHA256, mtimeMs: null };

export interface SeriesOptions {
  readonly folder: string;
  readonly name: SeriesName;
  /** Whether a new part is begun when one is full. */
  readonly rotates: boolean;
  /** Told of all bytes in their order, in pieces that may end anywhere; each is good for the length of the call. */
  readonly onBytes?: (bytes: Buffer) => void;
}

export class SeriesFile {
  readonly #options: SeriesOptions;
  readonly #full: FilePart[] = [];
  #hash: Hash = createHash("sha256");
  /** Bytes of the newest part, flushed ones. */
  #size = 0;
  #last: FilePart = EMPTY;
  #isClosed = false;
  #file: FileHandle | null = null;
  #buffer: Buffer | null = null;
  #used = 0;

  constructor(options: SeriesOptions) {
    this.#options = options;
  }

  /**
   * Goes on where an earlier one has ended.
   *
   * @param parts as `parts` told
   * @param isClosed whether no line will follow
   * @returns false when the newest part does not have these bytes any more
   */
  async resume(parts: readonly FilePart[], isClosed: boolean): Promise<boolean> {
    const last = parts.at(-1) ?? EMPTY;
    this.#full.push(...parts.slice(0, -1));
    this.#last = last;
    this.#isClosed = isClosed;
    if (isClosed || last.size === 0) return true;
    for await (const chunk of readThrough(this.pathOf(parts.length), last.size)) {
      this.#hash.update(chunk);
      this.#options.onBytes?.(chunk);
      this.#size += chunk.length;
    }
    return this.#size === last.size && this.#hash.copy().digest("hex") === last.sha256;
  }

  /** Oldest first; the last one is the newest, and there is always one. */
  get parts(): readonly FilePart[] {
    return [...this.#full, this.#last];
  }

  /** @param number from 1 */
  pathOf(number: number): string {
    return join(this.#options.folder, segmentFile(this.#options.name, number));
  }

  /**
   * Adds a line.
   *
   * @returns null, or what to wait for before the next one
   */
  add(line: string): Promise<void> | null {
    const bytesMax = line.length * BYTES_PER_UNIT_MAX + 1;
    if (this.#used > 0 && bytesMax > BUFFER_BYTES - this.#used) {
      return this.flush().then(() => this.add(line) ?? undefined);
    }
    if (this.#buffer === null || bytesMax > this.#buffer.length - this.#used) {
      this.#buffer = Buffer.allocUnsafe(Math.max(BUFFER_BYTES, bytesMax));
    }
    const from = this.#used;
    let to = from + this.#buffer.write(line, from);
    this.#buffer[to++] = 0x0a;
    const isFull = this.#options.rotates && this.#size + to > PART_BYTES_MAX && this.#size + from > 0;
    if (isFull) return this.#rotate(from, to);
    this.#used = to;
    return null;
  }

  /** Begins a new part with the line that lies in the buffer between these places. */
  async #rotate(from: number, to: number): Promise<void> {
    const line = Buffer.from(this.#buffer!.subarray(from, to));
    this.#used = from;
    await this.flush();
    await this.#finish();
    this.#full.push(this.#last);
    this.#last = EMPTY;
    this.#size = 0;
    this.#hash = createHash("sha256");
    this.#buffer!.set(line);
    this.#used = line.length;
  }

  /** Writes what was added, so that `parts` tells of it. */
  async flush(): Promise<void> {
    if (this.#used === 0) return;
    const lines = this.#buffer!.subarray(0, this.#used);
    const file = await this.#opened();
    for (let done = 0; done < lines.length; ) {
      const { bytesWritten } = await file.write(lines, done, lines.length - done, this.#size + done);
      done += bytesWritten;
    }
    this.#hash.update(lines);
    this.#options.onBytes?.(lines);
    this.#size += this.#used;
    this.#used = 0;
    this.#last = { size: this.#size, sha256: this.#hash.copy().digest("hex"), mtimeMs: null };
  }

  /** To be called after `flush` when no line will follow. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#size > 0) await this.#finish();
    this.#isClosed = true;
  }

  /** Puts the newest part on disk for good. */
  async #finish(): Promise<void> {
    const file = await this.#opened();
    await file.datasync();
    const { mtimeMs } = await file.stat();
    this.#last = { ...this.#last, mtimeMs };
    await this.#closeFile();
  }

  /** The newest part's file, without what a killed writer may have left in it. */
  async #opened(): Promise<FileHandle> {
    this.#file ??= await openAt(this.pathOf(this.#full.length + 1), this.#size);
    return this.#file;
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  /** Lets go of file and buffer until the next line. What was not flushed is lost. */
  async release(): Promise<void> {
    this.#buffer = null;
    this.#used = 0;
    await this.#closeFile();
  }
}

/** Opens a part to be written behind its first bytes; what lies there is from a writer that was killed. */
async function openAt(path: string, size: number): Promise<FileHandle> {
  const file = await open(path, size === 0 ? "w" : "r+", 0o600);
  try {
    await file.truncate(size);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
