// @ts-check
// Messages of all runs that were not processed.

import { html } from "../html.js";
import { Letters, reasons } from "../parts/letters.js";
import { More, useList } from "../parts/list.js";
import { Empty, Problem } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { parameter, setQuery } from "../router.js";

export function Page() {
  const list = useList("/dead-letters", { reason: parameter("reason") }, ["dead-letters", "runs"]);
  return html`<${Screen} title="Dead letters">
    <form class="filters" aria-label="Which messages are shown" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <div><label for="letter-reason">Reason</label>
        <select id="letter-reason" value=${parameter("reason")} onChange=${(/** @type {any} */ event) => setQuery({ reason: event.target.value })}>
          <option value="">Any</option>
          ${[...reasons].map(([reason, text]) => html`<option key=${reason} value=${reason}>${text}</option>`)}
        </select></div>
    </form>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>Every message was processed.</${Empty}>`}
    ${list.items !== null && html`<${Letters} letters=${list.items} again=${list.again} withRun />`}
    <${More} list=${list} />
  </${Screen}>`;
}
