// @ts-check
// Why a run failed, or an agent of a run that goes on without it: the message that it failed at, its last words, its earlier attempts,
// how often that has happened, and what can be pressed.

import { isObject, textOf } from "../../dashboard/event.js";
import { duration, timeOfDay } from "../../dashboard/format.js";
import { get, post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { lazily } from "../parts/lazily.js";
import { useResource } from "../parts/list.js";
import { Copy, Facts, Json, shown } from "../parts/pieces.js";
import { Time } from "../parts/time.js";
import { go, to } from "../router.js";
import { isGuest } from "../session.js";
import { styledParts } from "./ansi.js";

const Resend = lazily(async () => (await import("../parts/letter-change.js")).Resend);

const LOG_LINES = 20;
const LETTERS = 50;
const RUNS = 20;

/**
 * The failure to show: the run's, or the last one of an agent that has not got over it.
 *
 * @param {import("./run-source.js").RunSource} source @returns {any} null when nothing has failed
 */
export function failureOf({ run, model, events }) {
  const failure = model.failure ?? run.failure;
  if (isObject(failure)) return failure;
  if (!model.tally.get("failed")) return null;
  const isFailed = (/** @type {any} */ { type, agent_id: agent, error }) =>
    type === "agent_failed" && isObject(error) && model.agents.get(agent)?.state === "failed";
  return events.findLast(isFailed)?.error ?? null;
}

/** @param {{ source: import("./run-source.js").RunSource, failure: any }} properties */
export function Failure({ source, failure }) {
  const { run, id } = source;
  const details = isObject(failure.details) ? failure.details : {};
  const agent = textOf(details.agent_id);
  const path = `/runs/${encodeURIComponent(id)}`;
  const letters = useResource(agent === "" ? null : `${path}/dead-letters?page_size=${LETTERS}`);
  const runs = useResource(
    isGuest() ? null : `/runs?job_id=${encodeURIComponent(run.job_id)}&page_size=${RUNS}`,
  );
  const letter = letters.value?.items.find(
    (/** @type {any} */ { agent_id: to, reason }) => to === agent && reason === "processing_failed",
  );
  const attempts = attemptsOf(source.events, agent);
  const history = historyOf(runs.value?.items ?? [], failure.code);
  const tried = [details.attempt, details.max_attempts].filter(Number.isInteger).join(" of ");
  const message = shown(details.message);
  const desc = shown(failure.desc);
  // Of a long message the description is the beginning.
  const lead = desc === "" || message.startsWith(desc.replace(/…$/, "")) ? message || desc : desc;
  const issue = async () => {
    const [job, health] = await Promise.all([
      get(`/jobs/${encodeURIComponent(run.job_id)}`).catch(() => null),
      get("/health").catch(() => null),
    ]);
    const bundleId = job?.source.bundle_id;
    const bundle =
      bundleId === undefined ? null : await get(`/bundles/${encodeURIComponent(bundleId)}`).catch(() => null);
    const version = health?.version ?? "";
    const { issueOf } = await import("./issue.js");
    return issueOf({ run, failure, attempts, history, input: letter?.message.body, job, bundle, version });
  };
  return html`<section class="card failure" aria-labelledby="failure-heading">
    <h2 id="failure-heading">${titleOf(run)}</h2>
    <p class="lead" dir="auto">${lead}</p>
    ${message !== "" && message !== lead && html`<p class="wrapped" dir="auto">${message}</p>`}
    ${shown(failure.remediation) !== "" && html`<p><strong>What to do: </strong>${shown(failure.remediation)}</p>`}
    <div class="actions below">
      ${!isGuest() && run.finished_at !== null && html`<${Action} label="Re-run" act=${() => rerun(run)} />`}
      ${letter?.status === "open" && run.finished_at === null && !isGuest() && html`<${Resend} letter=${letter} again=${letters.again} />`}
      <${Copy} text=${issue}>Copy as issue</${Copy}>
    </div>
    <${Facts} items=${[
      ["Code", html`<code>${shown(failure.code, 80)}</code>`],
      ["Agent", agent && html`<a href=${to(["runs", id, "logs"], { agent })}>${shown(agent, 80)}</a>`],
      ["Attempt", tried],
      ["Exit code", Number.isInteger(details.exit_code) ? String(details.exit_code) : ""],
      ["Signal", shown(details.signal, 20)],
      ["When", html`<${Time} at=${failure.occurred_at} />`],
      [
        "Before",
        history !== "" && html`<a href=${to(["runs"], { job: run.job_id, status: "failed" })}>${history}</a>`,
      ],
    ]} />
    ${letter !== undefined && html`<h3>The message that it failed at</h3><${Json} value=${letter.message.body} label="The message that it failed at" />`}
    <${LastWords} id=${id} failure=${failure} agent=${agent} details=${details} />
    <${Attempts} attempts=${attempts} last=${details.attempt} />
  </section>`;
}

/** @param {any} run */
const titleOf = ({ status, finished_at: end }) => {
  if (status === "failed") return "What went wrong";
  return end === null
    ? "An agent has failed, and the run goes on"
    : "An agent has failed, and the run ended without it";
};

/** @param {any} run */
async function rerun({ run_id: id, job_id: jobId }) {
  const { run_id: next } = await post(`/jobs/${encodeURIComponent(jobId)}/runs`, { rerun_of: id });
  go(to(["runs", next]));
}

/**
 * How often the job has failed like this of late. @param {any[]} runs newest first @param {string} code @returns {string} "" for nothing to tell
 */
function historyOf(runs, code) {
  const ended = runs.filter(({ finished_at: end }) => end !== null);
  const alike = ended.filter(({ failure }) => failure?.code === code);
  return alike.length === 0 || ended.length < 2
    ? ""
    : `Failed ${alike.length} of its last ${ended.length} runs with this code`;
}

/** @typedef {{ attempt: number, at: string, duration: string, code: string, message: string }} Attempt */

/**
 * The attempts of the task that the agent failed at last, among the events that the page holds.
 *
 * @param {any[]} events @param {string} agent @returns {readonly Attempt[]}
 */
function attemptsOf(events, agent) {
  const failed = events.filter(
    ({ type, agent_id: of }) =>
      of === agent && (type === "sandbox_job_failed" || type === "executor_interrupted"),
  );
  const task = failed.at(-1)?.payload?.task;
  return failed
    .filter(({ payload }) => payload?.task === task)
    .map(({ type, timestamp, payload, error }) => ({
      attempt: payload.attempt,
      at: timestamp,
      duration: Number.isFinite(payload.duration_ms) ? duration(payload.duration_ms) : "",
      code: textOf(error?.code) || type,
      message: textOf(error?.desc),
    }));
}

/** @param {{ attempts: readonly Attempt[], last: unknown }} properties */
function Attempts({ attempts, last }) {
  if (attempts.length < 2) return null;
  const missing = Number(last) - attempts.length;
  return html`<h3>Its attempts</h3>
    <div class="rows" tabindex="0" role="group" aria-label="Its attempts"><table>
      <thead><tr><th scope="col" class="tight">Attempt</th><th scope="col">Ended</th><th scope="col">Took</th><th scope="col">Code</th><th scope="col">What it says</th></tr></thead>
      <tbody>${attempts.map(
        (one) => html`<tr key=${one.at}><th scope="row" class="tight" data-name="Attempt">${one.attempt}</th>
          <td class="tight" data-name="Ended"><${Time} at=${one.at} /></td><td class="tight" data-name="Took">${one.duration || "–"}</td>
          <td class="tight" data-name="Code"><code>${shown(one.code, 80)}</code></td><td dir="auto">${shown(one.message, 300)}</td></tr>`,
      )}</tbody></table></div>
    ${missing > 0 && html`<p class="muted">Earlier ones are too far back in the run's events.</p>`}`;
}

/** The end of stderr: lines of the log, which lead there, or what the failure holds of it. @param {{ id: string, failure: any, agent: string, details: any }} properties */
function LastWords({ id, failure, agent, details }) {
  const query = {
    agent_id: agent,
    stream: "stderr",
    until_id: textOf(failure.event_id),
    order: "desc",
    page_size: String(LOG_LINES),
  };
  const tail = shown(details.stderr_tail);
  const log = useResource(
    tail === "" ? null : `/runs/${encodeURIComponent(id)}/logs?${new URLSearchParams(query)}`,
  );
  if (tail === "" || (log.value === null && log.error === null)) return null;
  const lines = (log.value?.items ?? [])
    .filter((/** @type {any} */ { attempt }) => attempt === details.attempt)
    .reverse();
  return html`<h3>The end of what it printed to stderr</h3>
    ${
      lines.length === 0
        ? html`<pre tabindex="0" role="group" aria-label="The end of stderr" dir="auto">${tail}</pre>`
        : html`<div class="last-words" tabindex="0" role="group" aria-label="The end of stderr">${lines.map(
            (
              /** @type {any} */ line,
            ) => html`<p key=${line.id}><a href=${to(["runs", id, "logs"], { line: String(line.id) })} title="Open the log at this line">${timeOfDay(line.ts)}</a>
              <span dir="auto">${styledParts(line.message).map(
                ({ text, styles }) =>
                  html`<span class=${styles.map((style) => `ansi-${style}`).join(" ")}>${shown(text)}</span>`,
              )}</span></p>`,
          )}</div>`
    }`;
}
