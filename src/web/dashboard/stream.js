// A run's event stream as this page reads it: server-sent events by fetch, because a page that must tell people how
// its connection is, and never apply an event twice, needs more than EventSource tells.
//
// L1. Events are handed over once each and in order, whatever happens to connections: each one goes on behind the
//     last id that was handed over, and an id that was is passed over.
// L2. A connection that is silent for longer than the server's heartbeat is given up.
// L3. What one frame may hold is bounded.
// L4. Before it goes on after an interruption it asks whether the address still shows the same run.

const SILENCE_MS = 45_000;
const FRAME_CHARS_MAX = 4 * 1024 * 1024;
const RETRY_MS = { first: 250, most: 5_000 };

/**
 * @typedef {"connecting" | "live" | "reconnecting" | "ended" | "gone" | "refused" | "replaced"} Connection
 */

/**
 * Follows a run until it has ended.
 *
 * @param {object} options
 * @param {string} options.url the stream
 * @param {() => Promise<boolean>} options.isSameRun asked before every connection but the first (L4)
 * @param {(events: object[]) => void} options.onEvents what came, in batches
 * @param {(notice: object) => void} options.onNotice what the server says beside the events, such as how its own connection is
 * @param {(connection: Connection) => void} options.onConnection
 */
export async function follow({ url, isSameRun, onEvents, onNotice, onConnection }) {
  const place = { lastId: 0 };
  let retryMs = RETRY_MS.first;
  for (let tries = 0; ; tries++) {
    try {
      if (tries > 0 && !(await isSameRun())) return onConnection("replaced");
      const end = await readOnce({ url, place, onEvents, onNotice, onLive: () => onConnection("live") });
      if (end !== "interrupted") return onConnection(end);
    } catch {
      // Whatever broke the connection, the answer is to make a new one.
    }
    onConnection("reconnecting");
    if (place.isFresh) retryMs = RETRY_MS.first;
    place.isFresh = false;
    await pause(retryMs);
    retryMs = Math.min(RETRY_MS.most, retryMs * 2);
  }
}

const endings = new Map([
  [204, "ended"],
  [401, "refused"],
  [403, "refused"],
  [404, "gone"],
]);

/** One connection. @returns how it ended; throws when the network did */
async function readOnce({ url, place, onEvents, onNotice, onLive }) {
  const aborter = new AbortController();
  let watchdog = 0;
  const heard = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => aborter.abort(), SILENCE_MS);
  };
  heard();
  try {
    const answer = await fetch(url, {
      signal: aborter.signal,
      cache: "no-store",
      headers: {
        accept: "text/event-stream",
        ...(place.lastId > 0 && { "last-event-id": String(place.lastId) }),
      },
    });
    const ending = endings.get(answer.status);
    if (ending !== undefined) return ending;
    if (!answer.ok || answer.body === null) return "interrupted";
    onLive();
    const frames = new FrameReader();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let isOver = false;
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      heard();
      const events = [];
      for (const { event, id, data } of frames.push(read.value)) {
        if (id === null) onNotice({ event, ...data });
        else if (id > place.lastId) {
          place.lastId = id;
          place.isFresh = true;
          events.push(data);
          isOver ||= terminalTypes.has(event);
        }
      }
      if (events.length > 0) onEvents(events);
    }
    return isOver ? "ended" : "interrupted";
  } finally {
    clearTimeout(watchdog);
    aborter.abort();
  }
}

/**
 * Reads the history from its start, until its end or until the caller has enough.
 *
 * @throws when the history cannot be read, or the signal gives up
 */
export async function* readHistory(url, signal) {
  const answer = await fetch(url, { signal, cache: "no-store", headers: { accept: "text/event-stream" } });
  if (!answer.ok || answer.body === null) throw new Error(`The history cannot be read (${answer.status}).`);
  const frames = new FrameReader();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      for (const { id, data } of frames.push(read.value)) if (id !== null) yield data;
    }
  } finally {
    void reader.cancel();
  }
}

/** The events after which nothing comes. */
export const terminalTypes = new Set(["job_completed", "job_failed", "job_cancelled"]);

/** Takes the text of a stream apart, whatever pieces it comes in. */
export class FrameReader {
  #rest = "";

  /**
   * @returns the frames that are whole by now; `id` is null for one without
   * @throws RangeError when a frame does not end
   */
  push(text) {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    if (this.#rest.length > FRAME_CHARS_MAX) throw new RangeError("A frame of the stream is too large.");
    return blocks.map(frameOf).filter((frame) => frame !== null);
  }
}

/** @returns null for a comment, and for what is no frame of ours */
function frameOf(block) {
  const fields = { id: null, event: "message", data: null };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (Object.hasOwn(fields, name)) fields[name] = line.slice(colon + 1).replace(/^ /, "");
  }
  if (fields.data === null) return null;
  try {
    const data = JSON.parse(fields.data);
    return { id: fields.id === null ? null : Number(fields.id), event: fields.event, data };
  } catch {
    return null;
  }
}

/** Also ends when the machine is back on the network, or the page is looked at again. */
function pause(ms) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      document.removeEventListener("visibilitychange", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    document.addEventListener("visibilitychange", end);
  });
}
