// @ts-check
// What needs attention, what runs now, and how full the machine is.

import { count } from "../../dashboard/format.js";
import { html } from "../html.js";
import { findingState } from "../parts/findings.js";
import { reasons } from "../parts/letter-reasons.js";
import { useAgainEvery, useList, useResource } from "../parts/list.js";
import { Bar, Empty, Pill, Problem, shown, stateOf } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Elapsed, Time } from "../parts/time.js";
import { to } from "../router.js";

const RECENT_MS = 24 * 3_600_000;
const SHOWN_MAX = 8;
const ENDS_AGAIN_MS = 60_000;

export function Page() {
  const failed = useList("/runs", { status: "failed" }, ["runs"]);
  const running = useList("/runs", { status: "running" }, ["runs"]);
  const questions = useList("/human", {}, ["human", "run-ends"]);
  const letters = useList("/dead-letters", {}, ["dead-letters", "run-ends"]);
  const summary = useResource("/system/summary", ["runs"]);
  const doctor = useResource("/runtime/doctor");
  const findings = (doctor.value?.checks ?? []).filter((/** @type {any} */ { status }) => status !== "ok");
  const lists = [failed, running, questions, letters];
  const broken = lists.find(({ error }) => error !== null);
  const recent = (failed.items ?? []).filter(
    ({ finished_at: at }) => Date.parse(at) > Date.now() - RECENT_MS,
  );
  const isQuiet =
    lists.every(({ items }) => items !== null) &&
    doctor.value !== null &&
    recent.length + (questions.items?.length ?? 0) + (letters.items?.length ?? 0) + findings.length === 0;
  return html`<${Screen} title="Home">
    ${broken !== undefined && html`<${Problem} error=${broken.error} retry=${broken.again} />`}
    <ul class="plain tiles">
      <${Tile} name="Failed in 24 h" count=${failed.items && recent.length} more=${failed.hasMore} href=${to(["runs"], { status: "failed" })} state="failed" />
      <${Tile} name="Questions" count=${questions.items?.length} more=${questions.hasMore} href=${to(["questions"])} state="waiting" />
      <${Tile} name="Dead letters" count=${letters.items?.length} more=${letters.hasMore} href=${to(["dead-letters"])} state="retrying" />
      <${Tile} name="Running" count=${running.items?.length} more=${running.hasMore} href=${to(["runs"], { status: "running" })} state="running" />
    </ul>
    <section class="card" aria-labelledby="attention-heading"><h2 id="attention-heading">Needs attention</h2>
      ${isQuiet && html`<${Empty}>Nothing: no run has failed in the last 24 hours, no question is open, and every message was processed.</${Empty}>`}
      <ul class="plain lines">
        ${findings.map(
          (/** @type {any} */ { name, status, text }) =>
            html`<li key=${name}><${Pill} ...${findingState(status)} /><a href=${to(["doctor"])}>${shown(name, 80)}</a><span class="muted reason" dir="auto">${shown(text, 240)}</span></li>`,
        )}
        ${questions.items
          ?.slice(0, SHOWN_MAX)
          .map(
            (one) =>
              html`<li key=${`${one.run_id} ${one.request_id}`}><${Pill} state="waiting" name="Question" /><a href=${to(["runs", one.run_id])} dir="auto">${shown(one.prompt, 160) || one.request_id}</a><${Time} at=${one.created_at} /></li>`,
          )}
        ${recent.slice(0, SHOWN_MAX).map(
          (
            run,
          ) => html`<li key=${run.run_id}><${Pill} state="failed" /><a href=${to(["runs", run.run_id])} dir="auto">${shown(run.job_name, 80) || run.run_id}</a>
            <span class="muted reason" dir="auto">${shown(run.failure?.desc, 240)}</span><${Time} at=${run.finished_at} /></li>`,
        )}
        ${letters.items
          ?.slice(0, SHOWN_MAX)
          .map(
            (one) =>
              html`<li key=${one.dead_letter_id}><${Pill} state="retrying" name="Dead letter" /><a href=${to(["runs", one.run_id, "dead-letters"])} dir="auto">${shown(one.agent_id, 80)}</a><span class="muted reason">${reasons.get(one.reason)}</span><${Time} at=${one.created_at} /></li>`,
          )}
      </ul>
    </section>
    <section class="card" aria-labelledby="running-heading"><h2 id="running-heading">Running now</h2>
      ${running.items?.length === 0 && html`<${Empty}>No run is running.</${Empty}>`}
      <ul class="plain lines">${running.items?.slice(0, SHOWN_MAX).map(
        (
          run,
        ) => html`<li key=${run.run_id}><${Pill} ...${stateOf(run)} /><a href=${to(["runs", run.run_id])} dir="auto">${shown(run.job_name, 80) || run.run_id}</a>
          <${Bar} value=${run.progress.agents_done} total=${run.progress.agents_total} label=${`Agents done of ${run.run_id}`} state=${run.status} /><${Elapsed} from=${run.started_at} /></li>`,
      )}</ul>
    </section>
    <${Ends} />
    ${summary.value !== null && html`<${Pools} pools=${summary.value.executor_pools} />`}
  </${Screen}>`;
}

/** @param {{ name: string, count: number | null | undefined, more: boolean, href: string, state: string }} properties */
const Tile = ({ name, count, more, href, state }) =>
  html`<li><a class="tile" href=${href} data-state=${count ? state : undefined}><span class="count number">${count ?? "–"}${more ? "+" : ""}</span><span>${name}</span></a></li>`;

const endings = /** @type {const} */ (["failed", "cancelled", "completed"]);

/** Runs that have ended, hour by hour: as bars, and as a table. */
function Ends() {
  const { value, error, again } = useResource("/system/summary?hours=24");
  useAgainEvery(again, ENDS_AGAIN_MS);
  const hours = /** @type {any[]} */ (value?.ends ?? []);
  const most = Math.max(1, ...hours.map((hour) => endings.reduce((sum, status) => sum + hour[status], 0)));
  const words = (/** @type {any} */ hour) =>
    endings
      .filter((status) => hour[status] > 0)
      .map((status) => `${count(hour[status])}${hour[status] >= value.count_max ? " or more" : ""} ${status}`)
      .join(", ");
  const isIdle = hours.length > 0 && hours.every((hour) => words(hour) === "");
  return html`<section class="card" aria-labelledby="ends-heading"><h2 id="ends-heading">Ended, by the hour</h2>
    ${error !== null && html`<${Problem} error=${error} retry=${again} />`}
    ${isIdle && html`<${Empty}>No run has ended in the last 24 hours.</${Empty}>`}
    ${
      hours.length > 0 &&
      !isIdle &&
      html`<div class="ends" aria-hidden="true">${hours.map(
        (hour) =>
          html`<div key=${hour.from} title=${`From ${new Date(hour.from).toTimeString().slice(0, 5)}: ${words(hour) || "none"}`}>${endings.map(
            (status) =>
              html`<span key=${status} data-state=${status} style=${{ blockSize: `${(100 * hour[status]) / most}%` }}></span>`,
          )}</div>`,
      )}</div>
      <p class="muted legend">From <${Time} at=${hours[0].from} /> on <${Pill} state="completed" /><${Pill} state="failed" /><${Pill} state="cancelled" /></p>
      <details><summary>The same as a table</summary><div class="rows"><table><thead><tr><th scope="col">From</th><th scope="col">Completed</th><th scope="col">Failed</th><th scope="col">Cancelled</th></tr></thead>
      <tbody>${hours.filter(words).map(
        (hour) => html`<tr key=${hour.from}><th scope="row"><${Time} at=${hour.from} /></th>
          <td class="number" data-name="Completed">${count(hour.completed)}</td><td class="number" data-name="Failed">${count(hour.failed)}</td><td class="number" data-name="Cancelled">${count(hour.cancelled)}</td></tr>`,
      )}</tbody></table></div></details>`
    }
  </section>`;
}

/** @param {{ pools: Record<string, { capacity: number, in_use: number, waiting?: number }> }} properties */
const Pools = ({
  pools,
}) => html`<section class="card" aria-labelledby="pools-heading"><h2 id="pools-heading">Slots for commands</h2>
  <ul class="plain lines">${Object.entries(pools ?? {}).map(
    ([name, pool]) => html`<li key=${name}><span class="pool" dir="auto">${shown(name, 60)}</span>
      <${Bar} value=${pool.in_use} total=${pool.capacity} label=${`Slots in use of pool ${name}`} /><span class="muted number">${pool.in_use} of ${pool.capacity}</span></li>`,
  )}</ul></section>`;
