// @ts-check
// The list of runs: filtered by the address, live, and controlled many at a time.

import { plural } from "../../dashboard/format.js";
import { html, useEffect, useMemo } from "../html.js";
import { Choice, Chosen, Filters, Search } from "../parts/filters.js";
import { More, useList } from "../parts/list.js";
import { Bar, Empty, Pill, Problem, shown, stateOf } from "../parts/pieces.js";
import { Bulk, tick, ticked } from "../parts/run-ticks.js";
import { SavedFilters } from "../parts/saved-filters.js";
import { Screen } from "../parts/screen.js";
import { Elapsed, Time } from "../parts/time.js";
import { parameter, to } from "../router.js";

const statuses = ["pending", "queued", "running", "paused", "completed", "failed", "cancelled"];

const triggers = ["api", "blueprint", "schedule", "event", "deployment"];
const HOUR_MS = 3_600_000;
/** @type {ReadonlyMap<string, [number, string]>} */
const ages = new Map([
  ["1h", [HOUR_MS, "The last hour"]],
  ["24h", [24 * HOUR_MS, "The last 24 hours"]],
  ["7d", [7 * 24 * HOUR_MS, "The last 7 days"]],
]);

export function Page() {
  const age = parameter("since");
  // The same time for as long as the age is chosen: another one would be another list.
  const since = useMemo(() => {
    const [ms] = ages.get(age) ?? [];
    return ms === undefined ? "" : new Date(Date.now() - ms).toISOString();
  }, [age]);
  const query = {
    q: parameter("q"),
    status: parameter("status"),
    trigger: parameter("trigger"),
    job_id: parameter("job"),
    blueprint_id: parameter("blueprint"),
    rerun_of: parameter("rerun_of"),
    since,
  };
  const list = useList("/runs", query, ["runs"]);
  useEffect(() => {
    ticked.value = new Set();
  }, [JSON.stringify(query)]);
  return html`<${Screen} title="Runs">
    <${SavedFilters} />
    <${Filters} label="Which runs are shown">
      <${Search} name="q" label="Name or id" />
      <${Choice} name="status" label="Status" values=${statuses} />
      <${Choice} name="trigger" label="Trigger" values=${triggers} />
      <${Choice} name="since" label="Since" any="Ever" values=${[...ages].map(([age, [, words]]) => [age, words])} />
      <${Chosen} name="job" label="Job" text=${list.items?.[0]?.job_name} />
      <${Chosen} name="blueprint" label="Blueprint" />
      <${Chosen} name="rerun_of" label="Repeats of" />
    </${Filters}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    <${Bulk} runs=${list.items ?? []} again=${list.again} />
    ${list.items?.length === 0 && html`<${Empty}>${emptyText(list, query)}</${Empty}>`}
    ${list.items !== null && list.items.length > 0 && html`<${Table} runs=${list.items} />`}
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ hasMore: boolean }} list @param {Record<string, any>} query */
function emptyText({ hasMore }, query) {
  if (hasMore) return "None of the newest runs passes these filters; older ones may.";
  return Object.values(query).some(Boolean)
    ? "No run passes these filters."
    : html`No run yet. Start one with <code>troupe run</code>.`;
}

/** @param {{ runs: any[] }} properties */
function Table({ runs }) {
  const isAll = runs.every(({ run_id: id }) => ticked.value.has(id));
  const tickAll = () => (ticked.value = new Set(isAll ? [] : runs.map(({ run_id: id }) => id)));
  return html`<div class="card rows"><table>
    <thead><tr>
      <th scope="col"><input type="checkbox" aria-label="Tick all that are shown" checked=${isAll} onChange=${tickAll} /></th>
      <th scope="col">Run</th><th scope="col">Status</th><th scope="col">Agents</th><th scope="col">Notable</th><th scope="col" class="tight">Trigger</th>
      <th scope="col">Created</th><th scope="col" class="tight">Duration</th>
    </tr></thead>
    <tbody>${runs.map((run) => rowOf(run, ticked.value.has(run.run_id)))}</tbody>
  </table></div>`;
}

/** The rows of runs as they are: of many that are shown, few change at a time. @type {WeakMap<object, { isTicked: boolean, row: any }>} */
const rows = new WeakMap();

/** @param {any} run @param {boolean} isTicked */
function rowOf(run, isTicked) {
  let known = rows.get(run);
  if (known?.isTicked !== isTicked) {
    known = { isTicked, row: html`<${Row} key=${run.run_id} run=${run} isTicked=${isTicked} />` };
    rows.set(run, known);
  }
  return known.row;
}

/** @param {{ run: any, isTicked: boolean }} properties */
function Row({ run, isTicked }) {
  const { run_id: id, status, progress, trigger } = run;
  const label = shown(progress.label, 120);
  return html`<tr>
    <td><input type="checkbox" aria-label=${`Tick ${id}`} checked=${isTicked} onChange=${() => tick(id)} /></td>
    <th scope="row"><a data-row href=${to(["runs", id])} dir="auto">${shown(run.job_name, 80) || id}</a><code class="muted id">${id}</code></th>
    <td><${Pill} ...${stateOf(run)} />${run.failure && html`<span class="why muted" dir="auto">${shown(run.failure.code, 60)}</span>`}</td>
    <td class="progress" data-name="Agents"><${Bar} value=${progress.agents_done} total=${progress.agents_total} label=${`Agents done of ${id}`} state=${status} />
      <span class="muted" dir="auto">${label}</span></td>
    <td class="muted notable">${notableOf(run.counts).map((text) => html`<span key=${text}>${text}</span>`)}</td>
    <td class="tight" data-name="Trigger">${trigger.kind}</td>
    <td class="tight" data-name="Created"><${Time} at=${run.created_at} /></td>
    <td class="tight" data-name="Duration"><${Elapsed} from=${run.started_at} to=${run.finished_at} /></td>
  </tr>`;
}

/** What of a run a reader may want to look at. @param {any} counts @returns {string[]} */
function notableOf({ human_pending: questions, warnings, retries, dead_letters: letters, tokens }) {
  return [
    questions > 0 ? plural(questions, "question") : "",
    warnings > 0 ? plural(warnings, "warning") : "",
    retries > 0 ? plural(retries, "retry", "retries") : "",
    letters > 0 ? plural(letters, "dead letter") : "",
    tokens === null ? "" : plural(tokens, "token"),
  ].filter((text) => text !== "");
}
