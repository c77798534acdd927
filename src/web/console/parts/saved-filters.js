// @ts-check
// Filters of the list of runs under names, kept in this browser. Each is a link: what it shows is all in its address.

import { html, signal, useState } from "../html.js";
import { place, to } from "../router.js";
import { Dialog } from "./dialog.js";
import { shown } from "./pieces.js";

const KEY = "troupe-console-run-filters";
const SAVED_MAX = 50;
const NAME_CHARS_MAX = 60;

/** @typedef {{ name: string, query: string }} Saved query: in the order of its names */

const saved = signal(read());
addEventListener("storage", ({ key }) => {
  if (key === KEY) saved.value = read();
});

/** @returns {readonly Saved[]} nothing of what is none */
function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return kept
      .filter((/** @type {any} */ one) => typeof one?.name === "string" && typeof one.query === "string")
      .slice(0, SAVED_MAX);
  } catch {
    return [];
  }
}

/** @param {readonly Saved[]} next */
function keep(next) {
  saved.value = next;
  localStorage.setItem(KEY, JSON.stringify(next));
}

function currentQuery() {
  const query = new URLSearchParams(place.value.query);
  query.sort();
  return query.toString();
}

export function SavedFilters() {
  const [isNaming, setNaming] = useState(false);
  const current = currentQuery();
  const isNew = current !== "" && !saved.value.some(({ query }) => query === current);
  if (saved.value.length === 0 && !isNew) return null;
  return html`<nav class="saved" aria-label="Saved filters">
    ${
      saved.value.length > 0 &&
      html`<ul class="plain">${saved.value.map(
        ({ name, query }) => html`<li key=${name} class="chip">
        <a href=${`${to(["runs"])}?${query}`} dir="auto" aria-current=${query === current ? "page" : undefined}>${shown(name, NAME_CHARS_MAX)}</a>
        <button type="button" class="flat" aria-label=${`Forget ${shown(name, NAME_CHARS_MAX)}`} onClick=${() => keep(saved.value.filter((one) => one.name !== name))}>×</button></li>`,
      )}</ul>`
    }
    ${isNew && html`<button type="button" disabled=${saved.value.length >= SAVED_MAX} onClick=${() => setNaming(true)}>Save these filters …</button>`}
    ${isNaming && html`<${Naming} query=${current} close=${() => setNaming(false)} />`}
  </nav>`;
}

/** @param {{ query: string, close: () => void }} properties */
function Naming({ query, close }) {
  const [name, setName] = useState("");
  const isTaken = saved.value.some((one) => one.name === name.trim());
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const others = saved.value.filter((one) => one.name !== name.trim());
    keep([...others, { name: name.trim(), query }]);
    close();
  };
  return html`<${Dialog} title="Save these filters" close=${close}>
    <form onSubmit=${submit}>
      <p class="muted">They are kept in this browser. Others see the same with the link.</p>
      <label class="field below">Name <input type="text" required maxlength=${NAME_CHARS_MAX} autocomplete="off" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
      <p class="muted" role="status">${isTaken ? "The filters that have this name are replaced." : ""}</p>
      <div class="actions end"><button type="button" onClick=${close}>Close</button>
        <button type="submit" disabled=${name.trim() === ""}>Save</button></div>
    </form>
  </${Dialog}>`;
}
