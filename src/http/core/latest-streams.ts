// A record that changes while its job runs, as server-sent events: readers get the newest state, never a backlog.
//
// - The record is made once for all its readers, after its job has published something, and not more often than
//   every PERIOD_MS.
// - A reader whose connection is slow misses what came in between; what it takes next is the newest.
// - The stream ends after the record of the job's end, or when the job is removed.

import type { ServerResponse } from "node:http";
import type { EventFeed } from "../../runs/feed.ts";
import { endWithClient } from "./half-closed.ts";
import { streamHeaders } from "./sse-channel.ts";
import { frame } from "./sse-chunk.ts";
import type { Thread } from "./sse-pacer.ts";

const PERIOD_MS = 200;
const HEARTBEAT_MS = 15_000;
/** A reader that takes nothing for so many heartbeats is cut off; it may come back. */
const STALLED_BEATS = 4;

/** The record as it is now. */
export interface Latest {
  /** The job's last event that it knows of; the id of the frame. */
  readonly seq: number;
  readonly json: string;
  /** Whether the job has ended, so that nothing follows. */
  readonly isLast: boolean;
}

export interface LatestView {
  readonly jobId: string;
  /** The type of the frames. */
  readonly type: string;
  /** @returns null when the job was removed */
  read(): Promise<Latest | null>;
}

export interface LatestStreamsParts {
  readonly feed: EventFeed;
  readonly stopping: AbortSignal;
  readonly log: { warn(fields: object, message: string): void };
  readonly thread: Thread;
}

interface Reader {
  readonly response: ServerResponse;
  seq: number;
  stalledBeats: number;
}

export class LatestStreams {
  readonly #parts: LatestStreamsParts;
  readonly #channels = new Map<string, Channel>();

  constructor(parts: LatestStreamsParts) {
    this.#parts = parts;
    parts.stopping.addEventListener("abort", () => {
      for (const channel of this.#channels.values()) channel.end();
    });
  }

  /** How many readers there are now. */
  get readers(): number {
    return this.#channels.values().reduce((count, { readers }) => count + readers.size, 0);
  }

  /**
   * Sends the record as it is now, unless the reader has it, and whenever it changes.
   *
   * Returns at once; the response belongs to the stream from now on. All views of one job are the same.
   *
   * @param afterSeq the id of the last record that the reader has; 0 without one
   */
  serve(response: ServerResponse, view: LatestView, afterSeq: number): void {
    endWithClient(response);
    // A client that has left already emits no other "close".
    if (response.closed || response.destroyed) return;
    const { jobId } = view;
    const channel = this.#channels.get(jobId) ?? new Channel(view, this.#parts);
    this.#channels.set(jobId, channel);
    const reader = { response, seq: afterSeq, stalledBeats: 0 };
    response.once("close", () => {
      channel.readers.delete(reader);
      if (channel.readers.size > 0) return;
      channel.close();
      if (this.#channels.get(jobId) === channel) this.#channels.delete(jobId);
    });
    channel.add(reader);
    if (this.#parts.stopping.aborted) response.end();
  }
}

/** The readers of one record. */
class Channel {
  readonly readers = new Set<Reader>();
  readonly #view: LatestView;
  readonly #parts: LatestStreamsParts;
  readonly #unsubscribe: () => void;
  #latest: Latest | null = null;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #isReading = false;
  #isStale = false;
  #cancelRead: (() => void) | null = null;
  #cancelBeat: () => void;

  constructor(view: LatestView, parts: LatestStreamsParts) {
    this.#view = view;
    this.#parts = parts;
    this.#unsubscribe = parts.feed.subscribe(view.jobId, () => this.#change());
    this.#cancelBeat = parts.thread.after(HEARTBEAT_MS, this.#beat);
  }

  add(reader: Reader): void {
    const { response } = reader;
    this.readers.add(reader);
    response.writeHead(200, streamHeaders);
    response.write("retry: 1000\n\n");
    response.on("drain", () => this.#send(reader));
    // Durations in the record grow without events: a new reader gets a new record.
    this.#change();
  }

  end(): void {
    for (const { response } of this.readers) response.end();
  }

  close(): void {
    this.#unsubscribe();
    this.#cancelBeat();
    this.#cancelRead?.();
  }

  readonly #beat = (): void => {
    for (const reader of this.readers) beat(reader);
    this.#cancelBeat = this.#parts.thread.after(HEARTBEAT_MS, this.#beat);
  };

  #change(): void {
    this.#isStale = true;
    if (this.#isReading || this.#cancelRead !== null) return;
    const waitMs = Math.max(0, this.#readAtMs + PERIOD_MS - this.#parts.thread.nowMs());
    this.#cancelRead = this.#parts.thread.after(waitMs, () => {
      this.#cancelRead = null;
      void this.#read();
    });
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    this.#isStale = false;
    try {
      this.#latest = await this.#view.read();
      if (this.#latest === null) this.end();
      for (const reader of this.readers) this.#send(reader);
    } catch (err) {
      const message = "a live record could not be made; its readers were cut off";
      this.#parts.log.warn({ jobId: this.#view.jobId, err }, message);
      for (const { response } of this.readers) response.destroy();
    }
    this.#isReading = false;
    this.#readAtMs = this.#parts.thread.nowMs();
    if (this.#isStale && this.readers.size > 0) this.#change();
  }

  #send(reader: Reader): void {
    const { response } = reader;
    const latest = this.#latest;
    if (latest === null || latest.seq <= reader.seq || response.writableEnded) return;
    // What a slow connection has not taken is not added to; "drain" comes back here.
    if (response.writableNeedDrain) return;
    reader.seq = latest.seq;
    response.write(frame(latest.seq, this.#view.type, latest.json));
    if (latest.isLast) response.end();
  }
}

function beat(reader: Reader): void {
  const { response } = reader;
  if (!response.writableNeedDrain) {
    reader.stalledBeats = 0;
    response.write(": still here\n\n");
  } else if (++reader.stalledBeats >= STALLED_BEATS) {
    response.destroy();
  }
}
