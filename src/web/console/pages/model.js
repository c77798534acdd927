// @ts-check
// One model: what it is, where it is installed, and what can be done with it.

import { count, size } from "../../dashboard/format.js";
import { post, request } from "../api.js";
import { html, useState } from "../html.js";
import { Action } from "../parts/dialog.js";
import { useResource } from "../parts/list.js";
import { LatestOperation, Remove, useLatestOperation } from "../parts/operation.js";
import { Facts, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time } from "../parts/time.js";
import { go, to } from "../router.js";
import { State, sourceText } from "./models.js";

const forced = [["force", "Also when something needs it"]];

/** @param {{ id: string }} properties */
export function Page({ id }) {
  const path = `/models/${encodeURIComponent(id)}`;
  const { value: model, error, again } = useResource(path, ["operations"]);
  const operation = useLatestOperation(`model:${id}`, "model");
  const { value: serving, again: servingAgain } = useResource(`${path}/serving`, ["operations"]);
  const [found, setFound] = useState(/** @type {any} */ (null));
  if (model === null)
    return html`<${Screen} title="Model">${error !== null && html`<${Problem} error=${error} retry=${again} />`}</${Screen}>`;
  const isBusy = operation !== null && operation.finished_at === null;
  const act = (/** @type {string} */ action) => async () => {
    await post(`${path}/${action}`);
    again();
  };
  const look = async () => setFound(await post(`${path}/validate`));
  const forget = async () => {
    await request("DELETE", path, { headers: { "if-match": "*" } });
    go(to(["models"]));
  };
  const isEndpoint = model.source.openai !== undefined;
  const isHere = model.installations.length > 0;
  const isServed = serving?.served === true;
  const stop = async () => {
    await post(`${path}/stop`);
    servingAgain();
  };
  const actions = html`
    ${!isEndpoint && html`<${Action} label=${isHere ? "Update" : "Install"} disabled=${isBusy} act=${act(isHere ? "update" : "install")} />`}
    ${(isEndpoint || model.state === "installed") && !isServed && html`<${Action} label="Serve" disabled=${isBusy} act=${act("serve")} />`}
    ${isServed && html`<${Action} label="Stop serving" danger act=${stop} question="Requests for it are refused from now on, also those of runs." />`}
    <${Action} label="Look at it" act=${look} />
    ${isHere && html`<${Remove} title="Remove the model" path=${`${path}/remove`} disabled=${isBusy} began=${again} choices=${forced} text="Its content goes from this node. Its registration stays, so it can be installed again." />`}
    ${!isHere && model.used_by.length === 0 && html`<${Action} label="Delete" danger disabled=${isBusy} act=${forget} question="Its registration goes. It is installed nowhere." />`}`;
  return html`<${Screen} title=${shown(model.name, 200)} heading=${html`<p class="muted"><code dir="auto">${shown(id, 200)}</code></p>`} actions=${actions}>
    <section class="card" aria-label="The model">
      <${Facts} items=${[
        ["State", html`<${State} state=${model.state} />`],
        ["From", shown(sourceText(model.source), 400)],
        ["Format", shown(model.format, 40)],
        ["Architecture", shown(model.details?.architecture, 100)],
        ["Family", shown(model.family, 200)],
        ["Parameters", model.parameters !== null && count(model.parameters)],
        ["Quantisation", shown(model.quantisation, 100)],
        ["Context", model.context !== null && `${count(model.context)} tokens`],
        ["Size", model.size !== null && size(model.size)],
        ["License", shown(model.license, 200)],
        ["SHA-256", model.sha256 !== null && html`<code class="wrapped">${model.sha256}</code>`],
        ["Used by", model.used_by.length > 0 && model.used_by.map(usedBy)],
        ["Served at", isServed && html`<code class="wrapped">${shown(serving.base_url, 400)}</code>`],
        ["Its process", isServed && serving.state],
        ["Requests", isServed && `${serving.running} under way, ${serving.waiting} waiting`],
        ["Registered", html`<${Time} at=${model.created_at} />`],
      ]} />
      ${found !== null && html`<p class=${`below wrapped ${found.valid ? "" : "wrong"}`} role="status" dir="auto">${shown(found.verdict, 2_000)}</p>`}
    </section>
    ${operation !== null && html`<${LatestOperation} operation=${operation} />`}
    ${isHere && html`<${Installations} model=${model} path=${path} again=${again} />`}
  </${Screen}>`;
}

/** @param {string} user such as blueprint:digest */
function usedBy(user) {
  const [kind, ...rest] = user.split(":");
  const id = rest.join(":");
  return kind === "blueprint"
    ? html`<a key=${user} href=${to(["blueprints", id])}>${shown(id, 80)}</a> `
    : html`<span key=${user}>${shown(user, 120)} </span>`;
}

/** @param {{ model: any, path: string, again: () => void }} properties */
function Installations({ model, path, again }) {
  const pin = (/** @type {any} */ one) => async () => {
    const body = { pinned: !one.pinned };
    await request("PATCH", `${path}/installations/${one.installation_id}`, {
      body,
      headers: { "if-match": "*" },
    });
    again();
  };
  return html`<section class="card" aria-labelledby="installations"><h2 id="installations">Installations</h2>
    <div class="rows"><table><thead><tr><th scope="col">Node</th><th scope="col">State</th><th scope="col">Size</th><th scope="col">Changed</th><th scope="col">Kept as it is</th></tr></thead>
    <tbody>${model.installations.map(
      (/** @type {any} */ one) => html`<tr key=${one.installation_id}>
      <th scope="row"><code class="id" dir="auto">${shown(one.node_id, 80)}</code></th>
      <td><${State} state=${one.state} />${one.error && html`<span class="why wrong wrapped" dir="auto">${shown(one.error.detail, 600)}</span>`}</td>
      <td class="tight number" data-name="Size">${size(one.bytes)}</td>
      <td class="tight" data-name="Changed"><${Time} at=${one.updated_at} /></td>
      <td class="tight" data-name="Kept as it is"><${Action} label=${one.pinned ? "Unpin" : "Pin"} act=${pin(one)} /></td>
    </tr>`,
    )}</tbody></table></div>
  </section>`;
}
