// One reader of a live stream: a position in the history, and a connection that takes one write at a time.
//
// R1. Nothing is written before the connection has taken the last write, so a reader that stops reading costs one
//     write of shared bytes and what its socket holds.

import type { ServerResponse } from "node:http";
import type { Channel } from "./sse-channel.ts";
import { CHUNK_BYTES, type Chunk } from "./sse-chunk.ts";

export const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
};

export class Reader {
  readonly channel: Channel;
  /** The last event that was written. */
  seq: number;
  /** What the store brought for this reader alone to begin with: it may no longer be held by the channel. */
  fetched: Chunk | null = null;
  /** Whether a sign of life is to be written if there is nothing else. */
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
