// @ts-check
// The catalog of blueprints.

import { html } from "../html.js";
import { More, useList } from "../parts/list.js";
import { Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { to } from "../router.js";

/** The colour of each state of a blueprint. */
export const shades = new Map(
  Object.entries({
    available: "pending",
    adding: "running",
    removing: "running",
    added: "completed",
    failed: "failed",
    broken: "failed",
  }),
);

export function Page() {
  const list = useList("/blueprints", {}, ["operations"]);
  return html`<${Screen} title="Blueprints">
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>The catalog has no blueprint. SVC_BLUEPRINT_CATALOG names its folders.</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<div class="card rows"><table>
        <thead><tr><th scope="col">Blueprint</th><th scope="col">State</th><th scope="col">Description</th><th scope="col">Version</th></tr></thead>
        <tbody>${list.items.map(
          (one) => html`<tr key=${one.blueprint_id}>
            <th scope="row"><a data-row href=${to(["blueprints", one.blueprint_id])} dir="auto">${shown(one.name, 80) || one.blueprint_id}</a><code class="muted id">${one.blueprint_id}</code></th>
            <td data-name="State"><${Pill} state=${shades.get(one.state) ?? one.state} name=${one.state} /></td>
            <td dir="auto">${shown(one.description, 300)}</td>
            <td class="tight" data-name="Version">${shown(one.version ?? "", 40)}</td></tr>`,
        )}</tbody></table></div>`
    }
    <${More} list=${list} />
  </${Screen}>`;
}
