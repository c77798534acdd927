// @ts-check
// What a reader must know first: why the run failed, what waits for a person, its results, and its inputs.

import { isObject, textOf } from "../../dashboard/event.js";
import { html } from "../html.js";
import { useList } from "../parts/list.js";
import { Empty, Facts, Json, shown } from "../parts/pieces.js";
import { Question } from "../parts/question.js";
import { Time } from "../parts/time.js";
import { to } from "../router.js";
import { FileList } from "./file-list.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const { run, model, id } = source;
  const failure = model.failure ?? run.failure;
  return html`
    ${isObject(failure) && html`<${Failure} failure=${failure} id=${id} />`}
    <${Questions} source=${source} />
    <${Outputs} source=${source} />
    <section class="card" aria-labelledby="inputs-heading"><h2 id="inputs-heading">Inputs</h2>
      <${Json} value=${run.inputs} label="Inputs of the run" />
      ${run.config_overrides !== null && html`<h3>Changes of the configuration for this run</h3><${Json} value=${run.config_overrides} label="Changes of the configuration" />`}
    </section>
    ${run.result !== null && html`<section class="card" aria-labelledby="result-heading"><h2 id="result-heading">Result</h2><${Json} value=${run.result} label="Result of the run" /></section>`}`;
}

/** @param {{ failure: any, id: string }} properties */
function Failure({ failure, id }) {
  const details = isObject(failure.details) ? failure.details : {};
  const agent = textOf(details.agent_id);
  const attempts = [details.attempt, details.max_attempts].filter(Number.isInteger).join(" of ");
  const stderr = shown(details.stderr_tail);
  const message = shown(details.message);
  const desc = shown(failure.desc);
  // Of a long message the description is the beginning.
  const lead = desc === "" || message.startsWith(desc.replace(/…$/, "")) ? message || desc : desc;
  return html`<section class="card failure" aria-labelledby="failure-heading"><h2 id="failure-heading">What went wrong</h2>
    <p class="lead" dir="auto">${lead}</p>
    ${message !== "" && message !== lead && html`<p class="wrapped" dir="auto">${message}</p>`}
    ${shown(failure.remediation) !== "" && html`<p><strong>What to do: </strong>${shown(failure.remediation)}</p>`}
    <${Facts} items=${[
      ["Code", html`<code>${shown(failure.code, 80)}</code>`],
      ["Agent", agent && html`<a href=${to(["runs", id, "logs"], { agent })}>${shown(agent, 80)}</a>`],
      ["Attempt", attempts],
      ["Exit code", Number.isInteger(details.exit_code) ? String(details.exit_code) : ""],
      ["Signal", shown(details.signal, 20)],
      ["When", html`<${Time} at=${failure.occurred_at} />`],
    ]} />
    ${stderr !== "" && html`<h3>The end of what it printed to stderr</h3><pre tabindex="0" role="group" aria-label="The end of stderr" dir="auto">${stderr}</pre>`}
  </section>`;
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
    ${list.items !== null && html`<${FileList} id=${id} files=${list.items} />`}
  </section>`;
}
