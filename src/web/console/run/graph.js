// @ts-check
// The graph of the run and the list of its agents: the dashboard's own view (../../dashboard/agents-view.js).

import { AgentsView } from "../../dashboard/agents-view.js";
import { html, useEffect, useRef } from "../html.js";
import { go, to } from "../router.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const view = useRef(/** @type {AgentsView | null} */ (null));
  const version = source.version;
  useEffect(() => {
    const page = { model: source.model };
    view.current = new AgentsView(page, (/** @type {string} */ agent) =>
      go(to(["runs", source.id, "events"], { agent })),
    );
  }, []);
  useEffect(() => view.current?.draw(), [version]);
  return html`<${Skeleton} />`;
}

/** What the view fills; it is the same each time, so that nothing of it is drawn anew. */
const Skeleton = () => html`<section class="card" aria-labelledby="agents-heading">
  <div class="heading-line">
    <h2 id="agents-heading">Agents</h2>
    <p id="agents-summary" class="muted"></p>
    <fieldset id="graph-tools" class="tools"><legend class="visually-hidden">The graph's size and place</legend>
      <button type="button" id="zoom-out" aria-label="Smaller">−</button>
      <button type="button" id="zoom-in" aria-label="Larger">+</button>
      <button type="button" id="zoom-fit">Fit</button>
      <button type="button" id="graph-follow" aria-pressed="true" title="Keep agents that work in sight">Follow active</button>
    </fieldset>
    <fieldset class="switch"><legend class="visually-hidden">How agents are shown</legend>
      <button type="button" id="show-graph" aria-pressed="true">Graph</button>
      <button type="button" id="show-list" aria-pressed="false">List</button>
    </fieldset>
  </div>
  <div id="graph" class="graph"></div>
  <div id="list" class="list"></div>
</section>`;
