// @ts-check
// One line of the log: its colours as text styles, and what it says beside its message folded.

import { timeOfDay } from "../../dashboard/format.js";
import { html } from "../html.js";
import { Copy, shown } from "../parts/pieces.js";
import { styledParts } from "./ansi.js";

/**
 * @param {{
 *   line: import("./log-window.js").LogLine, href: string, isMarked: boolean, isUnfolded: boolean,
 *   onOpen: (id: number) => void, onFold: (id: number, isOpen: boolean) => void,
 * }} properties isMarked: it is the one that the address links to; href: a link to it
 */
export function Line({ line, href, isMarked, isUnfolded, onOpen, onFold }) {
  const open = (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    onOpen(line.id);
  };
  const more = foldedOf(line);
  return html`<div class="log-line" role="article" tabindex="-1" aria-setsize="-1" aria-posinset=${line.id} aria-current=${isMarked ? "true" : undefined} data-id=${line.id} data-level=${line.level}>
    <time class="muted" datetime=${line.ts} title=${`${line.ts}: show what was logged around it`}><a href=${href} tabindex="-1" onClick=${open}>${timeOfDay(line.ts)}</a></time>
    <span class="level">${line.level}</span>
    <span class="who" dir="auto" title=${line.stream}>${shown(line.agent_id ?? "run", 60)}</span>
    <span class="message" dir="auto">${styledParts(line.message).map(({ text, styles }) =>
      styles.length === 0
        ? shown(text)
        : html`<span class=${styles.map((style) => `ansi-${style}`).join(" ")}>${shown(text)}</span>`,
    )}</span>
    ${more !== null && html`<details open=${isUnfolded} onToggle=${(/** @type {any} */ event) => onFold(line.id, event.currentTarget.open)}><summary>As JSON</summary>${isUnfolded && html`<pre dir="auto" tabindex="0">${shown(more)}</pre>`}</details>`}
    ${isMarked && html`<p class="marked"><${Copy} text=${() => location.href}>Copy link</${Copy}></p>`}
  </div>`;
}

/** @param {any} line @returns {string | null} a message that is JSON, and what was logged beside it; null for nothing */
function foldedOf({ message, fields, stream }) {
  const parsed = /^\s*[{[]/.test(message) ? jsonOf(message) : undefined;
  // What the runtime says of itself is in words already.
  const beside = stream !== "runtime" && Object.keys(fields ?? {}).length > 0 ? fields : undefined;
  if (parsed === undefined && beside === undefined) return null;
  return [parsed, beside]
    .filter((one) => one !== undefined)
    .map((one) => JSON.stringify(one, null, 2))
    .join("\n");
}

/** @param {string} json @returns {unknown} undefined for what is none */
function jsonOf(json) {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
