// @ts-check
// Messages of all runs that were not processed.

import { html } from "../html.js";
import { Choice, Filters } from "../parts/filters.js";
import { Letters, reasons } from "../parts/letters.js";
import { More, useList } from "../parts/list.js";
import { Empty, Problem } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { parameter } from "../router.js";

export function Page() {
  const list = useList("/dead-letters", { reason: parameter("reason") }, ["dead-letters", "run-ends"]);
  return html`<${Screen} title="Dead letters">
    <${Filters} label="Which messages are shown"><${Choice} name="reason" label="Reason" values=${[...reasons]} /></${Filters}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>Every message was processed.</${Empty}>`}
    ${list.items !== null && html`<${Letters} letters=${list.items} again=${list.again} withRun />`}
    <${More} list=${list} />
  </${Screen}>`;
}
