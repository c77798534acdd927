// @ts-check
// Deployments: how many instances are healthy, which versions they have, and what a rollout waits for.

import { post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { Choice, Filters } from "../parts/filters.js";
import { More, useList, useResource } from "../parts/list.js";
import { Bar, Empty, Facts, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time } from "../parts/time.js";
import { parameter, to } from "../router.js";

const statuses = ["pending", "running", "paused", "awaiting_promotion", "succeeded", "failed", "rolled_back"];
/** @type {Readonly<Record<string, string>>} */
const pillOf = { awaiting_promotion: "waiting", succeeded: "completed", rolled_back: "failed" };
/** @type {Readonly<Record<string, string>>} */
const healthPill = { passing: "completed", critical: "failed", unknown: "pending" };

const wordsOf = (/** @type {string} */ status) => status.replaceAll("_", " ");

/** @param {{ id?: string }} properties */
export const Page = ({ id }) =>
  id === undefined ? html`<${List} />` : html`<${Detail} key=${id} id=${id} />`;

function List() {
  const status = parameter("status");
  const list = useList("/deployments", { status }, ["deployments"]);
  return html`<${Screen} title="Deployments">
    <${Filters} label="Which deployments are shown">
      <${Choice} name="status" label="Status" values=${statuses.map((one) => [one, wordsOf(one)])} />
    </${Filters}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>${status ? "No deployment has this status." : html`No deployment yet. Make one with <code>troupe deploy</code>.`}</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<div class="card rows"><table>
      <thead><tr><th scope="col">Deployment</th><th scope="col">Status</th><th scope="col">Healthy</th><th scope="col">Version</th>
        <th scope="col">Nodes</th><th scope="col">Changed</th></tr></thead>
      <tbody>${list.items.map((one) => html`<${Row} key=${one.deployment_id} deployment=${one} />`)}</tbody>
    </table></div>`
    }
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ deployment: any }} properties */
function Row({ deployment }) {
  const { deployment_id: id, name, healthy, desired, version, placement, updated_at: updated } = deployment;
  return html`<tr>
    <th scope="row"><a data-row href=${to(["deployments", id])} dir="auto">${shown(name, 80)}</a><code class="muted id">${id}</code></th>
    <td><${Status} deployment=${deployment} /></td>
    <td class="progress" data-name="Healthy"><${Bar} value=${healthy} total=${desired} label=${`Healthy instances of ${shown(name, 80)}`} state=${healthy < desired ? "running" : "completed"} />
      <span class="muted number">${healthy} of ${desired}</span></td>
    <td class="tight number" data-name="Version">${version}</td>
    <td data-name="Nodes" dir="auto">${placed(placement)}</td>
    <td class="tight" data-name="Changed"><${Time} at=${updated} /></td>
  </tr>`;
}

/** @param {{ deployment: any }} properties */
const Status = ({ deployment: { status, is_rolling_back: isRollingBack } }) =>
  html`<${Pill} state=${pillOf[status] ?? status} name=${isRollingBack ? "going back" : wordsOf(status)} />`;

/** @param {Record<string, number>} placement */
const placed = (placement) =>
  Object.entries(placement)
    .map(([node, count]) => `${shown(node, 40)}: ${count}`)
    .join(", ") || "–";

/** @param {{ id: string }} properties */
function Detail({ id }) {
  const path = `/deployments/${encodeURIComponent(id)}`;
  const { value: deployment, error, again } = useResource(path, ["deployments"]);
  if (deployment === null) {
    return html`<${Screen} title="Deployment">${error === null ? null : html`<${Problem} error=${error} retry=${again} />`}</${Screen}>`;
  }
  const { name, status, healthy, desired, last_failure: failure, strategy } = deployment;
  const act = (/** @type {string} */ action) => async () => {
    await post(`${path}/${action}`);
    again();
  };
  const isMoving = status === "running" || status === "awaiting_promotion" || status === "paused";
  const actions = html`
    ${status === "awaiting_promotion" && html`<${Action} label="Promote" act=${act("promote")} />`}
    ${(status === "running" || status === "awaiting_promotion") && html`<${Action} label="Pause" act=${act("pause")} />`}
    ${status === "paused" && html`<${Action} label="Resume" act=${act("resume")} />`}
    ${isMoving && deployment.stable_version !== null && html`<${Action} label="Go back" danger act=${act("fail")} question=${`The rollout is given up: all instances go back to version ${deployment.stable_version}.`} />`}`;
  return html`<${Screen} title=${shown(name, 200)} heading=${html`<p class="muted"><code>${id}</code></p>`} actions=${actions}>
    <section class="card summary" aria-label="State of the deployment">
      <${Facts} items=${[
        ["Status", html`<${Status} deployment=${deployment} />`],
        ["Version", String(deployment.version)],
        [
          "Last good version",
          deployment.stable_version === null ? "none" : String(deployment.stable_version),
        ],
        ["Strategy", `${wordsOf(strategy.kind)}, ${strategy.max_parallel} at a time`],
        ["Nodes", placed(deployment.placement)],
        ["Changed", html`<${Time} at=${deployment.updated_at} />`],
      ]} />
      <div class="meter"><${Bar} value=${healthy} total=${desired} label="Healthy instances" state=${healthy < desired ? "running" : "completed"} /><p class="muted number">${healthy} of ${desired} instances healthy</p></div>
      ${failure && html`<p class="wrong wrapped" dir="auto">Version ${failure.version} failed: ${shown(failure.reason, 600)} <span class="muted">(<${Time} at=${failure.at} />)</span></p>`}
    </section>
    <${Instances} instances=${deployment.instances ?? []} />
    <${Versions} versions=${deployment.versions ?? []} />
  </${Screen}>`;
}

/** @param {{ instances: any[] }} properties */
const Instances = ({
  instances,
}) => html`<section class="card" aria-labelledby="instances"><h2 id="instances">Instances</h2>
  ${
    instances.length === 0
      ? html`<p class="muted">None.</p>`
      : html`<div class="rows"><table>
    <thead><tr><th scope="col">Instance</th><th scope="col">Version</th><th scope="col">Phase</th><th scope="col">Health</th><th scope="col">Node</th><th scope="col">Started</th></tr></thead>
    <tbody>${instances.map(
      (one) => html`<tr key=${one.run_id}>
      <th scope="row"><a data-row href=${to(["runs", one.run_id])}>Instance ${one.instance}</a></th>
      <td class="tight number" data-name="Version">${one.version}</td><td class="tight" data-name="Phase">${one.phase}</td>
      <td data-name="Health"><${Pill} state=${healthPill[one.health] ?? one.health} name=${one.health} /></td>
      <td class="tight" data-name="Node" dir="auto">${shown(one.node, 40) || "–"}</td>
      <td class="tight" data-name="Started"><${Time} at=${one.started_at} /></td></tr>`,
    )}</tbody>
  </table></div>`
  }
</section>`;

/** @param {{ versions: any[] }} properties newest last */
const Versions = ({
  versions,
}) => html`<section class="card" aria-labelledby="versions"><h2 id="versions">Versions</h2>
  <div class="rows"><table>
    <thead><tr><th scope="col">Version</th><th scope="col">Made from</th><th scope="col">Served</th><th scope="col">Since</th></tr></thead>
    <tbody>${versions.toReversed().map(
      (one) => html`<tr key=${one.version}>
      <th scope="row" class="number">${one.version}</th>
      <td data-name="Made from" dir="auto"><code>${shown(one.source.bundle_id ?? one.source.blueprint_id, 80)}</code></td>
      <td class="tight" data-name="Served">${one.has_succeeded ? "well" : "not yet"}</td>
      <td class="tight" data-name="Since"><${Time} at=${one.created_at} /></td></tr>`,
    )}</tbody>
  </table></div>
</section>`;
