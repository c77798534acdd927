// @ts-check
// Long work that goes on behind the request that started it: of blueprints, of models and of nodes.

import { html } from "../html.js";
import { Choice, Chosen, Filters } from "../parts/filters.js";
import { More, useList } from "../parts/list.js";
import { Bar, Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Elapsed, Time } from "../parts/time.js";
import { parameter, to } from "../router.js";

/** @type {Readonly<Record<string, string>>} */
const kinds = {
  blueprint_addition: "Add blueprint",
  blueprint_removal: "Remove blueprint",
  model_installation: "Install model",
  model_update: "Update model",
  model_removal: "Remove model",
  model_serving: "Serve model",
  node_removal: "Remove node",
  node_leave: "Leave the cluster:",
  node_join: "Join a cluster:",
};
const statuses = ["pending", "running", "completed", "failed"];

export function Page() {
  const query = { status: parameter("status"), target: parameter("target") };
  const list = useList("/operations", query, ["operations"]);
  const isFiltered = Object.values(query).some(Boolean);
  return html`<${Screen} title="Operations">
    <${Filters} label="Which operations are shown"><${Choice} name="status" label="Status" values=${statuses} /><${Chosen} name="target" label="Of" /></${Filters}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>${isFiltered ? "No operation passes these filters." : "No blueprint was added or removed, no model was installed, and no node was changed."}</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<div class="card rows"><table>
      <thead><tr><th scope="col">What</th><th scope="col">Status</th><th scope="col">Progress</th><th scope="col">Created</th><th scope="col">Duration</th></tr></thead>
      <tbody>${list.items.map((one) => html`<${Row} key=${one.operation_id} operation=${one} />`)}</tbody></table></div>`
    }
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ operation: any }} properties */
function Row({ operation }) {
  const {
    operation_id: id,
    kind,
    target,
    status,
    progress,
    error,
    created_at: at,
    finished_at: end,
  } = operation;
  const name = target.replace(/^model:/, "");
  const href = kind.startsWith("node")
    ? to(["nodes"])
    : to([kind.startsWith("model") ? "models" : "blueprints", name]);
  return html`<tr>
    <th scope="row">${kinds[kind] ?? kind}${operation.dry_run ? ", dry run:" : ""} <a data-row href=${href} dir="auto">${shown(name, 120)}</a> <code class="muted id">${id}</code></th>
    <td><${Pill} state=${status} /></td>
    <td class="progress" data-name="Progress">${error === null ? html`<${Bar} value=${progress.percent} total=${100} label=${`Progress of ${id}`} state=${status} />` : null}
      <span class=${error === null ? "muted" : "wrong wrapped"} dir="auto">${shown(error?.detail ?? progress.label, 400)}</span></td>
    <td class="tight" data-name="Created"><${Time} at=${at} /></td>
    <td class="tight" data-name="Duration"><${Elapsed} from=${at} to=${end} /></td>
  </tr>`;
}
