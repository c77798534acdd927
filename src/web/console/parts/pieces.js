// @ts-check
// Small pieces that all views are made of.

import { clean, start } from "../../dashboard/format.js";
import { html, useEffect, useRef } from "../html.js";

const TEXT_CHARS_MAX = 8_000;

const names = new Map(
  Object.entries({
    pending: "Pending",
    queued: "Queued",
    running: "Running",
    paused: "Paused",
    completed: "Completed",
    failed: "Failed",
    cancelled: "Cancelled",
  }),
);

/** Text of others, as it may be shown. @param {unknown} text @param {number} [charsMax] */
export const shown = (text, charsMax = TEXT_CHARS_MAX) =>
  typeof text === "string" ? clean(start(text, charsMax)) : "";

/** A state by sign, word and colour. @param {{ state: string, name?: string }} properties */
export const Pill = ({ state, name }) =>
  html`<span class="pill" data-state=${state}>${name ?? names.get(state) ?? shown(state, 40)}</span>`;

/**
 * What a run is shown as: an open question comes first, since only a person can end it.
 *
 * @param {any} run @returns {{ state: string, name?: string }}
 */
export const stateOf = ({ status, progress }) =>
  status === "running" && progress.human_pending > 0
    ? { state: "waiting", name: "Waiting for a person" }
    : { state: status };

/** @param {{ value: number, total: number, label: string, state?: string }} properties */
export function Bar({ value, total, label, state }) {
  const percent = total === 0 ? 0 : Math.round((100 * Math.min(value, total)) / total);
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  // Styles of elements can only be set by script here: the policy allows none in markup.
  useEffect(() => ref.current?.style.setProperty("inline-size", `${percent}%`), [percent]);
  return html`<div class="bar" data-state=${state} role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${percent}><span ref=${ref}></span></div>`;
}

/** What went wrong with a request, and a way to try again. @param {{ error: unknown, retry?: () => void }} properties */
export function Problem({ error, retry }) {
  const text = error instanceof Error ? error.message : String(error);
  return html`<div class="card notice" role="alert">
    <p class="wrapped" dir="auto">${shown(text)}</p>
    ${retry === undefined ? null : html`<p class="below"><button type="button" onClick=${retry}>Try again</button></p>`}
  </div>`;
}

/** @param {{ children?: unknown }} properties */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** Names and values. @param {{ items: [string, unknown][] }} properties what is null, undefined, false or "" is left out */
export const Facts = ({ items }) =>
  html`<dl class="facts">${items
    .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "")
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl>`;

/** JSON to read. @param {{ value: unknown, label: string }} properties */
export const Json = ({ value, label }) =>
  html`<pre tabindex="0" role="group" aria-label=${label}>${shown(JSON.stringify(value, null, 2), 200_000)}</pre>`;

/** Says something to who cannot see it. @param {string} text */
export function announce(text) {
  const announcer = document.getElementById("announcer");
  if (announcer !== null) announcer.textContent = text;
}

/** Copies a text. @param {{ text: () => string | Promise<string>, children?: unknown }} properties */
export function Copy({ text, children }) {
  const ref = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const copy = async () => {
    const button = /** @type {HTMLButtonElement} */ (ref.current);
    const before = button.textContent;
    // Browsers let pages of plain http on other names copy nothing.
    const isCopied = await navigator.clipboard?.writeText(await text()).then(
      () => true,
      () => false,
    );
    button.textContent = isCopied === true ? "Copied" : "The browser does not allow it";
    setTimeout(() => (button.textContent = before), 2_000);
  };
  return html`<button type="button" ref=${ref} onClick=${copy}>${children}</button>`;
}
