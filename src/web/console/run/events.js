// @ts-check
// The events of the run as they come, filtered: the dashboard's own feed (../../dashboard/feed-view.js). The filters are in
// the address.

import { FeedView } from "../../dashboard/feed-view.js";
import { html, useEffect, useRef } from "../html.js";
import { parameter, setQuery } from "../router.js";
import { keyHeaders } from "../session.js";
import { Range, rangeOf } from "./range.js";

const filters = ["level", "type", "agent", "text"];

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const view = useRef(/** @type {any} */ (null));
  const version = source.version;
  useEffect(() => {
    const events = `/api/v1/runs/${encodeURIComponent(source.id)}/events/stream`;
    const page = {
      config: { graph: source.graph, events },
      model: source.model,
      headers: keyHeaders(),
      range: rangeOf,
    };
    const feed = new FeedView(page);
    for (const event of source.events) feed.add(event);
    restore();
    const add = (/** @type {any} */ event) => feed.add(event);
    source.listeners.add(add);
    view.current = feed;
    return () => source.listeners.delete(add);
  }, []);
  useEffect(() => view.current?.draw(), [version]);
  const range = JSON.stringify(rangeOf());
  useEffect(() => void document.getElementById("filters")?.dispatchEvent(new Event("change")), [range]);
  return html`<${Range} /><${Skeleton} />`;
}

/** @param {string} name */
const field = (name) => /** @type {HTMLInputElement} */ (document.getElementById(`filter-${name}`));

function restore() {
  for (const name of filters) if (parameter(name) !== "") field(name).value = parameter(name);
  document.getElementById("filters")?.dispatchEvent(new Event("change"));
}

function keep() {
  setQuery(Object.fromEntries(filters.map((name) => [name, field(name).value])), { replace: true });
}

const Skeleton = () => html`<section class="card" id="events" aria-labelledby="events-heading">
  <div class="heading-line">
    <h2 id="events-heading">Events</h2>
    <p id="events-count" class="muted number"></p>
    <button type="button" id="follow" aria-pressed="true">Follow</button>
  </div>
  <form id="filters" class="filters" aria-label="Which events are shown" onChange=${keep}>
    <div><label for="filter-level">Level</label>
      <select id="filter-level">
        <option value="0">Everything</option>
        <option value="2" selected>Info and above</option>
        <option value="3">Warnings and errors</option>
        <option value="4">Errors</option>
      </select>
    </div>
    <div><label for="filter-type">Type</label> <select id="filter-type"><option value="">All types</option></select></div>
    <div><label for="filter-agent">Agent</label> <select id="filter-agent"><option value="">All agents</option></select></div>
    <div><label for="filter-text">Contains</label> <input id="filter-text" type="search" autocomplete="off" spellcheck="false" /></div>
  </form>
  <p id="search" class="search" hidden><button type="button" id="search-older">Search all older events</button> <span id="search-text" class="muted number" role="status"></span></p>
  <p id="feed-help" class="visually-hidden">Arrow keys move through the events; Enter shows all of an event.</p>
  <div class="feed-frame">
    <button type="button" id="older" class="older" hidden>Show older events</button>
    <p id="feed-empty" class="muted">No event of this kind yet.</p>
    <ul id="feed" class="plain feed" aria-label="Events" aria-describedby="feed-help"></ul>
  </div>
</section>`;
