// One reading of a run's events for any number of browsers.
//
// H1. There is one connection to the source, whoever watches; a browser that wants events which are no longer kept
//     gets a reading of its own.
// H2. What is kept is bounded in number and bytes; the oldest go first.
// H3. A browser gets the events behind the id that it names, once each, in order, with their ids, and at its own pace: what
//     it has not taken yet stands in the history, not in memory of its own. One that stops reading is cut off.
// H4. After the last event a stream ends; who has that one already is told with 204 not to come back.

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
  #stopping = new AbortController();
  #final = null;
  /** "connecting", "live", "reconnecting" or "ended". */
  state = "connecting";

  /** @param finalOf what a run came to, for those who will not be able to ask any more; asked for once */
  constructor(source, finalOf) {
    this.#source = source;
    this.#finalOf = finalOf;
  }

  /** Follows the source until the run has ended. */
  async start() {
    const heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS);
    await this.#source.follow(0, {
      signal: this.#stopping.signal,
      onFrame: (frame) => this.#keep(frame),
      onState: (state) => this.#tell(state),
      hasRoom: async () => {},
    });
    if (this.#stopping.signal.aborted) return;
    this.#tell("ended");
    clearInterval(heartbeat);
  }

  /** How many browsers are being told. */
  get readers() {
    return this.#readers.size;
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
    for (const reader of this.#readers) reader.hasNews = true;
    this.#wake();
  }

  #wake() {
    for (const reader of this.#readers) reader.wake();
  }

  #beat() {
    for (const reader of this.#readers) if (reader.isWaiting) reader.response.write(": still here\n\n");
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
    while (!reader.isClosed) {
      if (reader.hasNews) await reader.write(this.#news(reader));
      const from = this.#placeBehind(reader.lastId);
      if (reader.lastId < this.#droppedId) return reader.cut();
      if (from < this.#frames.length) await this.#write(reader, from);
      else if (this.state === "ended") return this.#end(reader);
      else if (!reader.hasNews) await reader.news();
    }
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

  #news(reader) {
    reader.hasNews = false;
    const upstream = this.state === "live" || this.state === "ended" ? "live" : "reconnecting";
    return notice("connection", { upstream });
  }

  /** What the run came to is sent along: this server may be gone when the browser asks. */
  async #end(reader) {
    this.#final ??= this.#finalOf();
    await reader.write(notice("final", await this.#final));
    reader.response.end();
  }

  /**
   * A reading of its own (H1), from as far back as it wants up to where the history that is kept begins; from there on it
   * is fed like all others. The source waits while the browser does.
   */
  async #feedAlone(reader) {
    this.#ownReadings++;
    const enough = new AbortController();
    const stop = () => enough.abort();
    reader.response.once("close", stop);
    try {
      await this.#source.follow(reader.lastId, {
        signal: AbortSignal.any([this.#stopping.signal, enough.signal]),
        onState: () => {},
        onFrame: ({ id, text }) => {
          if (enough.signal.aborted) return;
          reader.lastId = id;
          reader.response.write(text);
          if (id >= this.#droppedId) stop();
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

  stop() {
    this.#stopping.abort();
  }
}

const notice = (event, data) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** A browser that is being told. */
class Reader {
  response;
  lastId;
  hasNews = true;
  isClosed = false;
  #wakeUp = null;
  /** Lets go on who waits for room. */
  #goOn = null;

  constructor(response, afterId) {
    this.response = response;
    this.lastId = afterId;
    response.on("drain", () => this.#goOn?.());
    response.once("close", () => {
      this.isClosed = true;
      this.wake();
      this.#goOn?.();
    });
  }

  /** Whether it has everything there is. */
  get isWaiting() {
    return this.#wakeUp !== null;
  }

  news() {
    return new Promise((resolve) => {
      this.#wakeUp = resolve;
    });
  }

  wake() {
    this.#wakeUp?.();
    this.#wakeUp = null;
  }

  /** Resolves when the connection takes more. */
  async write(bytes) {
    if (!this.isClosed) this.response.write(bytes);
    await this.hasRoom();
  }

  /** The same, without anything to write; one that takes nothing for too long is cut off. */
  async hasRoom() {
    if (this.isClosed || !this.response.writableNeedDrain) return;
    const timer = setTimeout(() => this.cut(), STALLED_MS);
    await new Promise((resolve) => {
      this.#goOn = resolve;
    });
    clearTimeout(timer);
  }

  cut() {
    this.response.destroy();
  }
}
