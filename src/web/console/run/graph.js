// @ts-check
// The agents of the run: as a graph to look at, and as a table with the same figures, which reads and reaches all of them.

import { count } from "../../dashboard/format.js";
import { stateNames } from "../../dashboard/model.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Choice, Chosen, Filters, Search } from "../parts/filters.js";
import { lazily } from "../parts/lazily.js";
import { go, parameter, setQuery, to } from "../router.js";
import { figures } from "./graph-figures.js";
import { GraphPicture } from "./graph-picture.js";

const Table = lazily(async () => (await import("./graph-table.js")).Table);

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
