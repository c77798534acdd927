// The feed: events as they come, newest last. While it follows, the newest is in sight; as soon as a reader scrolls back
// it stands still, and only counts what comes.
//
// - The document never holds more than ROWS_MAX of them, whatever the run does.
// - While it does not follow, nothing in it moves.
// - It is one stop of the Tab key, however many events it shows.

import { atMost, byId, element, scrollable, setAttribute, setText } from "./dom.js";
import { levelNames, levelOf } from "./event.js";
import { FeedStore } from "./feed-store.js";
import { clean, count, ends, plural, start, timeOfDay } from "./format.js";
import { readHistory } from "./stream.js";

const [DEBUG, INFO] = [levelNames.indexOf("debug"), levelNames.indexOf("info")];
const ROWS_MAX = 500;
const OLDER_AT_ONCE = 200;
const TEXT_CHARS_MAX = 600;
const WHOLE_CHARS_MAX = 100_000;
/** Choices of a filter; more would be no help. */
const CHOICES_MAX = 1_000;
/** Matches of a search that are shown. */
const FOUND_MAX = 2_000;
const OTHER_FILTER = "another filter";
/** So near the end counts as at the end. */
const NEAR_PX = 24;

export class FeedView {
  #page;
  #store = new FeedStore();
  #list = byId("feed");
  #isFollowing = true;
  /** The newest event that is shown, or was when the feed stopped following. */
  #shownId = 0;
  #choices = { type: new Set(), agent: new Set() };
  #rows = new WeakMap();
  /** A search of older events that is under way. */
  #search = null;

  constructor(page) {
    this.#page = page;
    scrollable(this.#list, "Events");
    const refilter = () => this.#refilter();
    byId("filters").addEventListener("change", refilter);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filter-text").addEventListener("input", atMost(150, refilter));
    byId("follow").addEventListener("click", () => this.#follow(!this.#isFollowing));
    byId("older").addEventListener("click", () => this.#showOlder());
    this.#list.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("click", ({ target }) => toggle(target.closest("li"), this.#rows));
    byId("search-older").addEventListener("click", () => void this.#searchOlder());
    for (const { node_id: id } of page.config.graph?.nodes ?? []) this.#choice("agent", id);
    this.#refilter();
  }

  add(event) {
    this.#choice("type", event.type);
    if (event.agent_id != null) this.#choice("agent", event.agent_id);
    this.#store.add(event, this.#levelOf(event), 200 + roughChars(event.payload));
  }

  /** What helpers beside the graph do, such as this very dashboard, is of interest when it goes wrong. */
  #levelOf(event) {
    const { model } = this.#page;
    const isAside = event.agent_id != null && !model.isDiscovered && !model.agents.has(event.agent_id);
    const level = levelOf(event);
    return isAside && level === INFO ? DEBUG : level;
  }

  /** Shows the events of one agent, and brings them into sight. */
  showAgent(id) {
    this.#choice("agent", id);
    byId("filter-agent").value = id;
    this.#refilter();
    byId("events").scrollIntoView({ block: "start" });
    this.#list.focus({ preventScroll: true });
  }

  draw() {
    const { matches } = this.#store;
    if (this.#isFollowing) this.#append(matches);
    const isEmpty = matches.length === 0;
    byId("feed-empty").hidden = !isEmpty;
    setText(
      byId("feed-empty"),
      this.#page.model.lastId === 0 ? "Nothing has happened yet." : "No event passes these filters.",
    );
    setText(byId("events-count"), this.#countText());
    setAttribute(byId("follow"), "aria-pressed", this.#isFollowing);
    const first = this.#list.firstElementChild;
    const hasOlder = first !== null && !isEmpty && matches[0].event.id < this.#rows.get(first).event.id;
    byId("older").hidden = !hasOlder;
    byId("search").hidden = this.#store.dropped === 0;
  }

  // ---------------------------------------------------------------------------------------------- rows

  #append(matches) {
    const from = firstBehind(matches, this.#shownId);
    if (from === matches.length) return;
    const added = matches.slice(Math.max(from, matches.length - ROWS_MAX));
    this.#list.append(...added.map((entry) => this.#row(entry)));
    this.#trim();
    this.#shownId = matches.at(-1).event.id;
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** Takes away the oldest rows beyond the limit. A row that has the focus hands it to the list. */
  #trim() {
    while (this.#list.childElementCount > ROWS_MAX) {
      const oldest = this.#list.firstElementChild;
      if (oldest.contains(document.activeElement)) this.#list.focus({ preventScroll: true });
      oldest.remove();
    }
  }

  #showOlder() {
    const { matches } = this.#store;
    const first = this.#list.firstElementChild;
    if (first === null) return;
    this.#stand();
    const end = firstBehind(matches, this.#rows.get(first).event.id - 1);
    const older = matches.slice(Math.max(0, end - OLDER_AT_ONCE), end);
    const heightBefore = this.#list.scrollHeight;
    this.#list.prepend(...older.map((entry) => this.#row(entry)));
    // What a reader looks at stays where it is.
    this.#list.scrollTop += this.#list.scrollHeight - heightBefore;
    while (this.#list.childElementCount > ROWS_MAX) this.#list.lastElementChild.remove();
    const last = this.#list.lastElementChild;
    this.#shownId = this.#rows.get(last).event.id;
    this.draw();
    if (byId("older").hidden) this.#list.focus({ preventScroll: true });
  }

  #row(entry) {
    const { event, level, text } = entry;
    const name = levelNames[level];
    const row = element(
      "li",
      { class: "event", tabindex: -1, "data-level": name },
      element("time", {
        datetime: event.timestamp,
        title: event.timestamp,
        text: timeOfDay(event.timestamp),
      }),
      element("span", { class: "level", text: name }),
      element("span", { class: "who", dir: "auto", text: ends(clean(event.agent_id ?? "run"), 60) }),
      element("span", { class: "what" }, ...what(entry, text)),
    );
    this.#rows.set(row, entry);
    return row;
  }

  // ------------------------------------------------------------------------------------------ following

  #follow(shall) {
    if (!shall) {
      this.#stand();
      this.draw();
      return;
    }
    this.#isFollowing = true;
    // The rows between the last one shown and the first one that will be may be more than are shown at all.
    if (this.#behind() > ROWS_MAX) this.#list.replaceChildren();
    this.draw();
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  #stand() {
    this.#isFollowing = false;
  }

  #scrolled() {
    const list = this.#list;
    const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - NEAR_PX;
    if (isAtEnd && !this.#isFollowing && this.#behind() === 0) this.#isFollowing = true;
    else if (!isAtEnd && this.#isFollowing) this.#stand();
    else return;
    this.draw();
  }

  #behind() {
    const { matches } = this.#store;
    return matches.length - firstBehind(matches, this.#shownId);
  }

  #key(event) {
    const rows = this.#list;
    const current = document.activeElement?.closest?.("#feed > li") ?? null;
    const moves = {
      ArrowDown: () => (current === null ? rows.lastElementChild : current.nextElementSibling),
      ArrowUp: () => (current === null ? rows.lastElementChild : current.previousElementSibling),
      Home: () => rows.firstElementChild,
      End: () => rows.lastElementChild,
    };
    const target = Object.hasOwn(moves, event.key) ? moves[event.key]() : null;
    if (target !== null) {
      event.preventDefault();
      if (event.key !== "End") this.#stand();
      target.focus();
      this.draw();
    } else if (event.key === "Enter" && current !== null) toggle(current, this.#rows);
    else if (event.key === "Escape" && current !== null) rows.focus({ preventScroll: true });
  }

  // -------------------------------------------------------------------------------------------- filters

  #refilter() {
    this.#search?.abort(OTHER_FILTER);
    setText(byId("search-text"), "");
    this.#store.setFilter({
      level: Number(byId("filter-level").value),
      type: byId("filter-type").value,
      agent: byId("filter-agent").value,
      text: byId("filter-text").value,
      ...this.#page.range?.(),
    });
    this.#list.replaceChildren();
    this.#shownId = 0;
    this.#isFollowing = true;
    this.draw();
  }

  /** Reads the history from its start up to what is kept here, and shows what passes the filters, the newest of it. */
  async #searchOlder() {
    if (this.#search !== null) return this.#search.abort();
    const search = new AbortController();
    this.#search = search;
    setText(byId("search-older"), "Stop");
    const found = [];
    let number = 0;
    const tell = (what) =>
      setText(
        byId("search-text"),
        `${count(number)} matches${number > found.length ? `, the newest ${count(found.length)} shown` : ""}; ${what}`,
      );
    let outcome = "the history cannot be read now";
    try {
      const url = new URL(this.#page.config.events, import.meta.url);
      for await (const event of readHistory(url, search.signal, this.#page.headers)) {
        // What is kept is shown anyway; meanwhile some of it may have been dropped.
        if (event.id >= this.#store.firstId) break;
        const entry = this.#store.matching(event, this.#levelOf(event));
        if (entry !== null && ++number && found.push(entry) > 2 * FOUND_MAX) found.splice(0, FOUND_MAX);
        if (event.id % 1_000 === 0)
          tell(`read ${count(event.id)} of ${count(this.#store.firstId - 1)} events`);
      }
      outcome = "all events are searched";
    } catch {
      if (search.signal.aborted) outcome = "stopped";
    }
    this.#search = null;
    setText(byId("search-older"), "Search all older events");
    // Another filter has begun meanwhile.
    if (search.signal.reason === OTHER_FILTER) return;
    found.splice(0, found.length - FOUND_MAX);
    tell(outcome);
    this.#store.showFound(found);
    this.#list.replaceChildren();
    this.#shownId = 0;
    this.#isFollowing = true;
    this.draw();
  }

  /** A type or an agent that was not there before becomes a choice, in the order of the alphabet. */
  #choice(kind, value) {
    const known = this.#choices[kind];
    if (known.has(value) || known.size >= CHOICES_MAX || typeof value !== "string") return;
    known.add(value);
    const select = byId(`filter-${kind}`);
    const option = element("option", { value, text: start(clean(value), 80) });
    const options = [...select.options].slice(1);
    select.insertBefore(option, options.find((one) => one.value > value) ?? null);
  }

  #countText() {
    const { matches, kept, dropped } = this.#store;
    const all = kept + dropped;
    if (all === 0) return "";
    const shown = matches.length === kept ? "" : `${count(matches.length)} of `;
    const behind = this.#isFollowing ? 0 : this.#behind();
    const news = behind === 0 ? "" : `; ${count(behind)} new below`;
    return `${shown}${plural(all, "event")}${news}${dropped > 0 ? `; the oldest ${count(dropped)} are no longer kept here` : ""}`;
  }
}

/** The place of the first match whose id is above this one. */
function firstBehind(matches, id) {
  return matches.findLastIndex(({ event }) => event.id <= id) + 1;
}

/** A log is shown as its message; of any other event the type comes first. */
function what({ event }, text) {
  const message = element("span", { class: "message", dir: "auto", text: start(text, TEXT_CHARS_MAX) });
  if (event.type === "log") return [message];
  return [element("code", { class: "type", text: event.type }), " ", message];
}

/** Opens the whole of an event below its line, or closes it. */
function toggle(row, rows) {
  if (row === null || getSelection()?.isCollapsed === false) return;
  const open = row.querySelector("pre");
  if (open !== null) {
    open.remove();
    return;
  }
  const { event, text } = rows.get(row);
  const json = clean(JSON.stringify(event, null, 2));
  const whole = event.type === "log" && text.length > TEXT_CHARS_MAX ? `${text}\n\n${json}` : json;
  row.append(element("pre", { dir: "ltr", text: start(whole, WHOLE_CHARS_MAX) }));
}

function roughChars(value) {
  return value === null || typeof value !== "object" ? 8 : JSON.stringify(value).length;
}
