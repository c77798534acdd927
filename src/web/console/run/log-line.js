// @ts-check
// One line of the log: its colours as text styles, what it says beside its message folded; and the lines around one.

import { timeOfDay } from "../../dashboard/format.js";
import { get } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Problem, shown } from "../parts/pieces.js";
import { setQuery } from "../router.js";
import { styledParts } from "./ansi.js";

const AROUND = 20;

/** @param {{ line: any, isMeant?: boolean }} properties isMeant: the others are shown because of it */
export function Line({ line, isMeant = false }) {
  const around = (/** @type {Event} */ event) => {
    event.preventDefault();
    setQuery({ around: line.ts });
  };
  const more = foldedOf(line);
  return html`<div class="log-line" data-level=${line.level} data-is-meant=${String(isMeant)}>
    <time class="muted" datetime=${line.ts} title=${`${line.ts}: show the lines around`}><a href=${`?around=${line.ts}`} onClick=${around}>${timeOfDay(line.ts)}</a></time>
    <span class="level">${line.level}</span>
    <span class="who" dir="auto" title=${line.stream}>${shown(line.agent_id ?? "run", 60)}</span>
    <span class="message" dir="auto">${styledParts(line.message).map(({ text, styles }) =>
      styles.length === 0
        ? shown(text)
        : html`<span class=${styles.map((style) => `ansi-${style}`).join(" ")}>${shown(text)}</span>`,
    )}</span>
    ${more !== null && html`<details><summary>As JSON</summary><pre dir="auto" tabindex="0">${shown(more)}</pre></details>`}
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

/** The lines before and after a moment, whatever the filters. @param {{ id: string, at: string }} properties at: an ISO time */
export function Around({ id, at }) {
  const [lines, setLines] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    const path = `/runs/${encodeURIComponent(id)}/logs`;
    Promise.all([
      get(path, { until: at, order: "desc", page_size: AROUND }),
      get(path, { since: at, order: "asc", page_size: AROUND + 1 }),
    ]).then(([before, after]) => setLines([...before.items.reverse(), ...after.items]), setError);
  }, []);
  if (error !== null) return html`<${Problem} error=${error} />`;
  if (lines === null) return null;
  return html`<section class="below" aria-label="Lines around a line">
    <div class="inline"><h3>Around ${timeOfDay(at)}</h3> <button type="button" onClick=${() => setQuery({ around: "" })}>Close</button></div>
    <div class="log" tabindex="0" role="group" aria-label=${`Lines around ${timeOfDay(at)}`}>${lines.map((line, index) => html`<${Line} key=${index} line=${line} isMeant=${line.ts === at} />`)}</div>
  </section>`;
}
