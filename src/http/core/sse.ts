// Server-sent events from a gapless history: any number of readers, each at its own speed, at a small cost to the runs.
//
// - An event's id is its sequence number; a reader that comes back with Last-Event-ID gets exactly what follows.
// - A reader is fed from the live feed while it keeps up, and from the store whenever it does not: a slow one
//   costs one write of memory and slows nobody.
// - The stream ends after the terminal event.
// - An event is read and rendered once for all readers of a view; per reader it is only written.
// - Writing takes its turn in slices that the Pacer allows, for all streams of the process together.

import type { ServerResponse } from "node:http";
import type { EventFeed } from "../../runs/feed.ts";
import { endWithClient } from "./half-closed.ts";
import { LatestStreams } from "./latest-streams.ts";
import { Channel, type EventView, type Fetch, Reader, type SharedMemory } from "./sse-channel.ts";
import type { Chunk } from "./sse-chunk.ts";
import { Pacer, realThread, type Thread } from "./sse-pacer.ts";

export type { EventView } from "./sse-channel.ts";
export { frame } from "./sse-chunk.ts";

const HEARTBEAT_MS = 15_000;
/** A reader whose connection does not drain for this long is disconnected; it may reconnect with its id. */
const STALLED_MS = 60_000;
const READS_AT_ONCE = 2;

export interface EventStreamsOptions {
  readonly feed: EventFeed;
  /** Aborted when the server shuts down: all streams end. */
  readonly stopping: AbortSignal;
  readonly log: { warn(fields: object, message: string): void };
  readonly thread?: Thread;
}

/** All live streams of the process; one is made, so that they share their bounds. */
export class EventStreams {
  /** Records that change, for who needs no history. */
  readonly latest: LatestStreams;
  readonly #feed: EventFeed;
  readonly #stopping: AbortSignal;
  readonly #log: EventStreamsOptions["log"];
  readonly #thread: Thread;
  readonly #pacer: Pacer;
  readonly #memory: SharedMemory = { usedBytes: 0 };
  readonly #channels = new Map<string, Channel>();
  readonly #readers = new Set<Reader>();
  /** Readers whose turn comes, in order; those that the store has brought something for come first. */
  readonly #queue = new Set<Reader>();
  readonly #fetched = new Set<Reader>();
  readonly #wanted = new Set<Fetch>();
  #reads = 0;
  #stopBeat: (() => void) | null = null;

  constructor(options: EventStreamsOptions) {
    this.#feed = options.feed;
    this.#stopping = options.stopping;
    this.#log = options.log;
    this.#thread = options.thread ?? realThread;
    this.latest = new LatestStreams({ ...options, thread: this.#thread });
    this.#pacer = new Pacer({
      thread: this.#thread,
      work: () => this.#work(),
      progress: () => this.#feed.publications,
    });
    this.#stopping.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** How many readers there are now, over all streams: each counts until its connection is closed. */
  get readers(): number {
    return this.#readers.size + this.latest.readers;
  }

  /**
   * Sends the events behind `afterSeq`, and those to come, until the terminal one or until the reader is gone.
   *
   * Returns at once; the response belongs to the stream from now on. Headers that were set on it are sent along.
   * A reader that already has the terminal event is the caller's to turn away: here it would wait for ever.
   */
  serve(response: ServerResponse, view: EventView, afterSeq: number): void {
    endWithClient(response);
    // A client that has left already emits no other "close".
    if (response.closed || response.destroyed) return;
    const reader = new Reader(response, this.#channelOf(view), afterSeq, (one) => this.#place(one));
    this.#readers.add(reader);
    reader.channel.readers.add(reader);
    response.once("close", () => this.#forget(reader));
    reader.start(this.#thread.nowMs());
    if (this.#stopping.aborted) this.#end(reader);
    else this.#stopBeat ??= this.#thread.after(HEARTBEAT_MS, () => this.#beat());
  }

  #channelOf(view: EventView): Channel {
    let channel = this.#channels.get(view.key);
    if (channel === undefined) {
      channel = new Channel(view, this.#feed, this.#memory, (changed) => {
        if (this.#queueIdle(changed)) this.#pacer.wakeAtOnce();
      });
      this.#channels.set(view.key, channel);
    }
    return channel;
  }

  /** @returns whether there were any, so that the pacer must be woken */
  #queueIdle(channel: Channel): boolean {
    if (channel.idle.size === 0) return false;
    for (const reader of channel.idle) this.#queue.add(reader);
    channel.idle.clear();
    return true;
  }

  /** Puts a reader whose connection takes more where it belongs. */
  #place(reader: Reader): void {
    if (!this.#readers.has(reader)) return;
    if (reader.channel.isBehind(reader.seq)) {
      this.#queue.add(reader);
      this.#pacer.wake();
    } else {
      reader.channel.rest(reader);
    }
  }

  /**
   * One reader's turn, or the start of a read. No read is started while readers wait for their turn with what one
   * has brought, so that such pages are few.
   *
   * @returns whether something was done, so that there may be more to do
   */
  #work(): boolean {
    if (this.#turnOfFirst(this.#fetched)) return true;
    return this.#startRead() || this.#turnOfFirst(this.#queue);
  }

  #turnOfFirst(readers: Set<Reader>): boolean {
    for (const reader of readers) {
      readers.delete(reader);
      this.#turn(reader);
      return true;
    }
    return false;
  }

  #turn(reader: Reader): void {
    const { channel } = reader;
    const nowMs = this.#thread.nowMs();
    if (!channel.isBehind(reader.seq)) {
      if (reader.isBeatDue) reader.beat(nowMs);
      else channel.rest(reader);
      return;
    }
    const chunk = reader.fetched ?? channel.chunkAt(reader.seq + 1);
    reader.fetched = null;
    if (chunk !== null) this.#send(reader, chunk, nowMs);
    else if (channel.isGone) this.#end(reader);
    else this.#want(reader);
  }

  #send(reader: Reader, chunk: Chunk, nowMs: number): void {
    try {
      reader.send(chunk, nowMs);
    } catch (error) {
      this.#fail(reader.channel, reader.channel.readers, error);
      return;
    }
    if (reader.isEnded) this.#leave(reader);
    else if (reader.writingSinceMs === null) this.#place(reader);
  }

  #want(reader: Reader): void {
    const { channel, seq } = reader;
    let fetch = channel.fetches.get(seq);
    if (fetch === undefined) {
      fetch = { channel, afterSeq: seq, readers: new Set() };
      channel.fetches.set(seq, fetch);
      this.#wanted.add(fetch);
    }
    fetch.readers.add(reader);
  }

  /** @returns whether one was started, so that there may be another one to start */
  #startRead(): boolean {
    if (this.#reads >= READS_AT_ONCE) return false;
    for (const fetch of this.#wanted) {
      this.#wanted.delete(fetch);
      if (fetch.readers.size === 0) {
        fetch.channel.fetches.delete(fetch.afterSeq);
        continue;
      }
      this.#reads++;
      void this.#read(fetch);
      return true;
    }
    return false;
  }

  async #read(fetch: Fetch): Promise<void> {
    const { channel, afterSeq } = fetch;
    const fromBusyMs = this.#thread.busyMs();
    const knownEndSeq = channel.endSeq;
    let chunk: Chunk | null = null;
    let failure: unknown = null;
    try {
      const page = await channel.view.read(afterSeq);
      if (page.lines.length > 0) chunk = channel.keep(page);
      else if (await channel.view.exists()) channel.nothingBehind(afterSeq, knownEndSeq);
      else channel.isGone = true;
    } catch (error) {
      failure = error;
    }
    this.#reads--;
    channel.fetches.delete(afterSeq);
    this.#pacer.charge(fromBusyMs);
    if (failure !== null) this.#fail(channel, fetch.readers, failure);
    else this.#deliver(fetch, chunk);
    if (this.#wanted.size > 0) this.#pacer.wake();
  }

  #deliver({ channel, readers }: Fetch, chunk: Chunk | null): void {
    for (const reader of readers) {
      reader.fetched = chunk;
      this.#fetched.add(reader);
    }
    const hasEnded = channel.isGone && this.#queueIdle(channel);
    if (hasEnded || readers.size > 0) this.#pacer.wake();
  }

  /** The readers reconnect with their ids, and then succeed or get an error answer. */
  #fail(channel: Channel, readers: Iterable<Reader>, error: unknown): void {
    const message = "events could not be streamed; the readers were cut off and will come back";
    this.#log.warn({ jobId: channel.view.jobId, err: error }, message);
    for (const reader of readers) reader.destroy();
  }

  #end(reader: Reader): void {
    reader.end(this.#thread.nowMs());
    this.#leave(reader);
  }

  /** The reader gets nothing more; its connection may still have to take the end. */
  #leave(reader: Reader): void {
    const { channel } = reader;
    this.#queue.delete(reader);
    this.#fetched.delete(reader);
    channel.leave(reader);
    if (channel.readers.size === 0 && this.#channels.get(channel.view.key) === channel) {
      this.#channels.delete(channel.view.key);
      channel.close();
    }
  }

  /** The connection is closed. */
  #forget(reader: Reader): void {
    this.#leave(reader);
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#stopBeat?.();
    this.#stopBeat = null;
  }

  /** One timer for all: heartbeats for idle readers; stalled readers are disconnected. */
  #beat(): void {
    const stalledMs = this.#thread.nowMs() - STALLED_MS;
    for (const reader of this.#readers) {
      if (reader.writingSinceMs === null) reader.isBeatDue = true;
      else if (reader.writingSinceMs <= stalledMs) reader.destroy();
    }
    for (const channel of this.#channels.values()) {
      if (this.#queueIdle(channel)) this.#pacer.wake();
      channel.trim();
    }
    this.#stopBeat = this.#thread.after(HEARTBEAT_MS, () => this.#beat());
  }

  #stop(): void {
    for (const reader of this.#readers) this.#end(reader);
  }
}
