// @ts-check
// Every open question of every run, oldest first.

import { html } from "../html.js";
import { More, useList } from "../parts/list.js";
import { Empty, Problem } from "../parts/pieces.js";
import { Question } from "../parts/question.js";
import { Screen } from "../parts/screen.js";

export function Page() {
  const list = useList("/human", {}, ["human", "run-ends"]);
  return html`<${Screen} title="Questions">
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>Nothing waits for a person.</${Empty}>`}
    ${list.items?.map(
      (request) =>
        html`<section key=${`${request.run_id} ${request.request_id}`} class="card people" aria-label=${`Question of ${request.agent_id}`}>
          <${Question} request=${request} answered=${list.again} withRun />
        </section>`,
    )}
    <${More} list=${list} />
  </${Screen}>`;
}
