// @ts-check
// The run over time: a row for each agent, a bar for each attempt and what it waited for. The table below says the same.

import { clean, duration, ends } from "../../dashboard/format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Empty, shown } from "../parts/pieces.js";
import { to } from "../router.js";
import { colourReader } from "./colours.js";
import { scaleOf, totalsOf } from "./spans.js";

const ROWS_MAX = 500;
const ROW_PX = 22;
const BAR_PX = 12;
const HEAD_PX = 24;
const NAME_SHARE = 0.2;

/** @type {readonly [import("./spans.js").SpanKind, string][]} */
const kinds = [
  ["running", "Working"],
  ["failed", "An attempt that failed"],
  ["queued", "Waiting for a slot"],
  ["backoff", "Waiting to try again"],
  ["waiting", "Waiting for a person"],
];
const colours = {
  running: "--running",
  failed: "--failed",
  queued: "--quiet",
  backoff: "--retrying",
  waiting: "--waiting",
};

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  void source.version;
  const { spans, run } = source;
  const [width, setWidth] = useState(0);
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const rows = [...spans.byAgent].slice(0, ROWS_MAX);
  const lastMs = run.finished_at === null ? Date.now() : spans.lastMs;
  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (box == null) return;
    const watching = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    watching.observe(box);
    return () => watching.disconnect();
  }, [rows.length === 0]);
  useEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, rows, width, spans.firstMs, lastMs);
  });
  useEffect(() => {
    if (run.finished_at !== null) return;
    // What goes on grows, also without events.
    const timer = setInterval(
      () =>
        canvas.current &&
        draw(
          canvas.current,
          [...spans.byAgent].slice(0, ROWS_MAX),
          canvas.current.clientWidth,
          spans.firstMs,
          Date.now(),
        ),
      1_000,
    );
    return () => clearInterval(timer);
  }, [run.finished_at]);
  if (rows.length === 0)
    return html`<section class="card"><h2>Timeline</h2><${Empty}>No command has run yet.</${Empty}></section>`;
  return html`<section class="card" aria-labelledby="timeline-heading">
    <h2 id="timeline-heading">Timeline</h2>
    <ul class="plain legend">${kinds.map(([kind, name]) => html`<li key=${kind} data-kind=${kind}>${name}</li>`)}</ul>
    <div class="timeline"><canvas ref=${canvas} role="img" aria-label="The run over time; the table below says the same"></canvas></div>
    ${spans.byAgent.size > ROWS_MAX && html`<p class="muted">The first ${ROWS_MAX} agents are shown.</p>`}
    <details><summary>The same as a table</summary><div class="rows"><table>
      <thead><tr><th scope="col">Agent</th>${kinds.map(([kind, name]) => html`<th key=${kind} scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.map(([agent, list]) => {
        const totals = totalsOf(list, lastMs);
        return html`<tr key=${agent}><th scope="row"><a href=${to(["runs", source.id, "logs"], { agent })} dir="auto">${shown(agent, 80)}</a></th>
          ${kinds.map(([kind, name]) => html`<td key=${kind} class="number" data-name=${name}>${totals[kind] === undefined ? "–" : duration(totals[kind])}</td>`)}</tr>`;
      })}</tbody></table></div></details>
  </section>`;
}

/**
 * @param {HTMLCanvasElement} canvas @param {[string, import("./spans.js").Span[]][]} rows
 * @param {number} width @param {number} firstMs @param {number} lastMs
 */
function draw(canvas, rows, width, firstMs, lastMs) {
  const height = HEAD_PX + rows.length * ROW_PX;
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.setProperty("inline-size", `${width}px`);
  canvas.style.setProperty("block-size", `${height}px`);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  const colour = colourReader(canvas);
  const left = Math.max(80, width * NAME_SHARE);
  const scale = scaleOf(
    rows.flatMap(([, spans]) => spans),
    firstMs,
    lastMs,
  );
  const x = (/** @type {number} */ ms) => left + scale.at(ms) * (width - left - 1);
  context.font = `12px ${style.fontFamily}`;
  context.textBaseline = "middle";
  for (const { fromMs, toMs } of scale.folds) {
    context.fillStyle = colour("--line");
    context.globalAlpha = 0.6;
    context.fillRect(x(fromMs), HEAD_PX, x(toMs) - x(fromMs), height - HEAD_PX);
    context.globalAlpha = 1;
    context.fillStyle = colour("--muted");
    context.textAlign = "center";
    context.fillText(duration(toMs - fromMs), Math.min(width - 24, (x(fromMs) + x(toMs)) / 2), HEAD_PX / 2);
  }
  context.textAlign = "left";
  rows.forEach(([agent, spans], row) => {
    const middle = HEAD_PX + row * ROW_PX + ROW_PX / 2;
    context.fillStyle = colour("--text");
    context.fillText(ends(clean(agent), Math.floor(left / 7.5)), 0, middle);
    for (const { kind, fromMs, toMs } of spans) {
      const [start, end] = [x(fromMs), x(toMs ?? lastMs)];
      const isThin = kind !== "running" && kind !== "failed";
      context.fillStyle = colour(colours[kind]);
      context.globalAlpha = isThin ? 0.55 : 1;
      const size = isThin ? BAR_PX / 3 : BAR_PX;
      context.beginPath();
      context.roundRect(start, middle - size / 2, Math.max(2, end - start), size, 2);
      context.fill();
      context.globalAlpha = 1;
      if (kind === "failed") cross(context, end, middle, colour("--failed"));
    }
  });
}

/** A failure is told by its shape, too. @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {string} colour */
function cross(context, x, y, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  for (const by of [-1, 1]) {
    context.moveTo(x - 5, y - 5 * by);
    context.lineTo(x + 5, y + 5 * by);
  }
  context.stroke();
}
