// Following a run's event stream: for the page in a browser, and for the server that relays it.
//
// - Events are handed over once each and in order, whatever happens to connections: each one resumes after the last id
//   that was handed over, and an id that was is passed over. Ids that are no numbers are opaque.
// - A connection that is silent for longer than the server's heartbeat is given up.
// - What one frame may hold is bounded.

const SILENCE_MS = 45_000;
const FRAME_CHARS_MAX = 4 * 1024 * 1024;
const RETRY_MS = { first: 250, most: 5_000 };

/** The events after which nothing comes. */
export const terminalTypes = new Set(["job_completed", "job_failed", "job_cancelled"]);

/**
 * Follows a stream through any number of connections.
 *
 * @param {object} stream
 * @param {string | URL} stream.url
 * @param {Record<string, string>} stream.headers
 * @param {number | string} stream.lastId the event to resume after; 0: from the first
 * @param {Map<number, string>} stream.endings how a status of an answer ends it all
 * @param {AbortSignal} stream.signal gives up
 * @param {() => void} stream.onLive
 * @param {(frames: object[]) => unknown} stream.onFrames awaited before more is read
 * @param {(retryMs: number) => Promise<boolean>} stream.beforeRetry waits; false gives up
 * @returns one of the endings; "ended" when the stream was closed after a run's last event; null when it was given up
 */
export async function followStream(stream) {
  const place = { lastId: stream.lastId };
  let retryMs = RETRY_MS.first;
  for (;;) {
    const before = place.lastId;
    // Whatever broke the connection, the answer is to make a new one.
    const ending = await readOnce(stream, place).catch(() => null);
    if (ending !== null || stream.signal.aborted) return ending;
    if (place.lastId !== before) retryMs = RETRY_MS.first;
    if (!(await stream.beforeRetry(retryMs))) return null;
    retryMs = Math.min(RETRY_MS.most, retryMs * 2);
  }
}

/** One connection. @returns null when it was interrupted */
async function readOnce({ url, headers, endings, signal, onLive, onFrames }, place) {
  const silence = new AbortController();
  let watchdog;
  const onBytes = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  onBytes();
  try {
    let isOver = false;
    const resume = place.lastId !== 0 ? { "last-event-id": String(place.lastId) } : {};
    const options = { cache: "no-store", signal: AbortSignal.any([signal, silence.signal]) };
    const answer = await fetch(url, { ...options, headers: { ...headers, ...resume } });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      return endings.get(answer.status) ?? null;
    }
    onLive();
    for await (const frames of framesOf(answer.body, onBytes)) {
      const news = [];
      for (const frame of frames) {
        if (frame.id !== null) {
          if (typeof frame.id === "number" && frame.id <= place.lastId) continue;
          place.lastId = frame.id;
          isOver ||= terminalTypes.has(frame.event);
        }
        news.push(frame);
      }
      if (news.length > 0) await onFrames(news);
    }
    return isOver ? "ended" : null;
  } finally {
    clearTimeout(watchdog);
  }
}

/** The frames of a body, as many at a time as are whole. */
export async function* framesOf(body, onBytes = () => {}) {
  const frames = new FrameReader();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      onBytes();
      yield frames.push(read.value);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Takes the text of a stream apart, whatever pieces it comes in. */
export class FrameReader {
  #rest = "";

  /**
   * @returns [{id, event, data, text}], those that are whole by now; `id` is a number where it is one, and null for a frame
   *   without; `text` is the frame as it came
   * @throws RangeError when a frame does not end
   */
  push(text) {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop();
    if (this.#rest.length > FRAME_CHARS_MAX) throw new RangeError("A frame of the stream is too large.");
    return blocks.map(frameOf).filter(({ data }) => data !== null);
  }
}

/** Without data it is a comment. */
function frameOf(block) {
  const fields = { id: null, event: "message", data: null };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (Object.hasOwn(fields, name)) fields[name] = line.slice(colon + 1).replace(/^ /, "");
  }
  const id = /^\d{1,15}$/.test(fields.id ?? "") ? Number(fields.id) : fields.id;
  return { ...fields, id, text: `${block}\n\n` };
}
