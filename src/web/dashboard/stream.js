// A run's event stream as this page reads it: by fetch, because a page that must tell people how its connection is, and
// never apply an event twice, needs more than EventSource tells.

import { followStream, framesOf } from "./run-stream.mjs";

const accept = { accept: "text/event-stream" };
const endings = new Map([
  [204, "ended"],
  [401, "refused"],
  [403, "refused"],
  [404, "gone"],
]);

/**
 * Follows a run until it has ended.
 *
 * @param {object} options
 * @param {URL} options.url the stream
 * @param {Record<string, string>} [options.headers] of its requests
 * @param {AbortSignal} [options.signal] gives up
 * @param {() => Promise<boolean>} options.isSameRun asked before every connection but the first
 * @param {(events: object[]) => void} options.onEvents what came, in batches
 * @param {(notice: object) => void} options.onNotice what the server says beside the events, such as how its own connection is
 * @param {(connection: "live" | "reconnecting" | "ended" | "gone" | "refused" | "replaced") => void} options.onConnection
 */
export async function follow({ url, headers, signal, isSameRun, onEvents, onNotice, onConnection }) {
  const ending = await followStream({
    url,
    headers: { ...accept, ...headers },
    lastId: 0,
    endings,
    signal: signal ?? new AbortController().signal,
    onLive: () => onConnection("live"),
    onFrames: (frames) => {
      const read = frames.map(({ id, event, data }) => ({ id, event, data: parsed(data) }));
      const events = read.filter(({ id, data }) => id !== null && data !== null).map(({ data }) => data);
      for (const { id, event, data } of read) if (id === null) onNotice({ event, ...data });
      if (events.length > 0) onEvents(events);
    },
    beforeRetry: async (retryMs) => {
      onConnection("reconnecting");
      await pause(retryMs);
      return isSameRun();
    },
  });
  if (!signal?.aborted) onConnection(ending ?? "replaced");
}

/**
 * Reads the history from its start, until its end or until the caller has enough.
 *
 * @throws when the history cannot be read, or the signal gives up
 */
export async function* readHistory(url, signal, headers = {}) {
  const answer = await fetch(url, { signal, cache: "no-store", headers: { ...accept, ...headers } });
  if (answer.status !== 200) throw new Error(`The history cannot be read (${answer.status}).`);
  for await (const frames of framesOf(answer.body)) {
    for (const { id, data } of frames) {
      const event = id === null ? null : parsed(data);
      if (event !== null) yield event;
    }
  }
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

/** Also ends when the machine is back on the network, or the page becomes visible again. */
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
