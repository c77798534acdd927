// @ts-check
// What differs between two JSON values.

import { html } from "../html.js";
import { Empty, shown } from "./pieces.js";

const CHANGES_MAX = 500;

/** @typedef {{ path: string, before: unknown, after: unknown }} Change */

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isNested = (value) => typeof value === "object" && value !== null;

/**
 * @param {unknown} before @param {unknown} after @param {string} [path] a JSON Pointer
 * @returns {Change[]} the smallest parts that differ, in the order of the first value
 */
export function changesOf(before, after, path = "") {
  if (!isNested(before) || !isNested(after) || Array.isArray(before) !== Array.isArray(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) =>
    changesOf(before[name], after[name], `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`),
  );
}

/** @param {{ before: unknown, after: unknown, names: [string, string], same: string }} properties */
export function Diff({ before, after, names, same }) {
  const changes = changesOf(before, after);
  if (changes.length === 0) return html`<${Empty}>${same}</${Empty}>`;
  return html`<table class="diff"><thead><tr><th scope="col">Where</th><th scope="col">${names[0]}</th><th scope="col">${names[1]}</th></tr></thead>
    <tbody>${changes.slice(0, CHANGES_MAX).map(
      (
        one,
      ) => html`<tr key=${one.path}><th scope="row"><code dir="auto">${shown(one.path, 300) || "the whole"}</code></th>
        <td><${Side} value=${one.before} /></td><td><${Side} value=${one.after} /></td></tr>`,
    )}</tbody></table>`;
}

/** @param {{ value: unknown }} properties */
const Side = ({ value }) =>
  value === undefined
    ? html`<span class="muted">nothing</span>`
    : html`<code dir="auto">${shown(JSON.stringify(value), 2_000)}</code>`;
