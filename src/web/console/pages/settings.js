// @ts-check
// What the program that answers was started with.

import { html } from "../html.js";
import { Choice, Filters, Search } from "../parts/filters.js";
import { useResource } from "../parts/list.js";
import { Empty, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { parameter } from "../router.js";

const sources = ["environment", "cluster.json", "default"];

export function Page() {
  const { value, error, again } = useResource("/system/settings");
  const wanted = parameter("q").toLowerCase();
  const from = parameter("from");
  /** @type {any[]} */
  const settings = (value?.settings ?? []).filter(
    (/** @type {any} */ one) =>
      (from === "" || one.from === from) &&
      [one.variable, one.value, one.meaning].some((text) => text.toLowerCase().includes(wanted)),
  );
  return html`<${Screen} title="Settings" heading=${html`<p class="muted">Of the program that answers here. They are environment variables, read at its start; secrets are masked.</p>`}>
    <${Filters} label="Which settings are shown"><${Search} name="q" label="Name or text" /><${Choice} name="from" label="Set by" values=${sources} /></${Filters}>
    ${error !== null && html`<${Problem} error=${error} retry=${again} />`}
    ${value !== null && settings.length === 0 && html`<${Empty}>No setting passes these filters.</${Empty}>`}
    ${
      settings.length > 0 &&
      html`<div class="card rows"><table>
      <thead><tr><th scope="col">Variable</th><th scope="col">Value</th><th scope="col">Set by</th><th scope="col">What it is for</th></tr></thead>
      <tbody>${settings.map(
        (
          one,
        ) => html`<tr key=${one.variable}><th scope="row"><code class="tight">${shown(one.variable, 80)}</code></th>
          <td data-name="Value" class="wrapped" dir="auto">${shown(one.value, 500)}</td><td class="tight" data-name="Set by">${one.from}</td><td class="muted" dir="auto">${shown(one.meaning, 500)}</td></tr>`,
      )}</tbody></table></div>`
    }
  </${Screen}>`;
}
