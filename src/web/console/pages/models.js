// @ts-check
// Models: what each is, where it comes from, and whether it is installed; and the registration of another one.

import { size } from "../../dashboard/format.js";
import { html } from "../html.js";
import { More, useList } from "../parts/list.js";
import { Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { to } from "../router.js";
import { Register } from "./model-form.js";

/** @type {Readonly<Record<string, string>>} */
const pillOf = { registered: "pending", installing: "running", installed: "completed", failed: "failed" };

/** @param {{ state: string }} properties */
export const State = ({ state }) => html`<${Pill} state=${pillOf[state] ?? state} name=${state} />`;

/** Where a model comes from, in a few words. @param {any} source */
export function sourceText({ file, folder, url, payload, blueprint_id: blueprint, ollama, openai }) {
  if (payload !== undefined) return `payloads/${payload} of blueprint ${blueprint}`;
  const server = ollama ?? openai;
  if (server !== undefined) return `${server.model} at ${server.base_url}`;
  return String(file ?? folder ?? url ?? "");
}

export function Page() {
  const list = useList("/models", {}, ["operations"]);
  return html`<${Screen} title="Models" actions=${html`<${Register} done=${list.again} />`}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>No model yet. Register one here, or with <code>troupe models add</code>.</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<div class="card rows"><table>
      <thead><tr><th scope="col">Model</th><th scope="col">State</th><th scope="col">Size</th><th scope="col">Quantisation</th>
        <th scope="col">From</th></tr></thead>
      <tbody>${list.items.map((one) => html`<${Row} key=${one.model_id} model=${one} />`)}</tbody>
    </table></div>`
    }
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ model: any }} properties */
function Row({ model }) {
  const { model_id: id, name, state, size: bytes, format, quantisation, source } = model;
  return html`<tr>
    <th scope="row"><a data-row href=${to(["models", id])} dir="auto">${shown(name, 120)}</a>${name !== id && html`<code class="muted id" dir="auto">${shown(id, 200)}</code>`}</th>
    <td><${State} state=${state} /></td>
    <td class="tight number" data-name="Size">${bytes === null ? "–" : size(bytes)}</td>
    <td class="tight" data-name="Quantisation" dir="auto">${shown(quantisation ?? format, 40) || "–"}</td>
    <td class="wrapped" data-name="From" dir="auto">${shown(sourceText(source), 200)}</td>
  </tr>`;
}
