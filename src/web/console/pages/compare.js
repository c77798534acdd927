// @ts-check
// Two runs side by side: what they were made of and given, how their agents ended, and where their events first differ.

import { isObject } from "../../dashboard/event.js";
import { duration } from "../../dashboard/format.js";
import { apply, createModel, shownState, stateNames } from "../../dashboard/model.js";
import { get } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Diff } from "../parts/diff.js";
import { Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Elapsed, Time } from "../parts/time.js";
import { parameter, setQuery, to } from "../router.js";

const EVENTS_MAX = 4_000;

/** @typedef {{ run: any, job: any, model: any, kinds: Map<string, string[]>, spent: Map<string, { attempts: number, ms: number }> }} Told */

/** @param {string} id @returns {Promise<Told>} */
async function tell(id) {
  const path = `/runs/${encodeURIComponent(id)}`;
  const run = await get(path);
  const job = await get(`/jobs/${encodeURIComponent(run.job_id)}`, { view: "full" });
  const model = createModel(null);
  const kinds = new Map();
  const spent = new Map();
  let token = null;
  do {
    const page = await get(`${path}/events`, { page_size: 200, page_token: token });
    for (const event of page.items) {
      apply(model, event);
      if (typeof event.agent_id !== "string") continue;
      const agent = event.agent_id;
      if (!/^(?:log|progress|metric|beacon)$/.test(event.type))
        kinds.set(agent, [...(kinds.get(agent) ?? []), event.type]);
      const { attempts, ms } = spent.get(agent) ?? { attempts: 0, ms: 0 };
      const took =
        isObject(event.payload) && Number.isFinite(event.payload.duration_ms) ? event.payload.duration_ms : 0;
      if (event.type === "sandbox_job_started") spent.set(agent, { attempts: attempts + 1, ms });
      if (/^sandbox_job_(?:completed|failed)$/.test(event.type))
        spent.set(agent, { attempts, ms: ms + took });
    }
    token = page.next_page_token;
  } while (token !== null && model.lastId < EVENTS_MAX);
  return { run, job, model, kinds, spent };
}

export function Page() {
  const [a, b] = [parameter("a"), parameter("b")];
  const [told, setTold] = useState(/** @type {[Told, Told] | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useEffect(() => {
    setTold(null);
    setError(null);
    if (a === "" || b === "") return;
    Promise.all([tell(a), tell(b)]).then(setTold, setError);
  }, [a, b]);
  const choose = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const given = new FormData(/** @type {HTMLFormElement} */ (event.target));
    setQuery({ a: String(given.get("a")).trim(), b: String(given.get("b")).trim() });
  };
  return html`<${Screen} title="Compare two runs">
    <form class="filters" aria-label="Which runs are compared" onSubmit=${choose}>
      <div class="wide"><label for="compare-a">One run</label><input id="compare-a" name="a" value=${a} autocomplete="off" spellcheck=${false} required /></div>
      <div class="wide"><label for="compare-b">The other run</label><input id="compare-b" name="b" value=${b} autocomplete="off" spellcheck=${false} required /></div>
      <button type="submit">Compare</button>
    </form>
    ${error !== null && html`<${Problem} error=${error} />`}
    ${told !== null && html`<${Both} told=${told} />`}
  </${Screen}>`;
}

/** @param {{ told: [Told, Told] }} properties */
function Both({ told: [a, b] }) {
  const sides = [a, b];
  const agents = [...new Set(sides.flatMap(({ model }) => [...model.agents.keys()]))];
  const names = /** @type {[string, string]} */ (["One", "The other"]);
  return html`
    <section class="card rows" aria-labelledby="both-heading"><h2 id="both-heading">The runs</h2><table>
      <thead><tr><th scope="col">Run</th><th scope="col">Status</th><th scope="col">Created</th><th scope="col">Duration</th><th scope="col">Failure</th></tr></thead>
      <tbody>${sides.map(
        ({
          run,
        }) => html`<tr key=${run.run_id}><th scope="row"><a href=${to(["runs", run.run_id])}><code>${run.run_id}</code></a></th><td><${Pill} state=${run.status} /></td>
          <td class="tight" data-name="Created"><${Time} at=${run.created_at} /></td><td class="tight" data-name="Duration"><${Elapsed} from=${run.started_at} to=${run.finished_at} /></td><td dir="auto">${shown(run.failure?.desc, 200)}</td></tr>`,
      )}</tbody></table></section>
    <section class="card" aria-labelledby="first-heading"><h2 id="first-heading">Where they first differ</h2><${Divergence} a=${a} b=${b} /></section>
    <section class="card" aria-labelledby="given-heading"><h2 id="given-heading">What they were given</h2>
      <${Diff} before=${{ inputs: a.run.inputs, config_overrides: a.run.config_overrides }} after=${{ inputs: b.run.inputs, config_overrides: b.run.config_overrides }} names=${names} same="The same inputs and the same changes of the configuration." /></section>
    <section class="card" aria-labelledby="made-heading"><h2 id="made-heading">What they are made of</h2>
      <${Diff} before=${madeOf(a)} after=${madeOf(b)} names=${names} same="The same manifest, and the same configuration of the job." /></section>
    <section class="card" aria-labelledby="results-heading"><h2 id="results-heading">Their results</h2>
      <${Diff} before=${a.run.result} after=${b.run.result} names=${names} same="The same result." /></section>
    <section class="card rows" aria-labelledby="by-agent-heading"><h2 id="by-agent-heading">Agents</h2><table>
      <thead><tr><th scope="col">Agent</th><th scope="col">${names[0]}</th><th scope="col">${names[1]}</th></tr></thead>
      <tbody>${agents.slice(0, 1_000).map((id) => html`<tr key=${id}><th scope="row" dir="auto">${shown(id, 80)}</th>${sides.map((side, index) => html`<td key=${index} data-name=${names[index]}><${Agent} side=${side} id=${id} /></td>`)}</tr>`)}</tbody></table></section>`;
}

/** As the jobs are now. @param {Told} told */
const madeOf = ({ job }) => ({ manifest: job.manifest, configuration: job.resolved_configuration });

/** @param {{ side: Told, id: string }} properties */
function Agent({ side, id }) {
  const agent = side.model.agents.get(id);
  if (agent === undefined) return html`<span class="muted">not reached</span>`;
  const state = shownState(agent);
  const spent = side.spent.get(id);
  return html`<${Pill} state=${state} name=${stateNames.get(state)} /> ${spent && html`<span class="muted number">${spent.attempts} × · ${duration(spent.ms)}</span>`}`;
}

/** @param {{ a: Told, b: Told }} properties */
function Divergence({ a, b }) {
  for (const [agent, kinds] of a.kinds) {
    const others = b.kinds.get(agent) ?? [];
    const at = Array.from({ length: Math.max(kinds.length, others.length) }).findIndex(
      (_, index) => kinds[index] !== others[index],
    );
    if (at < 0) continue;
    const name = (/** @type {string | undefined} */ kind) =>
      kind === undefined ? "nothing more" : html`<code>${shown(kind, 80)}</code>`;
    return html`<p>Agent <strong dir="auto">${shown(agent, 80)}</strong>, its event ${at + 1}: ${name(kinds[at])} in the one, ${name(others[at])} in the other.</p>`;
  }
  return html`<${Empty}>Every agent had the same events, in the same order.</${Empty}>`;
}
