// @ts-check
// The run over time: a row for each agent, a bar for each attempt and what it waited for. Agents that do the same share a
// row, as they share a box of the graph. The table below says the same.

import { atMost } from "../../dashboard/dom.js";
import { count } from "../../dashboard/format.js";
import { groupName } from "../../dashboard/graph-view.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { lazily } from "../parts/lazily.js";
import { Empty } from "../parts/pieces.js";
import { parameter, setQuery } from "../router.js";
import { nowOf } from "./graph-figures.js";
import { Layout } from "./layout.js";
import { Range, rangeOf, setRange } from "./range.js";
import { criticalPath, scaleOf } from "./time-scale.js";
import { draw, HEAD_PX, namePx, ROW_PX } from "./timeline-picture.js";

/** @typedef {import("./timeline-picture.js").Row} Row */

const HEIGHT_PX_MAX = 560;
/** A click that trembles marks no range. */
const DRAG_PX = 6;
/** Rows are made anew this often at most, however fast events come. */
const ROWS_MS = 500;

const Table = lazily(async () => (await import("./timeline-table.js")).Table);

/** @type {readonly [import("./spans.js").SpanKind, string][]} */
const kinds = [
  ["running", "Working"],
  ["failed", "An attempt that failed"],
  ["queued", "Waiting for a slot"],
  ["backoff", "Waiting to try again"],
  ["waiting", "Waiting for a person"],
];

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const version = source.version;
  const { spans, run, model } = source;
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [width, setWidth] = useState(0);
  const [groups, setGroups] = useState(/** @type {string[][]} */ ([]));
  const [rows, setRows] = useState(/** @type {Row[]} */ ([]));
  const [drag, setDrag] = useState(/** @type {readonly [number, number] | null} */ (null));
  const [scrollTop, setScrollTop] = useState(0);
  const [isTable, setTable] = useState(false);
  const opened = parameter("open").split(",").filter(Boolean).map(decodeURIComponent);
  const { since, until } = rangeOf();
  const nowMs = nowOf(source);
  const fromMs = since === undefined ? spans.firstMs : Date.parse(since);
  const toMs = until === undefined ? nowMs : Date.parse(until);

  useEffect(() => {
    const layout = new Layout((plan) =>
      setGroups(plan.boxes.map((/** @type {any} */ { members }) => members)),
    );
    layout.ask(model, false);
    return () => layout.end();
  }, [model.shape]);
  const latest = useRef(() => {});
  latest.current = () => setRows(rowsOf(source, groups, opened));
  const again = useRef(atMost(ROWS_MS, () => latest.current()));
  useEffect(() => again.current(), [version]);
  useEffect(() => latest.current(), [groups, opened.join()]);
  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (box == null) return;
    const watching = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    watching.observe(box);
    // What goes on grows, also without events.
    const timer = run.finished_at === null ? setInterval(() => latest.current(), 1_000) : undefined;
    return () => {
      watching.disconnect();
      clearInterval(timer);
    };
  }, [rows.length === 0, run.finished_at]);
  const height = Math.min(HEIGHT_PX_MAX, HEAD_PX + rows.length * ROW_PX);
  const scale = scaleOf(
    rows.flatMap((row) => row.spans),
    fromMs,
    toMs,
  );
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    draw(canvas.current, {
      rows,
      scale,
      originMs: spans.firstMs,
      fromMs,
      toMs,
      width,
      height,
      scrollTop,
      drag,
    });
  }, [rows, width, scrollTop, drag, since, until, height]);

  const pressed = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
    setDrag([event.offsetX, event.offsetX]);
  };
  const moved = (/** @type {PointerEvent} */ { offsetX }) => drag !== null && setDrag([drag[0], offsetX]);
  const released = (/** @type {PointerEvent} */ { offsetX, offsetY }) => {
    if (drag === null) return;
    setDrag(null);
    const left = namePx(width);
    const moment = (/** @type {number} */ x) =>
      scale.msAt(Math.min(1, Math.max(0, (x - left) / (width - left - 1))));
    if (Math.abs(offsetX - drag[0]) >= DRAG_PX) return setRange(...ordered(moment(drag[0]), moment(offsetX)));
    const row = rows[Math.floor((offsetY - HEAD_PX + scrollTop) / ROW_PX)];
    if (row?.isGroup) toggle(opened, row.id);
  };
  if (rows.length === 0)
    return html`<section class="card"><h2>Timeline</h2><${Empty}>No command has run yet.</${Empty}></section>`;
  return html`<section class="card" aria-labelledby="timeline-heading">
    <h2 id="timeline-heading">Timeline</h2>
    <${Range} />
    <ul class="plain legend">${kinds.map(([kind, name]) => html`<li key=${kind} data-kind=${kind}>${name}</li>`)}<li data-kind="path">On the critical path</li></ul>
    <div class="timeline" tabindex="0" role="group" aria-label="The run over time; the table below says the same" onScroll=${(/** @type {any} */ event) => setScrollTop(event.currentTarget.scrollTop)}>
      <canvas ref=${canvas} aria-hidden="true" onPointerDown=${pressed} onPointerMove=${moved} onPointerUp=${released}></canvas>
      <div style=${{ blockSize: `${HEAD_PX + rows.length * ROW_PX - height}px` }}></div>
    </div>
    <p class="muted">Drag to choose a part of the time: logs and events show the same part.</p>
    <details onToggle=${(/** @type {any} */ event) => setTable(event.currentTarget.open)}><summary>The same as a table</summary>${isTable && html`<${Table} kinds=${kinds} source=${source} rows=${rows} opened=${opened} toggle=${(/** @type {string} */ id) => toggle(opened, id)} nowMs=${nowMs} />`}</details>
  </section>`;
}

/** @param {number} a @param {number} b @returns {[number, number]} */
const ordered = (a, b) => (a < b ? [a, b] : [b, a]);

/** @param {string[]} opened @param {string} id */
function toggle(opened, id) {
  const now = opened.includes(id) ? opened.filter((one) => one !== id) : [...opened, id];
  setQuery({ open: now.map(encodeURIComponent).join() });
}

/**
 * @param {import("./run-source.js").RunSource} source @param {string[][]} groups agents that share a box
 * @param {string[]} opened groups, by their first agents @returns {Row[]}
 */
function rowsOf(source, groups, opened) {
  const { byAgent } = source.spans;
  const { agents, edges } = source.model;
  // What runs beside the graph, as a dashboard does, holds up nothing.
  const ofGraph = new Map([...byAgent].filter(([agent]) => agents.has(agent)));
  const critical = criticalPath(ofGraph, edges.values(), nowOf(source));
  /** @type {(id: string) => Row} */
  const single = (id) => ({
    id,
    name: id,
    members: [id],
    spans: byAgent.get(id) ?? [],
    isCritical: critical.has(id),
    isGroup: false,
    isOpen: false,
  });
  const placed = new Set(groups.flat());
  const others = [...byAgent.keys()].filter((id) => !placed.has(id)).map((id) => [id]);
  return [...groups, ...others].flatMap((group) => {
    const members = group.filter((id) => byAgent.has(id));
    const [id] = members;
    if (id === undefined) return [];
    if (members.length === 1) return [single(id)];
    const isOpen = opened.includes(id);
    const name = `${groupName(members.map((one) => agents.get(one) ?? { id: one, role: "" }))} × ${count(members.length)}`;
    /** @type {Row} */
    const row = {
      id,
      name,
      members,
      spans: isOpen
        ? []
        : members.flatMap((one) => byAgent.get(one) ?? []).sort((a, b) => a.fromMs - b.fromMs),
      isCritical: members.some((one) => critical.has(one)),
      isGroup: true,
      isOpen,
    };
    return isOpen ? [row, ...members.map(single)] : [row];
  });
}
