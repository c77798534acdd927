// A piece of a job's history as all readers of one view get it: rendered once, when the first of them takes it.

import { eventType } from "../../engine/event.ts";
import type { EventPage } from "../../runs/job-records.ts";

/** One write to a reader: large enough to be cheap by the byte, small enough to be kept for a reader that stops. */
export const CHUNK_BYTES = 64 * 1024;
/** What a frame adds to its event's line, about. */
const FRAME_BYTES = 64;

/** The frames of an event; null when the view leaves it out. */
export type Render = (seq: number, line: string) => string | null;

/** One event of a stream. Neither `type` nor `data` may contain a line break. */
export function frame(seq: number, type: string, data: string): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${data}\n\n`;
}

export class Chunk {
  readonly firstSeq: number;
  /** About what it holds in memory, rendered or not. */
  sizeBytes = 0;
  /** Whether it ends with the event after which nothing comes. */
  isLast = false;
  #count = 0;
  #content: Lines | Rendered = { kind: "lines", lines: [] };

  constructor(firstSeq: number) {
    this.firstSeq = firstSeq;
  }

  get lastSeq(): number {
    return this.firstSeq + this.#count - 1;
  }

  holds(seq: number): boolean {
    return this.firstSeq <= seq && seq <= this.lastSeq;
  }

  /** @returns false when the chunk is full, rendered or the last; the first line always finds room */
  append(line: string): boolean {
    if (this.#content.kind === "rendered" || this.isLast) return false;
    const addedBytes = line.length + FRAME_BYTES;
    if (this.#count > 0 && this.sizeBytes + addedBytes > CHUNK_BYTES) return false;
    this.#content.lines.push(line);
    this.#count++;
    this.sizeBytes += addedBytes;
    return true;
  }

  /** The frames from event `seq` on; empty when the view shows none of them. */
  bytesFrom(seq: number, render: Render): Buffer {
    const { bytes, starts } = this.#rendered(render);
    return seq === this.firstSeq ? bytes : bytes.subarray(starts[seq - this.firstSeq]);
  }

  #rendered(render: Render): Rendered {
    if (this.#content.kind === "rendered") return this.#content;
    const starts: number[] = [];
    let text = "";
    let startBytes = 0;
    for (const [i, line] of this.#content.lines.entries()) {
      const seq = this.firstSeq + i;
      // Every reader must learn the last id, or it would come back for it again and again.
      const shown = render(seq, line) ?? (this.isLast && seq === this.lastSeq ? `id: ${seq}\n\n` : "");
      starts.push(startBytes);
      startBytes += Buffer.byteLength(shown);
      text += shown;
    }
    const bytes = Buffer.from(text);
    this.sizeBytes = bytes.length;
    this.#content = { kind: "rendered", bytes, starts };
    return this.#content;
  }
}

interface Lines {
  readonly kind: "lines";
  readonly lines: string[];
}

interface Rendered {
  readonly kind: "rendered";
  readonly bytes: Buffer;
  /** Where each event's frames begin in `bytes`. */
  readonly starts: readonly number[];
}

/**
 * Appends events to a list of chunks, of which the last one may still have room.
 *
 * @param terminalTypes of the events that nothing follows
 * @param chunksMax the rest of the page is left out once the list is this long
 */
export function appendPage(
  chunks: Chunk[],
  page: EventPage,
  terminalTypes: ReadonlySet<string>,
  chunksMax = Number.POSITIVE_INFINITY,
): void {
  for (const [i, line] of page.lines.entries()) {
    const seq = page.firstSeq + i;
    let chunk = chunks.at(-1);
    if (chunk === undefined || chunk.lastSeq !== seq - 1 || !chunk.append(line)) {
      if (chunks.length >= chunksMax) return;
      chunk = new Chunk(seq);
      chunk.append(line);
      chunks.push(chunk);
    }
    // Nothing follows the terminal event, so only a page's last line can be it.
    if (i === page.lines.length - 1) chunk.isLast = terminalTypes.has(eventType(line));
  }
}
