// @ts-check
// The services of open runs: where they are, and whether their checks pass.

import { post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { Choice, Chosen, Filters } from "../parts/filters.js";
import { More, useList } from "../parts/list.js";
import { Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time } from "../parts/time.js";
import { parameter, setQuery, to } from "../router.js";

const statuses = ["passing", "critical"];

export function Page() {
  const query = { status: parameter("status"), tag: parameter("tag"), run_id: parameter("run") };
  const list = useList("/services", query, ["services"]);
  const check = async () => {
    await post("/services:check");
    list.again();
  };
  const isFiltered = Object.values(query).some(Boolean);
  return html`<${Screen} title="Services" actions=${html`<${Action} label="Check all now" act=${check} />`}>
    <${Filters} label="Which services are shown">
      <${Choice} name="status" label="Status" values=${statuses} />
      <${Chosen} name="tag" label="Tag" />
      <${Chosen} name="run" label="Run" />
    </${Filters}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>${isFiltered ? "No service passes these filters." : "No open run offers a service."}</${Empty}>`}
    ${list.items !== null && list.items.length > 0 && html`<${Table} services=${list.items} />`}
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ services: any[] }} properties */
const Table = ({ services }) => html`<div class="card rows"><table>
  <thead><tr><th scope="col">Service</th><th scope="col">Status</th><th scope="col">Checks</th><th scope="col">Address</th>
    <th scope="col">Run</th><th scope="col">Node</th><th scope="col">Since</th></tr></thead>
  <tbody>${services.map((one) => html`<${Row} key=${one.service_id} service=${one} />`)}</tbody>
</table></div>`;

/** @param {{ service: any }} properties */
function Row({ service }) {
  const { name, status, tags, checks, public_url: url, run_id: runId, node, registered_at: since } = service;
  return html`<tr>
    <th scope="row" dir="auto">${shown(name, 80)}
      <span class="line">${tags.map((/** @type {string} */ tag) => html`<button key=${tag} type="button" class="flat" dir="auto" onClick=${() => setQuery({ tag })}>${shown(tag, 40)}</button>`)}</span></th>
    <td><${Pill} state=${status === "passing" ? "completed" : "failed"} name=${status} /></td>
    <td data-name="Checks"><ul class="plain">${checks.map((/** @type {any} */ one) => html`<${Check} key=${one.name} check=${one} />`)}</ul></td>
    <td data-name="Address">${/^https?:\/\//.test(url) ? html`<a href=${url} rel="noreferrer" target="_blank" dir="auto">${shown(url, 80)}</a>` : html`<code>${shown(url, 80)}</code>`}</td>
    <td data-name="Run">${runId === null ? "–" : html`<a data-row href=${to(["runs", runId])}><code>${runId}</code></a>`}</td>
    <td class="tight" data-name="Node" dir="auto">${shown(node, 40)}</td>
    <td class="tight" data-name="Since"><${Time} at=${since} /></td>
  </tr>`;
}

/** @param {{ check: any }} properties */
const Check = ({
  check,
}) => html`<li><span dir="auto">${shown(check.name, 60)}</span> <span class="muted">${check.type}, ${check.status}${check.failures > 0 ? `, failed ${check.failures} times in a row` : ""}</span>
  ${check.status === "critical" && check.output !== "" && html`<span class="why wrapped muted" dir="auto">${shown(check.output, 300)}</span>`}</li>`;
