// @ts-check
// One blueprint: what it is and needs, adding and removing it, and a start of a run.

import { post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { useResource } from "../parts/list.js";
import { LatestOperation, Remove, useLatestOperation } from "../parts/operation.js";
import { Facts, Json, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { StartForm } from "../parts/start-form.js";
import { Time } from "../parts/time.js";
import { to } from "../router.js";
import { shades } from "./blueprints.js";

const kept = [
  ["keep_resources", "Keep its resources"],
  ["keep_models", "Keep its models"],
];

/** @param {{ id: string }} properties */
export function Page({ id }) {
  const path = `/blueprints/${encodeURIComponent(id)}`;
  const { value: blueprint, error, again } = useResource(path, ["operations"]);
  const operation = useLatestOperation(id, "blueprint");
  if (blueprint === null)
    return html`<${Screen} title="Blueprint">${error !== null && html`<${Problem} error=${error} retry=${again} />`}</${Screen}>`;
  const isBusy = ["adding", "removing"].includes(blueprint.state);
  // What failed the latest operation is told there.
  const findings = [...blueprint.errors, ...blueprint.warnings].filter(
    ({ message }) => message !== operation?.error?.detail,
  );
  const add = (/** @type {object} */ how) => async () => {
    await post(`${path}/additions`, how);
    again();
  };
  const isAdded = blueprint.state === "added";
  const actions = html`
    ${blueprint.state !== "broken" && html`<${Action} label=${isAdded ? "Add again" : "Add"} disabled=${isBusy} act=${add({})} />`}
    ${isAdded && html`<${Action} label="Rebuild" disabled=${isBusy} act=${add({ force: true })} question="Its package, resources and models are all made anew, and take the place of those that are there once they are whole." />`}
    ${(isAdded || blueprint.owns.length > 0) && html`<${Remove} title="Remove the blueprint" path=${`${path}/removals`} disabled=${isBusy} began=${again} choices=${kept} text="What was prepared for it goes. Its folder in the catalog stays, so it can be added again." />`}`;
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
      ${findings.map((one) => html`<p key=${one.path + one.code} class="wrong" dir="auto"><code>${shown(one.path, 200)}</code> ${shown(one.message, 600)}</p>`)}
      <details><summary>Its configuration</summary><${Json} value=${blueprint.default_configuration} label="Configuration of the blueprint" /></details>
    </section>
    ${operation !== null && html`<${LatestOperation} operation=${operation} />`}
    ${
      blueprint.state !== "broken" &&
      html`<${StartForm} start=${`${path}/runs`} validate=${`${path}/validate`} inputSchema=${blueprint.input_schema} configSchema=${blueprint.config_schema} />`
    }
  </${Screen}>`;
}
