// @ts-check
// One run: what it is and what can be done with it, and its tabs.

import { progressOf } from "../../dashboard/model.js";
import { patch } from "../api.js";
import { html, useEffect, useMemo, useState } from "../html.js";
import { Action } from "../parts/dialog.js";
import { lazily } from "../parts/lazily.js";
import { announce, Bar, Facts, Pill, Problem, shown, stateOf } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { Elapsed, Time } from "../parts/time.js";
import { to } from "../router.js";
import { isGuest, session } from "../session.js";
import { rangeOf } from "./range.js";
import { RunSource } from "./run-source.js";
import { shownRun } from "./shown-run.js";

const Shares = lazily(async () => (await import("./share.js")).Shares);

/** @type {readonly { tab: string, name: string, load: () => Promise<{ Tab: any }> }[]} */
const tabs = [
  { tab: "overview", name: "Overview", load: () => import("./overview.js") },
  { tab: "graph", name: "Graph", load: () => import("./graph.js") },
  { tab: "timeline", name: "Timeline", load: () => import("./timeline.js") },
  { tab: "logs", name: "Logs", load: () => import("./logs.js") },
  { tab: "events", name: "Events", load: () => import("./events.js") },
  { tab: "messages", name: "Messages", load: () => import("./messages.js") },
  { tab: "files", name: "Files", load: () => import("./files.js") },
  { tab: "dead-letters", name: "Dead letters", load: () => import("./dead-letters.js") },
  { tab: "rerun", name: "Run again", load: () => import("./rerun.js") },
  { tab: "raw", name: "Raw", load: () => import("./raw.js") },
];

const views = new Map(tabs.map(({ tab, load }) => [tab, lazily(async () => (await load()).Tab)]));
/** They show the part of the time that is chosen in the timeline. */
const ranged = new Set(["timeline", "logs", "events"]);

const connectionNames = new Map(
  Object.entries({
    connecting: "Connecting",
    live: "Live",
    reconnecting: "Reconnecting",
    ended: "All events are here",
    gone: "The run was deleted",
    refused: "Not let in",
  }),
);

/** @param {{ id: string, tab?: string }} properties */
export function Page({ id, tab = "overview" }) {
  const source = useMemo(() => new RunSource(id), [id]);
  useEffect(() => {
    shownRun.value = source;
    const end = source.start();
    return () => {
      shownRun.value = null;
      end();
    };
  }, [source]);
  const { run, error } = source;
  useEffect(() => {
    if (run !== null) announce(`The run is ${run.status}`);
  }, [run?.status]);
  if (run === null) {
    return html`<${Screen} title="Run" heading=${html`<p class="muted"><code>${id}</code></p>`}>
      ${error === null ? null : html`<${Problem} error=${error} retry=${() => void source.again()} />`}
    </${Screen}>`;
  }
  const title = shown(run.job_name, 200) || id;
  return html`<${Screen} title=${title} heading=${html`<${Naming} run=${run} source=${source} />`} actions=${html`<${Actions} run=${run} again=${() => source.again()} />`}>
    <${Head} source=${source} />
    <div class="split">
      <nav class="tabs" aria-label="Views of the run"><ul class="plain">${tabs
        .filter((one) => one.tab !== "rerun" || !isGuest())
        .map(
          (one) => html`<li key=${one.tab}>
        <a href=${to(one.tab === "overview" ? ["runs", id] : ["runs", id, one.tab], ranged.has(one.tab) ? rangeOf() : {})} aria-current=${one.tab === tab ? "page" : undefined}>${one.name}</a>
      </li>`,
        )}</ul></nav>
      <div class="tab"><${Opened} key=${tab} tab=${tab} source=${source} /></div>
    </div>
  </${Screen}>`;
}

/** @param {{ run: any, source: RunSource }} properties */
const Naming = ({ run, source }) => html`<p class="muted line"><code>${run.run_id}</code>
  <span data-connection=${source.connection}>${connectionNames.get(source.connection) ?? ""}</span></p>`;

/** @param {{ source: RunSource }} properties */
function Head({ source }) {
  const { run, model } = source;
  const { percent, done, total } = model === null ? { percent: 0, done: 0, total: 0 } : progressOf(model);
  return html`<section class="card summary" data-status=${run.status} aria-label="State of the run">
    <${Facts} items=${[
      ["Status", html`<${Pill} ...${stateOf(run)} />`],
      ["Duration", html`<${Elapsed} from=${run.started_at} to=${run.finished_at} />`],
      ["Created", html`<${Time} at=${run.created_at} />`],
      ["Trigger", run.trigger.kind],
      [
        "Repeats",
        run.rerun_of &&
          !isGuest() &&
          html`<a href=${to(["compare"], { a: run.rerun_of, b: run.run_id })}>Compare with what it repeats</a>`,
      ],
      ["Priority", run.priority],
      ["Trace", html`<code>${run.trace_id}</code>`],
      ["Job", !isGuest() && html`<a href=${to(["jobs", run.job_id])}>Its job</a>`],
    ]} />
    <div class="meter"><${Bar} value=${percent} total=${100} label="Agents that are done" state=${run.status} /><p class="muted number">${done} of ${total} agents done</p></div>
    ${run.status_reason && run.status !== "failed" && html`<p class="muted" dir="auto">${shown(run.status_reason, 400)}</p>`}
  </section>`;
}

/** @param {{ run: any, again: () => Promise<void> }} properties */
function Actions({ run, again }) {
  const isOpen = !["completed", "failed", "cancelled"].includes(run.status);
  const control = (/** @type {string} */ desired) => async () => {
    await patch(`/runs/${encodeURIComponent(run.run_id)}`, { desired_state: desired });
    await again();
  };
  if (isGuest()) return null;
  return html`
    ${isOpen && run.status !== "paused" && html`<${Action} label="Pause" act=${control("paused")} />`}
    ${run.status === "paused" && html`<${Action} label="Resume" act=${control("running")} />`}
    ${isOpen && html`<${Action} label="Cancel" danger act=${control("cancelled")} question="Cancelling ends what the run does. It cannot be undone, and what it has done outside stays." />`}
    <a class="button" href=${to(["runs", run.run_id, "rerun"])}>Run again</a>
    <a class="button" href=${to(["compare"], { a: run.run_id })}>Compare</a>
    <${Share} runId=${run.run_id} />`;
}

/** @param {{ tab: string, source: RunSource }} properties */
function Opened({ tab, source }) {
  const View = views.get(tab);
  if (View === undefined) return html`<p>The run has no view of this name.</p>`;
  return source.model === null ? null : html`<${View} source=${source} />`;
}

/** @param {{ runId: string }} properties */
function Share({ runId }) {
  const [isOpen, setOpen] = useState(false);
  // Without a token everybody who reaches the gateway sees every run.
  if (!session.value.needs_token) return null;
  return html`<button type="button" onClick=${() => setOpen(true)}>Share</button>
    ${isOpen && html`<${Shares} runId=${runId} close=${() => setOpen(false)} />`}`;
}
