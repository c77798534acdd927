// One reading of a run's events for any number of browsers.
//
// - There is one connection to the source for all browsers; one that wants events which are no longer kept
//   gets a reading of its own.
// - What is kept is bounded in number and bytes; the oldest go first.
// - A browser gets the events behind the id that it names, once each, in order, with their ids, and at its own pace: what
//   it has not taken yet is in the history, not in memory of its own. One that stops reading is cut off.
// - After the last event a stream ends; a browser that has that one already is answered 204, so that it does not reconnect.

import { once } from "node:events";

const KEPT_FRAMES_MAX = 20_000;
const KEPT_BYTES_MAX = 32 * 1024 * 1024;
const WRITE_BYTES = 256 * 1024;
const HEARTBEAT_MS = 15_000;
const STALLED_MS = 60_000;
const READERS_MAX = 500;
const OWN_READINGS_MAX = 20;

export class EventHub {
  #source;
  #finalOf;
  #frames = [];
  #bytes = 0;
  /** The id before the oldest frame that is kept. */
  #droppedId = 0;
  #readers = new Set();
  #ownReadings = 0;
  #final = null;
  /** Settles when there is news for browsers, or a heartbeat is due. */
  #news = Promise.withResolvers();
  /** "connecting", "live", "reconnecting" or "ended". */
  state = "connecting";

  /** @param finalOf what a run came to, for those who will not be able to ask any more; asked for once */
  constructor(source, finalOf) {
    this.#source = source;
    this.#finalOf = finalOf;
  }

  /** Follows the source until the run has ended. */
  async start() {
    const heartbeat = setInterval(() => this.#wake(), HEARTBEAT_MS);
    await this.#source.follow(0, {
      signal: new AbortController().signal,
      onFrame: (frame) => this.#keep(frame),
      onState: (state) => this.#tell(state),
      hasRoom: async () => {},
    });
    clearInterval(heartbeat);
    this.#tell("ended");
  }

  get #lastId() {
    return this.#frames.at(-1)?.id ?? this.#droppedId;
  }

  #keep({ id, text }) {
    const bytes = Buffer.from(text);
    this.#frames.push({ id, bytes });
    this.#bytes += bytes.length;
    if (this.#frames.length > KEPT_FRAMES_MAX * 1.1 || this.#bytes > KEPT_BYTES_MAX * 1.1) this.#drop();
    this.#wake();
  }

  /** A tenth at a time, so that one event costs nothing to speak of. */
  #drop() {
    let count = 0;
    while (
      count < this.#frames.length - 1 &&
      (this.#frames.length - count > KEPT_FRAMES_MAX || this.#bytes > KEPT_BYTES_MAX)
    ) {
      this.#bytes -= this.#frames[count].bytes.length;
      this.#droppedId = this.#frames[count].id;
      count++;
    }
    this.#frames.splice(0, count);
  }

  #tell(state) {
    if (state === this.state) return;
    this.state = state;
    for (const reader of this.#readers) reader.isStateDue = true;
    this.#wake();
  }

  #wake() {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** Answers a request for the stream. */
  serve(request, response) {
    const afterId = Number(/^\d{1,15}$/.exec(request.headers["last-event-id"] ?? "")?.[0] ?? 0);
    if (this.state === "ended" && afterId >= this.#lastId) {
      response.writeHead(204).end();
      return;
    }
    const wantsOwn = afterId < this.#droppedId;
    if (this.#readers.size >= READERS_MAX || (wantsOwn && this.#ownReadings >= OWN_READINGS_MAX)) {
      response.writeHead(503, { "retry-after": "5" }).end();
      return;
    }
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    response.write("retry: 1000\n\n");
    const reader = new Reader(response, afterId);
    this.#readers.add(reader);
    const work = wantsOwn ? this.#feedAlone(reader) : this.#feed(reader);
    work.catch(() => response.destroy()).finally(() => this.#readers.delete(reader));
  }

  async #feed(reader) {
    while (!reader.gone.aborted) {
      if (reader.isStateDue) await this.#writeState(reader);
      const from = this.#placeBehind(reader.lastId);
      if (reader.lastId < this.#droppedId) return reader.response.destroy();
      if (from < this.#frames.length) await this.#write(reader, from);
      else if (this.state === "ended") return this.#end(reader);
      else if (!reader.isStateDue) await this.#waitForNews(reader);
    }
  }

  /** What wakes it without news is the heartbeat. */
  async #waitForNews(reader) {
    const lastId = this.#lastId;
    await this.#news.promise;
    if (this.#lastId === lastId && !reader.isStateDue) await reader.write(": still here\n\n");
  }

  #write(reader, from) {
    const parts = [];
    let bytes = 0;
    for (let i = from; i < this.#frames.length && bytes < WRITE_BYTES; i++) {
      parts.push(this.#frames[i].bytes);
      bytes += this.#frames[i].bytes.length;
      reader.lastId = this.#frames[i].id;
    }
    return reader.write(Buffer.concat(parts));
  }

  #writeState(reader) {
    reader.isStateDue = false;
    const upstream = this.state === "live" || this.state === "ended" ? "live" : "reconnecting";
    return reader.write(notice("connection", { upstream }));
  }

  /** What the run came to is sent along: this server may be gone when the browser asks. */
  async #end(reader) {
    this.#final ??= this.#finalOf();
    await reader.write(notice("final", await this.#final));
    reader.response.end();
  }

  /**
   * A reading of its own, from as far back as it wants up to where the history that is kept begins; from there on it
   * is fed like all others. The source waits while the browser does.
   */
  async #feedAlone(reader) {
    this.#ownReadings++;
    const enough = new AbortController();
    const signal = AbortSignal.any([reader.gone, enough.signal]);
    try {
      await this.#source.follow(reader.lastId, {
        signal,
        onState: () => {},
        onFrame: ({ id, text }) => {
          if (signal.aborted) return;
          reader.lastId = id;
          reader.response.write(text);
          if (id >= this.#droppedId) enough.abort();
        },
        hasRoom: () => reader.hasRoom(),
      });
    } finally {
      this.#ownReadings--;
    }
    await this.#feed(reader);
  }

  #placeBehind(id) {
    let [low, high] = [0, this.#frames.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#frames[middle].id > id) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const notice = (event, data) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** A browser that reads the stream. */
class Reader {
  response;
  lastId;
  /** Whether the state of the connection to the source is to be sent. */
  isStateDue = true;
  #gone = new AbortController();

  constructor(response, afterId) {
    this.response = response;
    this.lastId = afterId;
    response.once("close", () => this.#gone.abort());
  }

  /** Aborted when its connection is closed. */
  get gone() {
    return this.#gone.signal;
  }

  /** Resolves when the connection takes more. */
  async write(bytes) {
    if (!this.gone.aborted) this.response.write(bytes);
    await this.hasRoom();
  }

  /** The same, without anything to write; one that takes nothing for too long is cut off. */
  async hasRoom() {
    if (this.gone.aborted || !this.response.writableNeedDrain) return;
    const timer = setTimeout(() => this.response.destroy(), STALLED_MS);
    await once(this.response, "drain", { signal: this.gone }).catch(() => {});
    clearTimeout(timer);
  }
}
