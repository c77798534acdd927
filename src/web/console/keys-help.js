// @ts-check
// All keys of the console, as people press them (keys.js).

import { html } from "./html.js";
import { pages } from "./page-list.js";
import { Dialog } from "./parts/dialog.js";

const others = [
  ["Ctrl or ⌘ and K", "Go to a page, a run, a job, a blueprint or an agent; do what this page offers"],
  ["/", "Search in this list"],
  ["j, k", "Next and previous row"],
  ["[, ]", "Previous and next failure: rows of a list, agents of a run"],
  ["Enter", "Open the row"],
  ["x", "Tick the row, or not"],
  ["?", "These keys"],
];

/** @param {{ close: () => void }} properties */
export function Help({ close }) {
  const goes = pages
    .filter(({ key }) => key !== undefined)
    .map(({ key, name }) => [`g ${key}`, `Go to ${name}`]);
  return html`<${Dialog} title="Keys" close=${close}>
    <dl class="keys">${[...others, ...goes].map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <div class="actions end"><button type="button" onClick=${close}>Close</button></div>
  </${Dialog}>`;
}
