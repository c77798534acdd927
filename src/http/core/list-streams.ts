// The stream of lists: what changes in the records of a gateway, for pages that show many of them.
//
// - A change is read and rendered once for all readers, and not more often than every PERIOD_MS for one record; a reader gets
//   what the record is now, never a backlog of what it was.
// - A reader that comes back with Last-Event-ID gets each record that has changed meanwhile. Where that is not known any more
//   (another process has given the id, or it is too old) it gets one `reset`, and has to read its lists again.
// - Reading takes READ_SHARE of the thread's time, if a pause of PAUSE_MS_MAX is enough for that: what else the thread does while
//   it waits for the database counts as reading. What comes faster is gathered for longer.
// - With no reader nothing is read. What changes is noted for ten minutes more, for readers that come back.

import type { ServerResponse } from "node:http";
import { type Note, NoteQueue, type NoteSource } from "../../runs/change-notes.ts";
import { ChangeRing } from "./change-ring.ts";
import { endWithClient } from "./half-closed.ts";
import { streamHeaders } from "./sse-channel.ts";
import type { Thread } from "./sse-pacer.ts";

const PERIOD_MS = 100;
const READ_SHARE = 0.05;
const PAUSE_MS_MAX = 1_000;
const READ_AT_ONCE = 100;
/** Of one write. */
const CHARS_AT_ONCE = 64 * 1024;
const HEARTBEAT_MS = 15_000;
/** A reader that takes nothing for so many heartbeats is cut off; it may come back. */
const STALLED_BEATS = 4;
const AGAIN_MS = 1_000;
const KEPT_MS = 10 * 60_000;
const ringLimits = { changesMax: 20_000, charsMax: 16 * 1024 * 1024, ageMaxMs: KEPT_MS };

/** A record that has changed, as it is now. */
export interface ListChange {
  readonly topic: string;
  /** Of all records of the topic. */
  readonly key: string;
  /** {"topic","id","changes"} */
  readonly json: string;
}

export interface ListStreamsParts {
  readonly notes: NoteSource;
  /** Reads what the notes name. */
  read(notes: readonly Note[]): Promise<readonly ListChange[]>;
  /** Of this process, and no other one; letters and digits. */
  readonly processId: string;
  readonly stopping: AbortSignal;
  readonly log: { warn(fields: object, message: string): void };
  readonly thread: Thread;
}

interface Reader {
  readonly response: ServerResponse;
  readonly topics: ReadonlySet<string>;
  /** What is behind it is yet to be sent; null until it is known where the reader begins. */
  position: number | null;
  stalledBeats: number;
}

export class ListStreams {
  readonly #parts: ListStreamsParts;
  readonly #ring = new ChangeRing(ringLimits);
  readonly #queue = new NoteQueue();
  readonly #readers = new Set<Reader>();
  #source: ReturnType<NoteSource["listen"]> | null = null;
  #isReading = false;
  #isFailing = false;
  #mayReadAtMs = Number.NEGATIVE_INFINITY;
  #cancelRead: (() => void) | null = null;
  #cancelBeat = () => {};
  #cancelEnd = () => {};

  constructor(parts: ListStreamsParts) {
    this.#parts = parts;
    parts.stopping.addEventListener("abort", () => {
      for (const { response } of this.#readers) response.end();
      this.#stop();
    });
  }

  /** How many readers there are now. */
  get readers(): number {
    return this.#readers.size;
  }

  /**
   * Sends the changes behind `lastId`, and those to come, until the reader is gone.
   *
   * Returns at once; the response belongs to the stream from now on.
   *
   * @param lastId that the reader has come back with; null without one
   */
  serve(response: ServerResponse, topics: ReadonlySet<string>, lastId: string | null): void {
    const { stopping, thread } = this.#parts;
    endWithClient(response);
    // A client that has left already emits no other "close".
    if (response.closed || response.destroyed) return;
    response.writeHead(200, streamHeaders);
    response.write("retry: 1000\n\n");
    if (stopping.aborted) {
      response.end();
      return;
    }
    const isFirst = this.#readers.size === 0;
    const reader: Reader = { response, topics, position: null, stalledBeats: 0 };
    this.#readers.add(reader);
    response.once("close", () => this.#leave(reader));
    if (isFirst) {
      this.#cancelEnd();
      this.#cancelBeat = thread.after(HEARTBEAT_MS, this.#beat);
    }
    this.#source ??= this.#parts.notes.listen((note) => {
      this.#queue.add(note);
      this.#readSoon();
    });
    void this.#source.ready.then(() => this.#begin(reader, lastId));
  }

  #begin(reader: Reader, lastId: string | null): void {
    if (!this.#readers.has(reader)) return;
    const { processId, thread } = this.#parts;
    this.#ring.trim(thread.nowMs());
    const [, given = "-1"] = new RegExp(`^${processId}-(\\d{1,15})$`).exec(lastId ?? "") ?? [];
    reader.position = Number(given);
    // Only now: "drain" comes for the first bytes, too.
    reader.response.on("drain", () => this.#send(reader));
    this.#send(reader);
    if (this.#queue.size > 0) this.#readSoon();
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#cancelBeat();
    if (this.#source !== null) this.#cancelEnd = this.#parts.thread.after(KEPT_MS, () => this.#stop());
  }

  #stop(): void {
    this.#source?.stop();
    this.#source = null;
    this.#cancelRead?.();
    this.#cancelRead = null;
    this.#cancelBeat();
    this.#queue.take(Number.POSITIVE_INFINITY);
    this.#ring.forget();
  }

  #readSoon(): void {
    if (this.#isReading || this.#cancelRead !== null || this.#readers.size === 0) return;
    const waitMs = Math.max(0, this.#mayReadAtMs - this.#parts.thread.nowMs());
    this.#cancelRead = this.#parts.thread.after(waitMs, () => {
      this.#cancelRead = null;
      void this.#read();
    });
  }

  async #read(): Promise<void> {
    const { thread, log } = this.#parts;
    this.#isReading = true;
    const notes = this.#queue.take(READ_AT_ONCE);
    const busyFromMs = thread.busyMs();
    let pauseMs = PERIOD_MS;
    try {
      // It stands alone: the queue keeps no other one beside it.
      if (notes.some(({ topic }) => topic === "")) this.#ring.forget();
      else for (const change of await this.#parts.read(notes)) this.#put(change);
      pauseMs = Math.min(PAUSE_MS_MAX, Math.max(PERIOD_MS, (thread.busyMs() - busyFromMs) / READ_SHARE));
      this.#isFailing = false;
    } catch (err) {
      this.#queue.giveBack(notes);
      if (!this.#isFailing) log.warn({ err }, "changes of lists cannot be read; they are sent later");
      this.#isFailing = true;
      pauseMs = AGAIN_MS;
    }
    this.#isReading = false;
    this.#mayReadAtMs = thread.nowMs() + pauseMs;
    for (const reader of this.#readers) this.#send(reader);
    if (this.#queue.size > 0) this.#readSoon();
  }

  #put({ topic, key, json }: ListChange): void {
    this.#ring.put({ topic, key: `${topic} ${key}`, text: json }, this.#parts.thread.nowMs());
  }

  /** What a slow connection has not taken is not added to; "drain" comes back here. */
  #send(reader: Reader): void {
    const { response, topics } = reader;
    while (reader.position !== null && !response.writableNeedDrain && !response.writableEnded) {
      if (!this.#ring.has(reader.position)) {
        reader.position = this.#ring.head;
        response.write(`${this.#idOf(reader.position)}event: reset\ndata: {}\n\n`);
        continue;
      }
      const { changes, position } = this.#ring.behind(reader.position, topics, CHARS_AT_ONCE);
      reader.position = position;
      if (changes.length === 0) return;
      const frames = changes.map((one) => `${this.#idOf(one.position)}event: change\ndata: ${one.text}\n\n`);
      response.write(frames.join(""));
    }
  }

  #idOf(position: number): string {
    return `id: ${this.#parts.processId}-${position}\n`;
  }

  readonly #beat = (): void => {
    this.#ring.trim(this.#parts.thread.nowMs());
    for (const reader of this.#readers) {
      const { response } = reader;
      if (!response.writableNeedDrain) {
        reader.stalledBeats = 0;
        // The id alone: a reader of quiet topics must not be found to have been away for too long.
        response.write(reader.position === null ? ": still here\n\n" : `${this.#idOf(reader.position)}\n`);
      } else if (++reader.stalledBeats >= STALLED_BEATS) {
        response.destroy();
      }
    }
    this.#cancelBeat = this.#parts.thread.after(HEARTBEAT_MS, this.#beat);
  };
}
