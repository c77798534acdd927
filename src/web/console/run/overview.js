// @ts-check
// What a reader must know first: why the run failed, what waits for a person, its results, and its inputs.

import { html, useState } from "../html.js";
import { lazily } from "../parts/lazily.js";
import { useList } from "../parts/list.js";
import { Empty, Json, Pill, shown } from "../parts/pieces.js";
import { to } from "../router.js";
import { isGuest } from "../session.js";
import { Failure, failureOf } from "./failure.js";

const Question = lazily(async () => (await import("../parts/question.js")).Question);
const Configuration = lazily(async () => (await import("./configuration.js")).Configuration);
const FileList = lazily(async () => (await import("./file-list.js")).FileList);

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const { run } = source;
  const failure = failureOf(source);
  const [isOpen, setOpen] = useState(false);
  return html`
    ${failure !== null && html`<${Failure} key=${failure.event_id} source=${source} failure=${failure} />`}
    <${Questions} source=${source} />
    <${Outputs} source=${source} />
    <section class="card" aria-labelledby="inputs-heading"><h2 id="inputs-heading">Inputs</h2>
      <${Json} value=${run.inputs} label="Inputs of the run" />
      ${run.config_overrides !== null && html`<h3>Changes of the configuration for this run</h3><${Json} value=${run.config_overrides} label="Changes of the configuration" />`}
      <details onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}><summary>The configuration in effect</summary>${isOpen && html`<${Configuration} run=${run} />`}</details>
    </section>
    ${!isGuest() && html`<${Services} source=${source} />`}
    ${run.result !== null && html`<section class="card" aria-labelledby="result-heading"><h2 id="result-heading">Result</h2><${Json} value=${run.result} label="Result of the run" /></section>`}`;
}

/** @param {{ source: import("./run-source.js").RunSource }} properties */
function Questions({ source }) {
  const pending = source.run.progress.human_pending;
  const path = `/runs/${encodeURIComponent(source.id)}/human`;
  const asked = [...source.model.requests.keys()].join(" ");
  const list = useList(path, { status: "pending" }, [], asked);
  // The record counts them before any list has them.
  if (pending === 0 || list.items === null || list.items.length === 0) return null;
  return html`<section class="card people" aria-labelledby="people-heading"><h2 id="people-heading">Waiting for a person</h2>
    <ul class="plain questions">${list.items.map((request) => html`<li key=${request.request_id}><${Question} request=${request} answered=${list.again} /></li>`)}</ul>
  </section>`;
}

/** @param {{ source: import("./run-source.js").RunSource }} properties */
function Outputs({ source }) {
  const { run, id, model } = source;
  const list = useList(
    `/runs/${encodeURIComponent(id)}/outputs`,
    {},
    [],
    `${model.counts.artifacts} ${model.endedAt}`,
  );
  const isEmpty = list.items !== null && list.items.length === 0;
  return html`<section class="card" aria-labelledby="outputs-heading"><h2 id="outputs-heading">Outputs</h2>
    ${isEmpty && html`<${Empty}>${run.finished_at === null ? "Nothing yet." : "The run has no outputs."}</${Empty}>`}
    ${list.items !== null && !isEmpty && html`<${FileList} id=${id} files=${list.items} />`}
  </section>`;
}

/** What the run offers to others while it goes on. @param {{ source: import("./run-source.js").RunSource }} properties */
function Services({ source: { id } }) {
  const list = useList("/services", { run_id: id }, ["services"]);
  if (list.items === null || list.items.length === 0) return null;
  return html`<section class="card" aria-labelledby="services-heading"><h2 id="services-heading">Services</h2>
    <ul class="plain lines">${list.items.map(
      ({
        service_id: one,
        name,
        status,
        public_url: url,
      }) => html`<li key=${one}><${Pill} state=${status === "passing" ? "completed" : "failed"} name=${status} />
        <a href=${to(["services"], { run: id })} dir="auto">${shown(name, 80)}</a><code class="muted" dir="auto">${shown(url, 120)}</code></li>`,
    )}</ul></section>`;
}
