// @ts-check
// One blueprint: what it is and needs, adding and removing it, and a start of a run.

import { post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { useResource } from "../parts/list.js";
import { Facts, Json, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { StartForm } from "../parts/start-form.js";
import { Time } from "../parts/time.js";
import { to } from "../router.js";
import { shades } from "./blueprints.js";

/** @param {{ id: string }} properties */
export function Page({ id }) {
  const path = `/blueprints/${encodeURIComponent(id)}`;
  const { value: blueprint, error, again } = useResource(path, ["operations"]);
  if (blueprint === null)
    return html`<${Screen} title="Blueprint">${error !== null && html`<${Problem} error=${error} retry=${again} />`}</${Screen}>`;
  const isBusy = ["adding", "removing"].includes(blueprint.state);
  const change = (/** @type {string} */ what) => async () => {
    await post(`${path}/${what}`, {});
    again();
  };
  const isAdded = blueprint.state === "added";
  const actions = html`
    ${blueprint.state !== "broken" && html`<${Action} label=${isAdded ? "Add again" : "Add"} disabled=${isBusy} act=${change("additions")} />`}
    ${isAdded && html`<${Action} label="Remove" danger disabled=${isBusy} act=${change("removals")} question="What was prepared for it is deleted: its package, resources and models. Its folder in the catalog stays, so it can be added again." />`}`;
  return html`<${Screen} title=${shown(blueprint.name, 200) || id} heading=${html`<p class="muted"><code>${id}</code></p>`} actions=${actions}>
    <section class="card" aria-label="The blueprint">
      <${Facts} items=${[
        [
          "State",
          html`<${Pill} state=${shades.get(blueprint.state) ?? blueprint.state} name=${blueprint.state} />`,
        ],
        ["Version", shown(blueprint.version ?? "", 40)],
        ["Added", blueprint.added_at && html`<${Time} at=${blueprint.added_at} />`],
        ["Jobs", html`<a href=${to(["jobs"], { blueprint: id })}>${blueprint.jobs}</a>`],
      ]} />
      <p dir="auto" class="wrapped below">${shown(blueprint.description)}</p>
      ${[...blueprint.errors, ...blueprint.warnings].map((one) => html`<p key=${one.path + one.code} class="wrong" dir="auto"><code>${shown(one.path, 200)}</code> ${shown(one.message, 600)}</p>`)}
      <details><summary>Its configuration</summary><${Json} value=${blueprint.default_configuration} label="Configuration of the blueprint" /></details>
    </section>
    ${
      blueprint.state !== "broken" &&
      html`<${StartForm} start=${`${path}/runs`} validate=${`${path}/validate`} inputSchema=${blueprint.input_schema} configSchema=${blueprint.config_schema} />`
    }
  </${Screen}>`;
}
