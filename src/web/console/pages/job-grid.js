// @ts-check
// The grid of a job: agents by its newest runs, a cell tells what the agent was in the run. Pages of agents are read as they come into
// sight, and again when a run of the job changes.

import { atMost } from "../../dashboard/dom.js";
import { duration } from "../../dashboard/format.js";
import { stateNames } from "../../dashboard/model.js";
import { get } from "../api.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { watch } from "../live.js";
import { Choice, Filters, Search } from "../parts/filters.js";
import { Empty, Pill, Problem, shown } from "../parts/pieces.js";
import { Time } from "../parts/time.js";
import { Room, useRows } from "../parts/virtual-rows.js";
import { parameter, to } from "../router.js";

const PAGE_SIZE = 200;
/** Rows left below those in the page when the next page is read. */
const AHEAD = 20;
const AGAIN_MS = 1_000;

const names = new Map([...stateNames, ["waiting", "Waiting"], ["paused", "Paused"]]);

/** @typedef {{ runs: any[], items: any[], next: string | null }} Grid */

/**
 * @param {string} jobId @param {string} text in the names of agents @param {string} only agents that were this
 * @returns {{ grid: Grid | null, error: unknown, more: () => void, again: () => void }}
 */
function useGrid(jobId, text, only) {
  const [state, setState] = useState(
    /** @type {{ grid: Grid | null, error: unknown }} */ ({ grid: null, error: null }),
  );
  const held = useRef(/** @type {Grid | null} */ (null));
  const reader = useMemo(() => {
    let isEnded = false;
    let isReading = false;
    let isStale = false;
    const read = async (/** @type {Grid | null} */ from) => {
      const page = await get(`/jobs/${encodeURIComponent(jobId)}/grid`, {
        q: text,
        state: only,
        page_size: PAGE_SIZE,
        page_token: from?.next ?? null,
      });
      const items = [...(from?.items ?? []), ...page.items];
      return /** @type {Grid} */ ({ runs: page.runs, items, next: page.next_page_token });
    };
    const show = (/** @type {() => Promise<Grid>} */ make) => async () => {
      isReading = true;
      const { grid, error } = await make().then(
        (grid) => ({ grid, error: null }),
        (error) => ({ grid: held.current, error }),
      );
      isReading = false;
      if (isEnded) return;
      held.current = grid;
      setState({ grid, error });
      if (isStale) again();
    };
    // As many pages as are shown: a page of an older walk is of its runs.
    const readAgain = show(async () => {
      isStale = false;
      let grid = await read(null);
      while (grid.next !== null && grid.items.length < (held.current?.items.length ?? 0))
        grid = await read(grid);
      return grid;
    });
    const readMore = show(() => read(held.current));
    const again = atMost(AGAIN_MS, () => {
      isStale = true;
      if (!isReading && !isEnded) void readAgain();
    });
    return {
      start() {
        isEnded = false;
        held.current = null;
        setState({ grid: null, error: null });
        void readAgain();
        // What was removed may have been one of its runs.
        const isOfJob = (/** @type {import("../live.js").Change} */ { changes: run }) =>
          run === null || run.job_id === jobId;
        const end = watch(["runs"], (changes) => {
          if (changes === null || changes.some(isOfJob)) again();
        });
        return () => {
          isEnded = true;
          end();
        };
      },
      again,
      more: () => {
        if (!isReading && held.current?.next) void readMore();
      },
    };
  }, [jobId, text, only]);
  useEffect(() => reader.start(), [reader]);
  return { ...state, more: reader.more, again: reader.again };
}

/** @param {{ jobId: string }} properties */
export function Grid({ jobId }) {
  const text = parameter("q");
  const only = parameter("state");
  const { grid, error, more, again } = useGrid(jobId, text, only);
  const rows = useRows(grid?.items.length ?? 0);
  const isNearEnd = grid !== null && grid.next !== null && rows.to + AHEAD >= grid.items.length;
  useEffect(() => {
    if (isNearEnd) more();
  }, [isNearEnd, rows.to, grid]);
  return html`<section class="card" aria-labelledby="grid-heading"><h2 id="grid-heading">Agents by runs</h2>
    <${Filters} label="Which agents are shown"><${Search} name="q" label="Agent contains" />
      <${Choice} name="state" label="Agents" any="All" values=${[["failed", "That failed in one of the runs"]]} /></${Filters}>
    ${error !== null && html`<${Problem} error=${error} retry=${again} />`}
    ${grid !== null && html`<${Table} grid=${grid} rows=${rows} none=${only ? "No agent like this failed in one of these runs." : text ? "No agent has this in its name." : "Its graph has no agents."} />`}
  </section>`;
}

/** @param {{ grid: Grid, rows: ReturnType<typeof useRows>, none: string }} properties */
function Table({ grid: { runs, items, next }, rows, none }) {
  const [{ row, column }, setAt] = useState({ row: 0, column: 0 });
  if (runs.length === 0)
    return html`<${Empty}>It has not run yet. Start it below, and its agents are shown here.</${Empty}>`;
  if (items.length === 0) return html`<${Empty}>${none}</${Empty}>`;
  const longestMs = Math.max(1, ...runs.map(msOf));
  const seen = new Set(items.slice(rows.from, rows.to).flatMap(({ states }) => states));
  // One cell is reached by Tab, the others from it by arrow keys.
  const isAtShown = row >= rows.from && row < rows.to;
  const walk = (/** @type {KeyboardEvent} */ event) => {
    const [down, right] = steps.get(event.key) ?? [0, 0];
    const cell = /** @type {HTMLElement} */ (event.target).closest("[data-cell]");
    if ((down === 0 && right === 0) || cell === null) return;
    event.preventDefault();
    const [y = 0, x = 0] = (cell.getAttribute("data-cell") ?? "").split(" ").map(Number);
    const next = document.querySelector(`[data-cell="${y + down} ${x + right}"]`);
    if (next instanceof HTMLElement) next.focus();
  };
  return html`<p class="legend muted">${[...names].filter(([state]) => seen.has(state)).map(([state, name]) => html`<${Pill} key=${state} state=${state} name=${name} />`)}</p>
    <div class="virtual grid" role="group" aria-label="Agents by runs, the newest run first; arrow keys walk from cell to cell" tabindex="0" onScroll=${rows.onScroll} onKeyDown=${walk}>
    <table aria-rowcount=${next === null ? items.length + 1 : -1}>
      <thead><tr aria-rowindex="1"><th scope="col">Agent</th>
        ${runs.map((run) => html`<th key=${run.run_id} scope="col"><${Head} run=${run} longestMs=${longestMs} /></th>`)}</tr></thead>
      <tbody>
        <${Room} px=${rows.beforePx} />
        ${items.slice(rows.from, rows.to).map((agent, place) => {
          const y = rows.from + place;
          const isTabRow = isAtShown ? y === row : place === 0;
          return html`<tr key=${agent.agent_id} aria-rowindex=${y + 2}>
            <th scope="row" dir="auto" title=${shown(agent.agent_id, 200)}>${shown(agent.agent_id, 60)}</th>
            ${agent.states.map((/** @type {string | null} */ state, /** @type {number} */ x) => {
              const run = runs[x];
              if (run === undefined) return null;
              return html`<td key=${run.run_id}>${
                state === null
                  ? html`<span class="muted">–<span class="visually-hidden"> Not in this run</span></span>`
                  : html`<a class="pill cell" data-state=${state} data-cell=${`${y} ${x}`} tabindex=${isTabRow && x === Math.min(column, runs.length - 1) ? 0 : -1}
                      href=${to(["runs", run.run_id, "events"], { agent: agent.agent_id })} title=${`${shown(agent.agent_id, 60)}: ${names.get(state) ?? state}`}
                      onFocus=${() => setAt({ row: y, column: x })}><span class="visually-hidden">${names.get(state) ?? state}</span></a>`
              }</td>`;
            })}</tr>`;
        })}
        <${Room} px=${rows.afterPx} />
      </tbody></table></div>`;
}

/** @type {ReadonlyMap<string, readonly [number, number]>} */
const steps = new Map([
  ["ArrowDown", [1, 0]],
  ["ArrowUp", [-1, 0]],
  ["ArrowRight", [0, 1]],
  ["ArrowLeft", [0, -1]],
]);

/** @param {any} run */
const msOf = ({ started_at: from, finished_at: until }) =>
  from === null ? 0 : Math.max(0, (until === null ? Date.now() : Date.parse(until)) - Date.parse(from));

/** A run: its status, and how long it took as a bar. @param {{ run: any, longestMs: number }} properties */
function Head({ run, longestMs }) {
  const ms = msOf(run);
  const took = run.started_at === null ? "not started" : duration(ms);
  return html`<a class="column" data-state=${run.status} href=${to(["runs", run.run_id])} title=${`${run.run_id}, ${took}`}>
    <span class="length" aria-hidden="true"><span style=${{ blockSize: `${Math.max(6, Math.round((100 * ms) / longestMs))}%` }}></span></span>
    <${Pill} state=${run.status} /><span class="visually-hidden">${` ${took}, created `}<${Time} at=${run.created_at} /></span></a>`;
}
