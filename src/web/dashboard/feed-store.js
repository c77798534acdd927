// The events that the feed can show: the latest ones, and which of them pass its filter. Pure.
//
// - What is kept is bounded in number and in characters, whatever the run does: the oldest go first.
// - A new event costs one look at the filter; only a changed filter looks at all that is kept.

import { eventText } from "./event-text.js";
import { clean } from "./format.js";

const KEPT_MAX = 5_000;
const CHARS_MAX = 16 * 1024 * 1024;
/** They are dropped this many at a time, so that one costs nothing to speak of. */
const DROPPED_AT_ONCE = 500;

/** What of an event is looked through for a text. */
const SEARCHED_CHARS_MAX = 2_000;

export class FeedStore {
  #entries = [];
  #matches = [];
  /** How many of the matches, the first ones, are older than what is kept: a search has found them. */
  #found = 0;
  #chars = 0;
  #filter = { level: 0, type: "", agent: "", text: "" };
  #sinceMs = Number.NEGATIVE_INFINITY;
  #untilMs = Number.POSITIVE_INFINITY;
  /** Events that were kept once. */
  dropped = 0;
  /** How many have passed the filter since it was set, those dropped since included. */
  passed = 0;

  /** The entries that pass the filter, oldest first: {event, level, text}. */
  get matches() {
    return this.#matches;
  }

  get kept() {
    return this.#entries.length;
  }

  /**
   * @param level how urgent it is, from 0
   * @param chars how long it was as text, about
   */
  add(event, level, chars) {
    const entry = { event, level, text: clean(eventText(event)), chars };
    this.#entries.push(entry);
    this.#chars += chars;
    if (this.#passes(entry)) {
      this.#matches.push(entry);
      this.passed++;
    }
    while (this.#entries.length > KEPT_MAX + DROPPED_AT_ONCE || this.#chars > CHARS_MAX) this.#drop();
  }

  /** The id of the oldest event that is kept. */
  get firstId() {
    return this.#entries[0]?.event.id ?? Number.POSITIVE_INFINITY;
  }

  /** @returns {event, level, text} of an event that is not kept, if it passes the filter; else null */
  matching(event, level) {
    const entry = { event, level, text: clean(eventText(event)), chars: 0 };
    return this.#passes(entry) ? entry : null;
  }

  /** @param entries of `matching`, in their order, all of them older than what was kept when their search began */
  showFound(entries) {
    this.#matches.splice(0, this.#found);
    const firstId = this.#matches[0]?.event.id ?? Number.POSITIVE_INFINITY;
    const older = entries.filter(({ event }) => event.id < firstId);
    this.#matches.unshift(...older);
    this.#found = older.length;
  }

  /** @param filter {level: at least this, type, agent, text, since, until}; "" means any; the times, as ISO texts, may be missing */
  setFilter({ since = "", until = "", ...filter }) {
    this.#filter = { ...filter, text: filter.text.toLowerCase() };
    this.#sinceMs = since === "" ? Number.NEGATIVE_INFINITY : Date.parse(since);
    this.#untilMs = until === "" ? Number.POSITIVE_INFINITY : Date.parse(until);
    this.#matches = this.#entries.filter((entry) => this.#passes(entry));
    this.#found = 0;
    this.passed = this.#matches.length;
  }

  #drop() {
    const gone = this.#entries.splice(0, Math.min(DROPPED_AT_ONCE, Math.max(1, this.#entries.length - 1)));
    for (const { chars } of gone) this.#chars -= chars;
    this.dropped += gone.length;
    const found = this.#found;
    let outside = found;
    while (outside < this.#matches.length && this.#matches[outside].event.id < this.firstId) outside++;
    this.#matches.splice(found, outside - found);
    if (gone.length === 0) this.#chars = 0;
  }

  #passes({ event, level, text }) {
    const filter = this.#filter;
    if (level < filter.level) return false;
    if (filter.type !== "" && event.type !== filter.type) return false;
    if (filter.agent !== "" && event.agent_id !== filter.agent) return false;
    const ms = Date.parse(event.timestamp);
    if (ms < this.#sinceMs || ms >= this.#untilMs) return false;
    if (filter.text === "") return true;
    const searched = `${event.type}\n${event.agent_id ?? ""}\n${text.slice(0, SEARCHED_CHARS_MAX)}`;
    return searched.toLowerCase().includes(filter.text);
  }
}
