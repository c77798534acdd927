// @ts-check
// The stream of the gateway's lists, kept open: GET /api/v1/stream. In a worker for all tabs (list-worker.js), or in a tab where
// there are no such workers.

import { followStream } from "../dashboard/run-stream.mjs";

const STREAM = "/api/v1/stream";
/** How a status of the answer ends it: there is somebody to sign in, or nothing to follow here. */
const endings = new Map([
  [401, "sign-in"],
  [403, "none"],
  [404, "none"],
]);

/**
 * @typedef {object} State
 * @property {"state"} kind
 * @property {"connecting" | "live" | "reconnecting" | "sign-in" | "none"} state
 * @property {number | null} sinceMs when it was live for the last time; null while it is, or was not yet
 */
/**
 * @typedef {object} News
 * @property {"news"} kind
 * @property {boolean} isReset whether all lists are to be read again
 * @property {{ topic: string, id: string, changes: any }[]} changes in order
 */

export class ListConnection {
  /** @type {(message: State | News) => void} */
  #tell;
  /** @type {Record<string, string>} */
  #headers = {};
  /** @type {AbortController | null} */
  #ending = null;
  /** @type {State} */
  state = { kind: "state", state: "connecting", sinceMs: null };

  /** @param {(message: State | News) => void} tell */
  constructor(tell) {
    this.#tell = tell;
  }

  /** Opens the stream, unless it is open. @param {Record<string, string>} headers of who has signed in last */
  follow(headers) {
    this.#headers = headers;
    if (this.#ending === null) void this.#run();
  }

  end() {
    this.#ending?.abort();
    this.#ending = null;
  }

  async #run() {
    const ending = new AbortController();
    this.#ending = ending;
    const end = await followStream({
      url: new URL(STREAM, location.origin),
      headers: { accept: "text/event-stream", ...this.#headers },
      lastId: 0,
      endings,
      signal: ending.signal,
      onLive: () => this.#set("live"),
      onFrames: (/** @type {any[]} */ frames) => this.#take(frames),
      beforeRetry: async (/** @type {number} */ retryMs) => {
        this.#set("reconnecting");
        await new Promise((resolve) => setTimeout(resolve, retryMs));
        return !ending.signal.aborted;
      },
    });
    if (this.#ending !== ending) return;
    this.#ending = null;
    if (end === "sign-in" || end === "none") this.#set(end);
  }

  /** @param {State["state"]} state */
  #set(state) {
    const sinceMs = state === "live" ? null : this.state.state === "live" ? Date.now() : this.state.sinceMs;
    this.state = { kind: "state", state, sinceMs };
    this.#tell(this.state);
  }

  /** @param {any[]} frames */
  #take(frames) {
    const reset = frames.findLastIndex(({ event }) => event === "reset");
    const changes = frames
      .slice(reset + 1)
      .flatMap(({ event, data }) => (event === "change" ? [JSON.parse(data)] : []));
    this.#tell({ kind: "news", isReset: reset >= 0, changes });
  }
}
