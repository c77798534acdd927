// Bytes into lines, and the end of a stream, in bounded memory whatever comes.
//
// - A splitter holds at most `lineBytesMax` bytes; what a longer line has beyond that is dropped and marked.
// - A tail holds the last `bytesMax` bytes, in at most twice that much memory.

const NEWLINE = 0x0a;
const FIRST_BUFFER_BYTES = 1_024;

/** Gets every line without its line end; `cut` says that the line was longer. Invalid UTF-8 becomes U+FFFD. */
export type LineSink = (line: string, cut: boolean) => void;

export class LineSplitter {
  readonly #lineBytesMax: number;
  readonly #sink: LineSink;
  /** The beginning of a line whose end has not come. */
  #carry: Buffer = Buffer.alloc(0);
  #carryBytes = 0;
  #carryCut = false;

  constructor(lineBytesMax: number, sink: LineSink) {
    this.#lineBytesMax = lineBytesMax;
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let from = 0;
    if (this.#carryBytes > 0 || this.#carryCut) {
      const end = chunk.indexOf(NEWLINE);
      this.#keep(end === -1 ? chunk : chunk.subarray(0, end));
      if (end === -1) return;
      this.flush();
      from = end + 1;
    }
    const last = chunk.lastIndexOf(NEWLINE);
    if (last >= from) {
      // All whole lines are decoded at once: far cheaper than one by one.
      for (const line of chunk.toString("utf8", from, last).split("\n")) this.#emit(line);
      from = last + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
  }

  /** Hands out the line that has no end yet, if there is one. */
  flush(): void {
    if (this.#carryBytes === 0 && !this.#carryCut) return;
    const line = this.#carry.toString("utf8", 0, this.#carryBytes);
    const cut = this.#carryCut;
    this.#carryBytes = 0;
    this.#carryCut = false;
    if (this.#carry.length > FIRST_BUFFER_BYTES) this.#carry = Buffer.alloc(0);
    if (cut) this.#sink(line, true);
    else this.#emit(line);
  }

  #emit(line: string): void {
    const text = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (text.length > this.#lineBytesMax) this.#sink(text.slice(0, this.#lineBytesMax), true);
    else this.#sink(text, false);
  }

  #keep(bytes: Buffer): void {
    const room = this.#lineBytesMax - this.#carryBytes;
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    if (kept.length < bytes.length) this.#carryCut = true;
    this.#carry = withRoom(this.#carry, this.#carryBytes, kept.length);
    kept.copy(this.#carry, this.#carryBytes);
    this.#carryBytes += kept.length;
  }
}

export class Tail {
  readonly #bytesMax: number;
  #buffer: Buffer = Buffer.alloc(0);
  #bytes = 0;
  #dropped = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  push(chunk: Buffer): void {
    let kept = chunk;
    if (kept.length >= this.#bytesMax) {
      if (kept.length > this.#bytesMax || this.#bytes > 0) this.#dropped = true;
      kept = kept.subarray(kept.length - this.#bytesMax);
      this.#bytes = 0;
    } else if (this.#bytes + kept.length > 2 * this.#bytesMax) {
      this.#buffer.copyWithin(0, this.#bytes - this.#bytesMax, this.#bytes);
      this.#bytes = this.#bytesMax;
      this.#dropped = true;
    }
    this.#buffer = withRoom(this.#buffer, this.#bytes, kept.length);
    kept.copy(this.#buffer, this.#bytes);
    this.#bytes += kept.length;
  }

  /** Whether bytes are missing in front of what `text` returns. */
  get cut(): boolean {
    return this.#dropped || this.#bytes > this.#bytesMax;
  }

  /** The last bytes as text; a character that was cut in half at the front is left out. */
  text(): string {
    let from = Math.max(0, this.#bytes - this.#bytesMax);
    if (this.cut) while (from < this.#bytes && ((this.#buffer[from] ?? 0) & 0xc0) === 0x80) from++;
    return this.#buffer.toString("utf8", from, this.#bytes);
  }
}

/** The buffer, or a larger copy of it, with room for `more` bytes behind the `used` ones. */
function withRoom(buffer: Buffer, used: number, more: number): Buffer {
  if (used + more <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafe(Math.max(FIRST_BUFFER_BYTES, 2 * buffer.length, used + more));
  buffer.copy(larger, 0, 0, used);
  return larger;
}
