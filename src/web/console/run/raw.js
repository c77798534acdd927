// @ts-check
// The run as the API answers it, and where to read more with other programs.

import { html } from "../html.js";
import { Copy, Json } from "../parts/pieces.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const { run } = source;
  return html`<section class="card" aria-labelledby="raw-heading">
    <div class="heading-line"><h2 id="raw-heading">GET /api/v1/runs/${source.id}</h2><${Copy} text=${() => JSON.stringify(run, null, 2)}>Copy</${Copy}></div>
    <${Json} value=${run} label="The run as JSON" />
  </section>`;
}
