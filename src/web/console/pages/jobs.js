// @ts-check
// The jobs.

import { html } from "../html.js";
import { More, useList } from "../parts/list.js";
import { Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time } from "../parts/time.js";
import { parameter, to } from "../router.js";

export function Page() {
  const list = useList("/jobs", { blueprint_id: parameter("blueprint") }, ["runs"]);
  return html`<${Screen} title="Jobs">
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>There is no job yet. Start a blueprint, or create one with <code>troupe jobs create</code>.</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<div class="card rows"><table>
        <thead><tr><th scope="col">Job</th><th scope="col">State</th><th scope="col">Last run</th><th scope="col">Created</th></tr></thead>
        <tbody>${list.items.map((job) => html`<${Row} key=${job.job_id} job=${job} />`)}</tbody></table></div>`
    }
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ job: any }} properties */
function Row({ job }) {
  const last = job.latest_run ?? null;
  return html`<tr>
    <th scope="row"><a data-row href=${to(["jobs", job.job_id])} dir="auto">${shown(job.name, 80) || "A job without a name"}</a><code class="muted id">${job.job_id}</code></th>
    <td data-name="State">${shown(job.status ?? "", 40)}</td>
    <td data-name="Last run">${last !== null && html`<a href=${to(["runs", last.run_id])}><${Pill} state=${last.status} /></a>`}</td>
    <td class="tight" data-name="Created"><${Time} at=${job.created_at} /></td></tr>`;
}
