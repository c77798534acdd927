// @ts-check
// The agents of the run: as a graph to look at, and as a table with the same figures, which reads and reaches all of them.

import { nowText } from "../../dashboard/event-text.js";
import { count } from "../../dashboard/format.js";
import { shownState, stateNames } from "../../dashboard/model.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Choice, Chosen, Filters, Search } from "../parts/filters.js";
import { Empty, Pill, shown } from "../parts/pieces.js";
import { Room, useRows } from "../parts/virtual-rows.js";
import { go, parameter, setQuery, to } from "../router.js";
import { figures, nowOf, short } from "./graph-figures.js";
import { GraphPicture } from "./graph-picture.js";

const ROW_PX = 34;
/** On a narrow screen words are easier to read than a picture that has to be moved around. */
const NARROW = "(max-width: 640px)";
const overlays = [...figures].map(([value, { name }]) => /** @type {[string, string]} */ ([value, name]));

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const version = source.version;
  const picture = useRef(/** @type {GraphPicture | null} */ (null));
  const frame = useRef(/** @type {HTMLElement | null} */ (null));
  const map = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  // The table of a box needs to know which agents are in it.
  const [, setLaid] = useState(0);
  const [isNarrow] = useState(() => matchMedia(NARROW).matches);
  const [first, text, overlay] = [parameter("box"), parameter("q"), parameter("overlay")];
  const isDown = parameter("down") === "1";
  const isTable = first !== "" || (parameter("show") || (isNarrow ? "table" : "graph")) === "table";
  useEffect(() => {
    const open = (/** @type {string[]} */ [id = "", ...others]) => {
      if (others.length === 0) go(to(["runs", source.id, "events"], { agent: id }));
      else setQuery({ box: id });
    };
    const [element, canvas] = [frame.current, map.current];
    if (element === null || canvas === null) return;
    const made = new GraphPicture(source, element, canvas, {
      open,
      laid: () => setLaid((number) => number + 1),
    });
    picture.current = made;
    return () => made.end();
  }, []);
  useEffect(() => picture.current?.set({ isDown, overlay, text }), [isDown, overlay, text, isTable]);
  useEffect(() => picture.current?.draw(), [version]);
  const show = (/** @type {string} */ view) => () => setQuery({ show: view, box: "" });
  return html`<section class="card" aria-labelledby="agents-heading">
    <div class="heading-line">
      <h2 id="agents-heading">Agents</h2>
      <p class="muted">${[...stateNames]
        .map(([state, name]) => [source.model.tally.get(state) ?? 0, name.toLowerCase()])
        .filter(([number]) => Number(number) > 0)
        .map(([number, name]) => `${count(number)} ${name}`)
        .join(" · ")}</p>
      <fieldset class="tools" hidden=${isTable}><legend class="visually-hidden">The graph's size and place</legend>
        <button type="button" id="zoom-out" aria-label="Smaller">−</button>
        <button type="button" id="zoom-in" aria-label="Larger">+</button>
        <button type="button" id="zoom-fit">Fit</button>
        <button type="button" aria-pressed=${String(isDown)} onClick=${() => setQuery({ down: isDown ? "" : "1" })}>Top to bottom</button>
        <button type="button" id="graph-follow" aria-pressed="true" title="Keep agents that failed or work in sight">Follow active</button>
      </fieldset>
      <fieldset class="switch"><legend class="visually-hidden">How agents are shown</legend>
        <button type="button" aria-pressed=${String(!isTable)} onClick=${show("graph")}>Graph</button>
        <button type="button" aria-pressed=${String(isTable)} onClick=${show("table")}>Table</button>
      </fieldset>
    </div>
    <div onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === "Enter" && picture.current?.next()}>
      <${Filters} label="What of the agents is shown">
        <${Search} name="q" label="Name contains" />
        <${Choice} name="overlay" label="Boxes tell" any="State" values=${overlays} />
        <${Chosen} name="box" label="Only agents like" />
      </${Filters}>
    </div>
    <div class="graph-pane" hidden=${isTable}>
      <div class="graph" ref=${frame} tabindex="0" role="group" aria-label="The graph; arrow keys walk along its edges, the table has the same in words"></div>
      <canvas class="minimap" ref=${map} hidden aria-hidden="true"></canvas>
    </div>
    ${isTable && html`<${Table} source=${source} of=${first === "" ? null : (picture.current?.membersOf(first) ?? [])} text=${text.toLowerCase()} />`}
  </section>`;
}

/** @param {{ source: import("./run-source.js").RunSource, of: string[] | null, text: string }} properties of: these agents; null: all */
function Table({ source, of, text }) {
  void source.version;
  const { agents } = source.model;
  const ids = (of ?? [...agents.keys()]).filter((/** @type {string} */ id) =>
    id.toLowerCase().includes(text),
  );
  const rows = useRows(ids.length, ROW_PX);
  const nowMs = nowOf(source);
  if (ids.length === 0) return html`<${Empty}>No agent has this in its name.</${Empty}>`;
  return html`<div class="list virtual" tabindex="0" role="group" aria-label="The agents as a table" onScroll=${rows.onScroll}><table aria-rowcount=${ids.length + 1}>
    <thead><tr aria-rowindex="1"><th scope="col">Agent</th><th scope="col">State</th>${[...figures].map(([key, { name }]) => html`<th key=${key} scope="col">${name}</th>`)}<th scope="col">Now</th></tr></thead>
    <tbody>
      <${Room} px=${rows.beforePx} />
      ${ids.slice(rows.from, rows.to).map((/** @type {string} */ id, /** @type {number} */ place) => {
        const agent = agents.get(id);
        const state = shownState(agent);
        return html`<tr key=${id} aria-rowindex=${rows.from + place + 2}>
          <th scope="row"><a href=${to(["runs", source.id, "events"], { agent: id })} dir="auto">${shown(id, 80)}</a></th>
          <td><${Pill} state=${state} name=${stateNames.get(state)} /></td>
          ${[...figures].map(([key, { name, figure, unit }]) => html`<td key=${key} class="number" data-name=${name}>${short(figure(source, id, nowMs), unit)}</td>`)}
          <td class="now" dir="auto">${shown(nowText(agent), 120)}</td>
        </tr>`;
      })}
      <${Room} px=${rows.afterPx} />
    </tbody></table></div>`;
}
