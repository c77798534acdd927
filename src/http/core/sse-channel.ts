// Readers of live streams, and what the readers of one view of one job share: the newest events, pages of the history,
// and how far the history is known to go.
//
// - Memory is bounded, per channel and over all of them. What does not fit is dropped, oldest first, and read again
//   from the store when a reader needs it.
// - Nothing is kept while every reader has everything.
// - A reader is written nothing before its connection has taken the last write: one that stops reading costs one
//   write of shared bytes and what its socket holds.

import type { ServerResponse } from "node:http";
import { terminalEventTypes } from "../../engine/event-types.ts";
import type { EventFeed } from "../../runs/feed.ts";
import type { EventPage } from "../../runs/job-records.ts";
import { appendPage, CHUNK_BYTES, type Chunk, type Render } from "./sse-chunk.ts";

const CHUNKS_MAX = 64;
const CHANNEL_BYTES_MAX = 1024 * 1024;
const ALL_CHANNELS_BYTES_MAX = 64 * 1024 * 1024;

/** A job's events in one rendering, for any number of readers. */
export interface EventView {
  /** Names job and rendering: readers of one key share what was read and rendered for any of them. */
  readonly key: string;
  /** The runtime's id of the job; its history may begin later than the stream. */
  readonly jobId: string;
  /** Committed events behind `afterSeq`, a bounded page; empty when there are none yet. */
  read(afterSeq: number): Promise<EventPage>;
  /** Whether events may still come; asked when `read` finds none. */
  exists(): Promise<boolean>;
  /**
   * The event as a `frame`, or null when this view leaves it out. Terminal events are never left out. One frame per
   * event: a reader that is cut off between two of one id would miss the second.
   */
  render: Render;
  /** The types of the events that nothing follows; those of a run when absent. */
  readonly terminalTypes?: ReadonlySet<string>;
}

/** What all channels hold together. */
export interface SharedMemory {
  usedBytes: number;
}

/** Readers that wait for the same page of the store. */
export interface Fetch {
  readonly channel: Channel;
  readonly afterSeq: number;
  readonly readers: Set<Reader>;
}

export class Channel {
  readonly view: EventView;
  readonly readers = new Set<Reader>();
  /** Readers that have everything. */
  readonly idle = new Set<Reader>();
  /** By the position behind which to read. */
  readonly fetches = new Map<number, Fetch>();
  /** The job was removed: readers that need more than is held here get no more. */
  isGone = false;
  readonly #memory: SharedMemory;
  readonly #terminalTypes: ReadonlySet<string>;
  readonly #unsubscribe: () => void;
  /** What was published. */
  #live: Chunk[] = [];
  /** What was read from the store, in order of reading. */
  #pages: Chunk[] = [];
  #heldBytes = 0;
  #isUsed = true;
  /** The last committed event, as far as is known here; null before anything is. */
  #endSeq: number | null = null;

  /** @param onNews called when readers that had everything have no longer */
  constructor(view: EventView, feed: EventFeed, memory: SharedMemory, onNews: (channel: Channel) => void) {
    this.view = view;
    this.#memory = memory;
    this.#terminalTypes = view.terminalTypes ?? terminalEventTypes;
    this.#unsubscribe = feed.subscribe(view.jobId, (page) => {
      this.#published(page);
      onNews(this);
    });
  }

  /** Whether there is more behind `seq`, or there may be. */
  isBehind(seq: number): boolean {
    return this.isGone || this.#endSeq === null || seq < this.#endSeq;
  }

  /** The chunk with event `seq`, or null when it must be read from the store. */
  chunkAt(seq: number): Chunk | null {
    this.#isUsed = true;
    const holds = (chunk: Chunk) => chunk.holds(seq);
    return this.#live.find(holds) ?? this.#pages.find(holds) ?? null;
  }

  /** @returns the chunk with the page's first event; of a very large page only the beginning is kept */
  keep(page: EventPage): Chunk {
    const chunks: Chunk[] = [];
    appendPage(chunks, page, this.#terminalTypes, CHANNEL_BYTES_MAX / CHUNK_BYTES);
    // Who asked for the page may have left meanwhile, and the channel with them.
    if (this.readers.size > 0) this.#pages.push(...chunks);
    this.#account();
    return chunks[0]!;
  }

  /** How far the history is known to go; to be compared after a read. */
  get endSeq(): number | null {
    return this.#endSeq;
  }

  /** The store had nothing behind `seq` when the end was taken to be `knownEndSeq`. */
  nothingBehind(seq: number, knownEndSeq: number | null): void {
    // What was published meanwhile is newer than this answer.
    if (this.#endSeq === knownEndSeq) this.#endSeq = seq;
  }

  /** The reader has everything; once all have, nothing needs to be kept. */
  rest(reader: Reader): void {
    this.idle.add(reader);
    if (this.#heldBytes > 0 && this.idle.size === this.readers.size) this.#drop();
  }

  leave(reader: Reader): void {
    this.readers.delete(reader);
    this.idle.delete(reader);
    for (const fetch of this.fetches.values()) fetch.readers.delete(reader);
  }

  /** Drops everything if nothing was read since the last call. */
  trim(): void {
    if (!this.#isUsed) this.#drop();
    this.#isUsed = false;
  }

  close(): void {
    this.#unsubscribe();
    this.#drop();
  }

  #published(page: EventPage): void {
    const lastSeq = page.firstSeq + page.lines.length - 1;
    if (this.#endSeq !== null && this.#endSeq >= lastSeq) return;
    appendPage(this.#live, page, this.#terminalTypes);
    this.#endSeq = lastSeq;
    this.#account();
  }

  /** Counts what is held, and drops the oldest of what is too much. */
  #account(): void {
    const before = this.#heldBytes;
    const others = this.#memory.usedBytes - before;
    const bytesMax = Math.min(CHANNEL_BYTES_MAX, Math.max(0, ALL_CHANNELS_BYTES_MAX - others));
    const liveBytes = keepNewest(this.#live, bytesMax);
    const pageBytes = keepNewest(this.#pages, bytesMax);
    this.#heldBytes = liveBytes + pageBytes;
    this.#memory.usedBytes = others + this.#heldBytes;
  }

  #drop(): void {
    this.#live = [];
    this.#pages = [];
    this.#account();
  }
}

/** @returns the bytes of what is left */
function keepNewest(chunks: Chunk[], bytesMax: number): number {
  let bytes = 0;
  let from = chunks.length;
  while (from > 0 && chunks.length - from < CHUNKS_MAX) {
    const next = bytes + chunks[from - 1]!.sizeBytes;
    if (next > bytesMax) break;
    bytes = next;
    from--;
  }
  chunks.splice(0, from);
  return bytes;
}

export const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
};

/** A position in the history, and a connection that takes one write at a time. */
export class Reader {
  readonly channel: Channel;
  /** The last event that was written. */
  seq: number;
  /** What the store brought for this reader alone to begin with: it may no longer be held by the channel. */
  fetched: Chunk | null = null;
  /** Whether a heartbeat is due if there is nothing else to write. */
  isBeatDue = false;
  /** Since when the connection has not taken the last write; null when it has. */
  writingSinceMs: number | null = null;
  /** The last write was made: the terminal event, or the end of the stream. */
  isEnded = false;
  readonly #response: ServerResponse;
  readonly #onTaken: (reader: Reader) => void;

  /** @param onTaken called when the connection has taken what was written and is ready for more */
  constructor(response: ServerResponse, channel: Channel, seq: number, onTaken: (reader: Reader) => void) {
    this.#response = response;
    this.channel = channel;
    this.seq = seq;
    this.#onTaken = onTaken;
  }

  start(nowMs: number): void {
    this.#response.writeHead(200, streamHeaders);
    this.#write(["retry: 1000\n\n"], nowMs);
  }

  beat(nowMs: number): void {
    this.#write([": still here\n\n"], nowMs);
  }

  /**
   * Writes `first`, which holds the next event, and what follows it in the channel, up to one write's size; of events
   * that the view leaves out, no more are looked at than of those that it shows.
   */
  send(first: Chunk, nowMs: number): void {
    const parts: Buffer[] = [];
    let takenBytes = 0;
    for (let chunk: Chunk | null = first; chunk !== null; chunk = this.channel.chunkAt(this.seq + 1)) {
      if (takenBytes > 0 && takenBytes + chunk.sizeBytes > CHUNK_BYTES) break;
      const lineBytes = chunk.sizeBytes;
      const bytes = chunk.bytesFrom(this.seq + 1, this.channel.view.render);
      if (bytes.length > 0) parts.push(bytes);
      takenBytes += Math.max(lineBytes, bytes.length);
      this.seq = chunk.lastSeq;
      if (chunk.isLast) this.isEnded = true;
      if (this.isEnded || !this.channel.isBehind(this.seq)) break;
    }
    if (parts.length > 0) this.#write(parts, nowMs);
    if (this.isEnded) this.#response.end();
  }

  end(nowMs: number): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.writingSinceMs ??= nowMs;
    this.#response.end();
  }

  destroy(): void {
    this.#response.destroy();
  }

  /** The parts go out together. */
  #write(parts: readonly (Buffer | string)[], nowMs: number): void {
    this.isBeatDue = false;
    this.writingSinceMs = nowMs;
    this.#response.cork();
    for (const [i, part] of parts.entries()) {
      if (i < parts.length - 1) this.#response.write(part);
      else this.#response.write(part, this.#taken);
    }
    this.#response.uncork();
  }

  readonly #taken = (): void => {
    if (this.isEnded) return;
    this.writingSinceMs = null;
    this.#onTaken(this);
  };
}
