// @ts-check
// The part of a run's log that the page holds: lines in order without a gap, read further in both directions, and at the
// end followed as they come.
//
// - It never holds more than KEPT_MAX lines: what is read at one end is let go at the other, and read again when it is
//   wanted.
// - Lines are told apart by the ids of their events.

import { followStream } from "../../dashboard/run-stream.mjs";
import { get, urlOf } from "../api.js";
import { keyHeaders } from "../session.js";

const PAGE_SIZE = 200;
export const KEPT_MAX = 2_000;

/**
 * @typedef {{ id: number, ts: string, level: string, agent_id: string | null, stream: string, message: string, fields: any }} LogLine
 * @typedef {Record<string, string | number>} Cursor where the log goes on, as parameters of a request
 */

export class LogWindow {
  /** @type {LogLine[]} */
  lines = [];
  /** Before the first line; null when there is nothing. @type {Cursor | null} */
  older = null;
  /** Behind the last line; null when that is the end, which is followed. @type {Cursor | null} */
  newer = null;
  isReading = false;
  /** @type {unknown} */
  error = null;
  /** How often it was opened at another place. */
  opened = 0;
  /** Whether the reader is at the end: then lines that come are worth more than the oldest. */
  isAtEnd = true;
  #path;
  #filter;
  #onChange;
  #ending = new AbortController();
  #following = new AbortController();

  /** @param {string} runId @param {Record<string, string>} filter @param {() => void} onChange */
  constructor(runId, filter, onChange) {
    this.#path = `/runs/${encodeURIComponent(runId)}/logs`;
    this.#filter = filter;
    this.#onChange = onChange;
  }

  /** @param {number} id */
  has(id) {
    return this.lines.some((line) => line.id === id);
  }

  /** Opens it at a line, with what is around it, or at the end. @param {number | null} id */
  async open(id) {
    this.end();
    this.#ending = new AbortController();
    this.isReading = false;
    await this.#reading(async (signal) => {
      /** @type {LogLine[]} */
      let lines = [];
      /** @type {Cursor | null} */
      let older = id === null ? {} : { until_id: id };
      /** @type {Cursor | null} */
      let newer = id === null ? null : { since_id: id };
      let seenId = 0;
      // A page without lines is no reason to stop: the filter may pass few of them.
      while (newer !== null && lines.length === 0) {
        const page = await this.#page("asc", newer, signal);
        [lines, newer, seenId] = [page.items, next(newer, page), page.last_event_id];
      }
      while (older !== null && lines.length === 0) {
        const page = await this.#page("desc", older, signal);
        [lines, older] = [page.items.reverse(), next(older, page)];
        if (id === null) seenId = page.last_event_id;
      }
      this.lines = lines;
      this.older = older;
      this.newer = newer;
      this.opened++;
      if (newer === null) this.#follow(seenId);
    });
  }

  /** Opens it anew after a fault. @param {number | null} id as of `open` */
  async again(id) {
    this.error = null;
    await this.open(id);
  }

  readOlder() {
    return this.#reading(async (signal) => {
      if (this.older === null) return;
      const page = await this.#page("desc", this.older, signal);
      this.lines = [...page.items.reverse(), ...this.lines];
      this.older = next(this.older, page);
      if (this.lines.length > KEPT_MAX) this.#letGoNewest();
    });
  }

  readNewer() {
    return this.#reading(async (signal) => {
      if (this.newer === null) return;
      const page = await this.#page("asc", this.newer, signal);
      this.lines = [...this.lines, ...page.items];
      this.newer = next(this.newer, page);
      this.#letGoOldest();
      if (this.newer === null) this.#follow(page.last_event_id);
    });
  }

  /**
   * The first line of a time or later, within the filter.
   *
   * @param {string | undefined} since an ISO time; undefined: the first of all
   * @returns {Promise<number | null>} its id
   */
  async firstSince(since) {
    /** @type {Cursor | null} */
    let cursor = since === undefined ? {} : { since };
    while (cursor !== null) {
      const page = await get(this.#path, { ...this.#filter, ...cursor, order: "asc", page_size: 1 });
      if (page.items.length > 0) return page.items[0].id;
      cursor = next(cursor, page);
    }
    return null;
  }

  end() {
    this.#ending.abort();
    this.#following.abort();
  }

  /** One at a time; a fault ends it. @param {(signal: AbortSignal) => Promise<void>} read */
  async #reading(read) {
    if (this.isReading || this.error !== null) return;
    const { signal } = this.#ending;
    this.isReading = true;
    this.#onChange();
    try {
      await read(signal);
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
    }
    if (signal.aborted) return;
    this.isReading = false;
    this.#onChange();
  }

  /** @param {string} order @param {Cursor} cursor @param {AbortSignal} signal */
  async #page(order, cursor, signal) {
    const page = await get(this.#path, { ...this.#filter, ...cursor, order, page_size: PAGE_SIZE }, signal);
    signal.throwIfAborted();
    return page;
  }

  /** @param {number} lastId */
  #follow(lastId) {
    this.#following = new AbortController();
    const { signal } = this.#following;
    void followStream({
      url: urlOf(`${this.#path}/stream`, this.#filter),
      headers: { accept: "text/event-stream", ...keyHeaders() },
      lastId,
      endings: new Map([
        [204, "ended"],
        [404, "gone"],
      ]),
      signal,
      onLive: () => {},
      onFrames: (/** @type {any[]} */ frames) => {
        const lines = frames.flatMap(({ data }) => parsed(data));
        if (signal.aborted || lines.length === 0) return;
        this.lines = [...this.lines, ...lines];
        if (this.isAtEnd) this.#letGoOldest();
        else if (this.lines.length > KEPT_MAX) this.#letGoNewest();
        this.#onChange();
      },
      beforeRetry: async (/** @type {number} */ retryMs) => {
        await new Promise((resolve) => setTimeout(resolve, retryMs));
        return !signal.aborted;
      },
    });
  }

  #letGoOldest() {
    if (this.lines.length <= KEPT_MAX) return;
    this.lines = this.lines.slice(-KEPT_MAX);
    this.older = { until_id: this.lines[0]?.id ?? 1 };
  }

  #letGoNewest() {
    this.#following.abort();
    this.newer = { since_id: this.lines[KEPT_MAX]?.id ?? 1 };
    this.lines = this.lines.slice(0, KEPT_MAX);
  }
}

/** @param {Cursor} cursor @param {{ next_page_token: string | null }} page @returns {Cursor | null} */
const next = (cursor, { next_page_token: token }) =>
  token === null ? null : { ...cursor, page_token: token };

/** @param {string} json @returns {LogLine[]} nothing for a frame that is no line */
function parsed(json) {
  try {
    const line = JSON.parse(json);
    return typeof line?.message === "string" ? [line] : [];
  } catch {
    return [];
  }
}
