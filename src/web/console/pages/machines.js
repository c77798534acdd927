// @ts-check
// Nodes and what their machines have: slots in use, cores, memory, disk; drains and maintenance.

import { size } from "../../dashboard/format.js";
import { post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { More, useAgainEvery, useList, useResource } from "../parts/list.js";
import { Bar, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time } from "../parts/time.js";

/** What machines use changes all the time, and is no event. */
const AGAIN_MS = 5_000;

/** @type {Readonly<Record<string, string>>} */
const pillOf = {
  ready: "completed",
  draining: "running",
  maintenance: "paused",
  lost: "failed",
  left: "cancelled",
};

export function Page() {
  const list = useList("/nodes", {}, []);
  const resource = useResource("/resource");
  const again = () => {
    list.again();
    resource.again();
  };
  useAgainEvery(again, AGAIN_MS);
  const machines = new Map((resource.value?.nodes ?? []).map((/** @type {any} */ one) => [one.node_id, one]));
  return html`<${Screen} title="Nodes">
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${again} />`}
    ${(list.items ?? []).map((node) => html`<${Node} key=${node.node_id} node=${node} machine=${machines.get(node.node_id)} again=${again} />`)}
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ node: any, machine: any, again: () => void }} properties */
function Node({ node, machine, again }) {
  const { node_id: id, name, status, address } = node;
  const path = `/nodes/${encodeURIComponent(id)}`;
  const act =
    (/** @type {string} */ action, /** @type {unknown} */ body = {}) =>
    async () => {
      await post(`${path}/${action}`, body);
      again();
    };
  // A program that is the only node cannot be taken out of work.
  const isOne = address === null;
  return html`<section class="card" aria-labelledby=${`node-${id}`}>
    <div class="heading-line">
      <h2 id=${`node-${id}`} dir="auto">${shown(name, 80)}</h2>
      <${Pill} state=${pillOf[status] ?? status} name=${status} />
      ${node.self && html`<span class="muted">answers here</span>`}
      ${
        !isOne &&
        html`<div class="actions">
        ${status === "ready" && html`<${Action} label="Drain" act=${act("drain")} question=${`Jobs and commands of ${shown(name, 80)} go to other nodes. It takes no new ones until it is undrained.`} />`}
        ${status === "ready" && html`<${Action} label="Maintenance" act=${act("maintenance", { enabled: true })} question="It is drained, and stays out of work also when its program starts again." />`}
        ${status === "draining" && html`<${Action} label="Undrain" act=${act("undrain")} />`}
        ${status === "maintenance" && html`<${Action} label="End maintenance" act=${act("maintenance", { enabled: false })} />`}
      </div>`
      }
    </div>
    <p class="muted line"><code>${id}</code> <span>version ${shown(node.version, 40)}</span> <span>last seen <${Time} at=${node.heartbeat_at} /></span>
      <span class="number">${node.jobs_owned} jobs, ${node.tasks_running} commands</span> ${labelsOf(node.labels)}</p>
    <div class="meters">
      ${Object.entries(node.pools).map(([pool, { in_use: used, capacity, queued }]) => html`<${Meter} key=${pool} name=${`Slots: ${pool}`} node=${name} value=${used} total=${capacity} text=${`${used} of ${capacity}${queued > 0 ? `, ${queued} wait` : ""}`} />`)}
      ${machine !== undefined && html`<${Machine} machine=${machine} node=${name} />`}
    </div>
  </section>`;
}

/** @param {Record<string, string>} labels */
const labelsOf = (labels) =>
  Object.entries(labels).map(
    ([name, value]) =>
      html`<code key=${name} dir="auto">${shown(value === "" ? name : `${name}=${value}`, 80)}</code>`,
  );

/** @param {{ machine: any, node: string }} properties */
function Machine({ machine: { totals, reserved, used }, node }) {
  if (totals === null || used === null) return null;
  const cores = (/** @type {number} */ count) => Math.round(count * 10) / 10;
  return html`
    <${Meter} name="Cores" node=${node} value=${used.cpu_cores} total=${totals.cpu_cores} text=${`${cores(used.cpu_cores)} used, ${cores(reserved.cpu_cores)} reserved, of ${cores(totals.cpu_cores)}`} />
    <${Meter} name="Memory" node=${node} value=${used.memory_bytes} total=${totals.memory_bytes} text=${`${size(used.memory_bytes)} used, ${size(reserved.memory_bytes)} reserved, of ${size(totals.memory_bytes)}`} />
    <${Meter} name="Disk" node=${node} value=${used.disk_bytes} total=${totals.disk_bytes} text=${`${size(used.disk_bytes)} used of ${size(totals.disk_bytes)}`} />`;
}

/** @param {{ name: string, node: string, value: number, total: number, text: string }} properties */
const Meter = ({ name, node, value, total, text }) => html`<div class="meter">
  <p dir="auto">${shown(name, 60)} <span class="muted number">${text}</span></p>
  <${Bar} value=${value} total=${total} label=${`${shown(name, 60)} of ${shown(node, 60)}`} state=${total > 0 && value / total > 0.9 ? "waiting" : "running"} />
</div>`;
