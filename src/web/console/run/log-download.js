// @ts-check
// Saves the lines of a log that pass a filter, oldest first, one JSON record in a line. They come as one stream and are handed
// to the browser piece by piece, which keeps what is large on the disk: the page holds none of them.

import { followStream } from "../../dashboard/run-stream.mjs";
import { get, urlOf } from "../api.js";
import { keyHeaders } from "../session.js";

/**
 * What is logged while it is saved is left out.
 *
 * @param {string} runId @param {Record<string, string>} filter
 * @param {AbortSignal} signal gives up: nothing is saved
 * @param {(lines: number) => void} onProgress
 * @returns {Promise<void>} @throws Error when the log cannot be read to its end
 */
export async function download(runId, filter, signal, onProgress) {
  const path = `/runs/${encodeURIComponent(runId)}/logs`;
  const lastId = await newestOf(path, filter, signal);
  /** @type {Blob[]} */
  const pieces = [];
  let lines = 0;
  if (lastId !== null) {
    const enough = new AbortController();
    const ending = await followStream({
      url: urlOf(`${path}/stream`, filter),
      headers: { accept: "text/event-stream", ...keyHeaders() },
      lastId: 0,
      endings: new Map([
        [401, "refused"],
        [404, "gone"],
      ]),
      signal: AbortSignal.any([signal, enough.signal]),
      onLive: () => {},
      onFrames: (/** @type {any[]} */ frames) => {
        const meant = frames.filter(({ id }) => typeof id === "number" && id <= lastId);
        pieces.push(new Blob(meant.map(({ data }) => `${data}\n`)));
        lines += meant.length;
        onProgress(lines);
        if (Number(frames.at(-1)?.id) >= lastId) enough.abort();
      },
      beforeRetry: async (/** @type {number} */ retryMs) => {
        await new Promise((resolve) => setTimeout(resolve, retryMs));
        return !signal.aborted;
      },
    });
    if (signal.aborted) return;
    if (ending === "refused" || ending === "gone")
      throw new Error("The log could not be read to its end. Reload the page, then try again.");
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(pieces, { type: "application/x-ndjson" }));
  link.download = `${runId}-log.jsonl`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** @param {string} path @param {Record<string, string>} filter @param {AbortSignal} signal @returns {Promise<number | null>} */
async function newestOf(path, filter, signal) {
  let token = null;
  do {
    const page = await get(path, { ...filter, order: "desc", page_size: 1, page_token: token }, signal);
    if (page.items.length > 0) return page.items[0].id;
    token = page.next_page_token;
  } while (token !== null);
  return null;
}
