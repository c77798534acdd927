// @ts-check
// Schedules: when they start runs next, what the last time has started, and what can be done with one.

import { post, request } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { Choice, Filters } from "../parts/filters.js";
import { More, useList, useResource } from "../parts/list.js";
import { Empty, Facts, Json, Pill, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Time, zoneName } from "../parts/time.js";
import { go, parameter, to } from "../router.js";

const statuses = ["active", "paused", "completed", "failed"];
const kinds = ["cron", "delayed", "event"];
/** @type {Readonly<Record<string, string>>} */
const pillOf = { active: "running", paused: "paused", completed: "completed", failed: "failed" };

/** @param {{ id?: string }} properties */
export const Page = ({ id }) =>
  id === undefined ? html`<${List} />` : html`<${Detail} key=${id} id=${id} />`;

function List() {
  const query = { status: parameter("status"), kind: parameter("kind") };
  const list = useList("/schedules", query, ["schedules"]);
  return html`<${Screen} title="Schedules">
    <${Filters} label="Which schedules are shown">
      <${Choice} name="status" label="Status" values=${statuses} />
      <${Choice} name="kind" label="Kind" values=${kinds} />
    </${Filters}>
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>${query.status || query.kind ? "No schedule passes these filters." : html`No schedule yet. Make one with <code>troupe schedules create</code>.`}</${Empty}>`}
    ${
      list.items !== null &&
      list.items.length > 0 &&
      html`<div class="card rows"><table>
      <thead><tr><th scope="col">Schedule</th><th scope="col">Status</th><th scope="col">Rule</th><th scope="col">Next</th>
        <th scope="col">Last</th><th scope="col">Started, skipped, missed, failed</th></tr></thead>
      <tbody>${list.items.map((one) => html`<${Row} key=${one.schedule_id} schedule=${one} />`)}</tbody>
    </table></div>`
    }
    <${More} list=${list} />
  </${Screen}>`;
}

/** @param {{ schedule: any }} properties */
function Row({ schedule }) {
  const { schedule_id: id, name, status, status_reason: reason, description, next_run_at: next } = schedule;
  return html`<tr>
    <th scope="row"><a data-row href=${to(["schedules", id])} dir="auto">${shown(name, 80) || id}</a><code class="muted id">${id}</code></th>
    <td><${Pill} state=${pillOf[status] ?? status} name=${status} />${reason && html`<span class="why muted" dir="auto">${shown(reason, 120)}</span>`}</td>
    <td data-name="Rule" dir="auto">${shown(description, 200)}</td>
    <td class="tight" data-name="Next"><${Time} at=${next} /></td>
    <td data-name="Last"><${Last} dispatch=${schedule.last_dispatch} /></td>
    <td class="tight number" data-name="Started, skipped, missed, failed">${countsOf(schedule)}</td>
  </tr>`;
}

/** @param {any} schedule */
const countsOf = ({ counts: { dispatched, skipped, missed, failed } }) =>
  [dispatched, skipped, missed, failed].join(", ");

/** @param {{ dispatch: any }} properties */
function Last({ dispatch }) {
  if (dispatch === null || dispatch === undefined) return html`<span class="muted">–</span>`;
  const { outcome, reason, run_id: runId, dispatched_at: at } = dispatch;
  return html`<${Time} at=${at} /> ${runId === null ? html`<span dir="auto">${outcome}${reason === null ? "" : `: ${shown(reason, 120)}`}</span>` : html`<a href=${to(["runs", runId])}>its run</a>`}`;
}

/** @param {{ id: string }} properties */
function Detail({ id }) {
  const path = `/schedules/${encodeURIComponent(id)}`;
  const { value: schedule, error, again } = useResource(path, ["schedules"]);
  if (schedule === null) {
    return html`<${Screen} title="Schedule">${error === null ? null : html`<${Problem} error=${error} retry=${again} />`}</${Screen}>`;
  }
  const act = (/** @type {string} */ action) => async () => {
    await post(`${path}/${action}`);
    again();
  };
  const remove = async () => {
    await request("DELETE", path, { headers: { "if-match": `"${schedule.revision}"` } });
    go(to(["schedules"]));
  };
  const { status } = schedule;
  const isOpen = status === "active" || status === "paused";
  const actions = html`
    ${isOpen && html`<${Action} label="Start a run now" act=${act("dispatch")} />`}
    ${status === "active" && html`<${Action} label="Pause" act=${act("pause")} />`}
    ${status === "paused" && html`<${Action} label="Resume" act=${act("resume")} />`}
    <${Action} label="Delete" danger act=${remove} question="It starts no runs any more. Those that it has started stay. It cannot be undone." />`;
  return html`<${Screen} title=${shown(schedule.name, 200) || id} heading=${html`<p class="muted"><code>${id}</code></p>`} actions=${actions}>
    <section class="card summary" aria-label="State of the schedule">
      <${Facts} items=${[
        ["Status", html`<${Pill} state=${pillOf[status] ?? status} name=${status} />`],
        ["Rule", shown(schedule.description, 400)],
        ["Last", html`<${Last} dispatch=${schedule.last_dispatch} />`],
        ["Started, skipped, missed, failed", countsOf(schedule)],
        ["When one is still running", schedule.overlap],
        ["When times were missed", schedule.missed],
        ["Job", html`<a href=${to(["runs"], { job: schedule.job_id })}>Its runs</a>`],
      ]} />
      ${schedule.status_reason && html`<p class="wrapped" dir="auto">${shown(schedule.status_reason, 400)}</p>`}
    </section>
    <${Times} schedule=${schedule} />
    <section class="card" aria-labelledby="schedule-inputs"><h2 id="schedule-inputs">Inputs</h2><${Json} value=${schedule.inputs} label="Inputs of its runs" /></section>
  </${Screen}>`;
}

/** The next times, as the reader's clock shows them and as the schedule's zone does. @param {{ schedule: any }} properties */
function Times({ schedule }) {
  const times = /** @type {string[]} */ (schedule.next_runs ?? []);
  if (times.length === 0) return null;
  const zone = schedule.cron?.timezone ?? "UTC";
  const there = inZone(zone);
  return html`<section class="card" aria-labelledby="schedule-times"><h2 id="schedule-times">Next times</h2>
    <div class="rows"><table><thead><tr><th scope="col">Here (${zoneName()})</th><th scope="col">There (${shown(zone, 60)})</th></tr></thead>
    <tbody>${times.map((at) => html`<tr key=${at}><td><${Time} at=${at} /></td><td class="number">${there(at)}</td></tr>`)}</tbody></table></div>
  </section>`;
}

/** @param {string} timeZone @returns {(iso: string) => string} */
function inZone(timeZone) {
  const options = /** @type {const} */ ({
    weekday: "short",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  });
  const format = new Intl.DateTimeFormat("en", { ...options, hourCycle: "h23", timeZone });
  return (iso) => format.format(new Date(iso));
}
