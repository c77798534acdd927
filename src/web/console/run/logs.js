// @ts-check
// The log of the run. The server searches all of it; the page holds a part (./log-window.js). Which part is in the
// address: the end, or what is around the line that is linked to.

import { count } from "../../dashboard/format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Choice, Filters, Search } from "../parts/filters.js";
import { Empty, Problem } from "../parts/pieces.js";
import { parameter, setQuery, to } from "../router.js";
import { download } from "./log-download.js";
import { Histogram } from "./log-histogram.js";
import { Rows } from "./log-rows.js";
import { LogWindow } from "./log-window.js";
import { Range, rangeOf } from "./range.js";

const AGENTS_MAX = 1_000;

/** @type {[string, string][]} */
const levels = [
  ["info", "Info and above"],
  ["warn", "Warnings and errors"],
  ["error", "Errors"],
];
const streams = ["stdout", "stderr", "worker", "runtime"];
/** Every parameter of the address that leaves lines out, with nothing in it. */
const unfiltered = { text: "", level: "", agent: "", stream: "", since: "", until: "" };

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const filter = {
    text: parameter("text"),
    level: parameter("level"),
    agent_id: parameter("agent"),
    stream: parameter("stream"),
    ...rangeOf(),
  };
  const agents = [...source.model.agents.keys()].slice(0, AGENTS_MAX);
  const { agent_id: agent } = filter;
  const choices = agent === "" || agents.includes(agent) ? agents : [agent, ...agents];
  return html`<section class="card" aria-labelledby="logs-heading">
    <h2 id="logs-heading">Logs</h2>
    <${Filters} label="Which lines are shown">
      <${Search} name="text" label="Contains" />
      <${Choice} name="level" label="Level" any="Everything" values=${levels} />
      <${Choice} name="stream" label="Stream" any="All streams" values=${streams} />
      <${Choice} name="agent" label="Agent" any="All agents" values=${choices} />
      <${Range} />
    </${Filters}>
    <${Lines} key=${JSON.stringify(filter)} source=${source} filter=${filter} />
  </section>`;
}

/** @param {{ source: import("./run-source.js").RunSource, filter: Record<string, string> }} properties */
function Lines({ source, filter }) {
  const { id } = source;
  const [, setTimes] = useState(0);
  const log = useRef(/** @type {LogWindow | null} */ (null));
  log.current ??= new LogWindow(id, filter, () => setTimes((times) => times + 1));
  const view = log.current;
  const marked = /^[1-9]\d{0,14}$/.test(parameter("line")) ? Number(parameter("line")) : null;
  const isFiltered = Object.values(filter).some((value) => value !== "");
  const isWrapped = parameter("wrap") !== "0";
  /** How many lines are saved already; null while none are. */
  const [saved, setSaved] = useState(/** @type {number | null} */ (null));
  const saving = useRef(new AbortController());
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));

  useEffect(
    () => () => {
      view.end();
      saving.current.abort();
    },
    [],
  );
  useEffect(() => {
    const isThere = marked === null ? view.opened > 0 && view.newer === null : view.has(marked);
    if (!isThere) void view.open(marked);
  }, [marked]);

  const whole = (/** @type {number} */ line) => to(["runs", id, "logs"], { line: String(line) });
  /** What a filter shows is there again when the reader goes back. @param {number} line */
  const open = (line) => {
    setQuery({ line: String(line) }, { replace: isFiltered });
    if (isFiltered) setQuery(unfiltered);
  };
  /** @param {string} [since] an ISO time; without it: the first line of all; where none is as late: the end */
  const jump = async (since) => {
    const first = await view.firstSince(since);
    setQuery({ line: first === null ? "" : String(first) });
  };
  const begin = () => void jump().catch(setProblem);
  const end = () => {
    if (marked !== null) setQuery({ line: "" });
    else void view.open(null);
  };
  const save = async () => {
    if (saved !== null) return saving.current.abort();
    saving.current = new AbortController();
    const { signal } = saving.current;
    setSaved(0);
    await download(id, filter, signal, setSaved).catch((fault) => signal.aborted || setProblem(fault));
    setSaved(null);
  };
  const error = view.error ?? problem;
  const again = () => {
    setProblem(null);
    void view.again(marked);
  };
  if (error !== null) return html`<${Problem} error=${error} retry=${again} />`;
  const isWhole = view.opened > 0 && !view.isReading && view.older === null && view.newer === null;
  return html`
    <${Histogram} source=${source} filter=${filter} onJump=${(/** @type {string} */ since) => void jump(since).catch(setProblem)} />
    <div class="actions below">
      <button type="button" onClick=${begin}>First line</button>
      <button type="button" onClick=${end}>Newest line</button>
      <label class="inline"><input type="checkbox" checked=${isWrapped} onChange=${() => setQuery({ wrap: isWrapped ? "0" : "" })} /> Wrap lines</label>
      <button type="button" onClick=${() => void save()}>${saved === null ? "Download these lines" : `Stop: ${count(saved)} lines so far`}</button>
    </div>
    ${marked !== null && !view.isReading && view.lines.length > 0 && !view.has(marked) && html`<p class="muted">The line that is linked to is not among these.${isFiltered && html` <a href=${whole(marked)}>Show it without the filters</a>`}</p>`}
    ${view.lines.length === 0 && html`<${Empty}>${isWhole ? "No line passes these filters." : "Looking for lines…"}</${Empty}>`}
    <p id="log-help" class="visually-hidden">Arrow keys move from line to line, Home and End to the first and the newest one; Enter shows what was logged around a line.</p>
    ${view.lines.length > 0 && html`<${Rows} log=${view} marked=${marked} isWrapped=${isWrapped} onStart=${begin} onEnd=${end} onOpen=${open} hrefOf=${whole} />`}`;
}
