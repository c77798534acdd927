// @ts-check
// The agents of the graph as a table, with all figures.

import { nowText } from "../../dashboard/event-text.js";
import { shownState, stateNames } from "../../dashboard/model.js";
import { html } from "../html.js";
import { Empty, Pill, shown } from "../parts/pieces.js";
import { Room, useRows } from "../parts/virtual-rows.js";
import { to } from "../router.js";
import { figures, nowOf, short } from "./graph-figures.js";

/** @param {{ source: import("./run-source.js").RunSource, of: string[] | null, text: string }} properties of: these agents; null: all */
export function Table({ source, of, text }) {
  void source.version;
  const { agents } = source.model;
  const ids = (of ?? [...agents.keys()]).filter((/** @type {string} */ id) =>
    id.toLowerCase().includes(text),
  );
  const rows = useRows(ids.length);
  const nowMs = nowOf(source);
  if (ids.length === 0) return html`<${Empty}>No agent has this in its name.</${Empty}>`;
  return html`<div class="virtual" tabindex="0" role="group" aria-label="The agents as a table" onScroll=${rows.onScroll}><table aria-rowcount=${ids.length + 1}>
    <thead><tr aria-rowindex="1"><th scope="col">Agent</th><th scope="col">State</th>${[...figures].map(([key, { name }]) => html`<th key=${key} scope="col">${name}</th>`)}<th scope="col">Now</th></tr></thead>
    <tbody>
      <${Room} px=${rows.beforePx} />
      ${ids.slice(rows.from, rows.to).map((/** @type {string} */ id, /** @type {number} */ place) => {
        const agent = agents.get(id);
        const state = shownState(agent);
        return html`<tr key=${id} aria-rowindex=${rows.from + place + 2}>
          <th scope="row"><a href=${to(["runs", source.id, "events"], { agent: id })} dir="auto">${shown(id, 80)}</a></th>
          <td><${Pill} state=${state} name=${stateNames.get(state)} /></td>
          ${[...figures].map(([key, { figure, unit }]) => html`<td key=${key} class="number">${short(figure(source, id, nowMs), unit)}</td>`)}
          <td class="now" dir="auto">${shown(nowText(agent), 120)}</td>
        </tr>`;
      })}
      <${Room} px=${rows.afterPx} />
    </tbody></table></div>`;
}
