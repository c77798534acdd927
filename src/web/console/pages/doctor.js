// @ts-check
// What the gateway finds when it looks at its machine, and what to do about it.

import { html } from "../html.js";
import { findingState } from "../parts/findings.js";
import { useResource } from "../parts/list.js";
import { Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time } from "../parts/time.js";

/** What has to be done comes first. */
const order = ["fail", "warn", "ok"];

export function Page() {
  const { value, error, again } = useResource("/runtime/doctor");
  const checks = [...(value?.checks ?? [])].sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  return html`<${Screen} title="Doctor" heading=${value !== null && html`<p class="muted">Checked at <${Time} at=${value.checked_at} />, by the program that answers here</p>`}
      actions=${html`<button type="button" onClick=${again}>Check again</button>`}>
    ${error !== null && html`<${Problem} error=${error} retry=${again} />`}
    ${
      checks.length > 0 &&
      html`<div class="card rows"><table>
      <thead><tr><th scope="col">Check</th><th scope="col">State</th><th scope="col">Found</th><th scope="col">What to do</th></tr></thead>
      <tbody>${checks.map(
        ({ name, status, text, fix }) => html`<tr key=${name}><th scope="row">${shown(name, 80)}</th>
          <td><${Pill} ...${findingState(status)} /></td><td data-name="Found" dir="auto">${shown(text, 500)}</td><td data-name="What to do" dir="auto">${shown(fix, 500) || "–"}</td></tr>`,
      )}</tbody></table></div>`
    }
  </${Screen}>`;
}
