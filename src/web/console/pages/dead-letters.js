// @ts-check
// Messages of all runs that were not processed.

import { html } from "../html.js";
import { Choice, Chosen, Filters } from "../parts/filters.js";
import { reasons } from "../parts/letter-reasons.js";
import { askToSendAll, Letters } from "../parts/letters.js";
import { More, useList } from "../parts/list.js";
import { useMany } from "../parts/many.js";
import { Empty, Problem } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { parameter } from "../router.js";

export function Page() {
  const query = { reason: parameter("reason"), run_id: parameter("run"), job_id: parameter("job") };
  const status = parameter("status");
  const list = useList("/dead-letters", { ...query, status }, ["dead-letters", "run-ends"]);
  const many = useMany();
  const isNone = list.items === null || list.items.length === 0;
  const isFiltered = status !== "" || Object.values(query).some(Boolean);
  const sendAll = () => askToSendAll(many, "/dead-letters", query, list.again);
  const action =
    status === "" &&
    html`<button type="button" disabled=${isNone} onClick=${sendAll}>Send all again …</button>`;
  return html`<${Screen} title="Dead letters" actions=${action}>
    <${Filters} label="Which messages are shown">
      <${Choice} name="reason" label="Reason" values=${[...reasons]} />
      <${Choice} name="status" label="Status" any="Open" values=${[["retried", "Sent again"]]} />
      <${Chosen} name="run" label="Run" /><${Chosen} name="job" label="Job" />
    </${Filters}>
    ${many.dialog}
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>${isFiltered ? "No message passes these filters." : "Every message was processed."}</${Empty}>`}
    ${list.items !== null && html`<${Letters} letters=${list.items} again=${list.again} withRun />`}
    <${More} list=${list} />
  </${Screen}>`;
}
