// @ts-check
// Changes of lists, as the gateway announces them: GET /api/v1/stream. Where there is no such stream, lists are read again
// now and then.

import { atMost } from "../dashboard/dom.js";
import { followStream } from "../dashboard/run-stream.mjs";
import { urlOf } from "./api.js";
import { signal } from "./html.js";
import { keyHeaders } from "./session.js";

const GATHER_MS = 400;
const AGAIN_MS = 3_000;

/** How the console hears of changes. */
export const connection = signal(
  /** @type {"connecting" | "live" | "reconnecting" | "asking"} */ ("connecting"),
);

/** @type {Map<() => void, readonly string[]>} */
const watchers = new Map();
let followed = "";
let ending = new AbortController();

/**
 * Calls `onChange`, not too often, when something of the topics has changed.
 *
 * @param {readonly string[]} topics @param {() => void} onChange @returns {() => void} ends it
 */
export function watch(topics, onChange) {
  const gathered = atMost(GATHER_MS, onChange);
  watchers.set(gathered, topics);
  followAll();
  return () => {
    watchers.delete(gathered);
    followAll();
  };
}

/** @param {string} topic "" for all */
function tell(topic) {
  for (const [onChange, topics] of watchers) if (topic === "" || topics.includes(topic)) onChange();
}

/** One stream for all that is watched; another one when that changes. */
function followAll() {
  const topics = [...new Set([...watchers.values()].flat())].sort().join(",");
  if (topics === followed) return;
  followed = topics;
  ending.abort();
  ending = new AbortController();
  if (topics !== "") void follow(topics, ending.signal);
}

/** @param {string} topics @param {AbortSignal} signal */
async function follow(topics, signal) {
  const end = await followStream({
    url: urlOf("/stream", { topics }),
    headers: { accept: "text/event-stream", ...keyHeaders() },
    lastId: 0,
    endings: new Map([[404, "none"]]),
    signal,
    onLive: () => {
      connection.value = "live";
      // What changed while there was no connection.
      tell("");
    },
    onFrames: (/** @type {any[]} */ frames) => {
      for (const { event, data } of frames) tell(event === "reset" ? "" : topicOf(data));
    },
    beforeRetry: async (/** @type {number} */ retryMs) => {
      connection.value = "reconnecting";
      await new Promise((resolve) => setTimeout(resolve, retryMs));
      return !signal.aborted;
    },
  });
  if (end === "none") askAgain(signal);
}

/** @param {AbortSignal} signal */
function askAgain(signal) {
  connection.value = "asking";
  const timer = setInterval(() => {
    if (!document.hidden) tell("");
  }, AGAIN_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** @param {string} data */
function topicOf(data) {
  try {
    return String(JSON.parse(data).topic);
  } catch {
    return "";
  }
}
