// @ts-check
// The drawing of the timeline: the rows in sight, on a canvas as large as they are, however many rows there are.

import { clean, duration, ends } from "../../dashboard/format.js";
import { colourReader } from "./colours.js";
import { ticksOf } from "./time-scale.js";

/** @typedef {import("./spans.js").Span} Span */
/** @typedef {{ id: string, name: string, members: string[], spans: Span[], isCritical: boolean, isGroup: boolean, isOpen: boolean }} Row */

export const ROW_PX = 22;
export const HEAD_PX = 24;
const BAR_PX = 12;
const NAME_SHARE = 0.2;
const NAME_PX_MIN = 80;
const HATCH_PX = 5;
/** Between two moments that are written above the rows. */
const TICK_PX = 90;

const colours = {
  running: "--running",
  failed: "--failed",
  queued: "--quiet",
  backoff: "--retrying",
  waiting: "--waiting",
};

/** How much of the width names take. @param {number} width */
export const namePx = (width) => Math.max(NAME_PX_MIN, width * NAME_SHARE);

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{ rows: readonly Row[], scale: ReturnType<typeof import("./time-scale.js").scaleOf>, originMs: number, fromMs: number, toMs: number, width: number, height: number, scrollTop: number, drag: readonly [number, number] | null }} view
 *   originMs: from which moments are counted; drag: from where to where on the canvas a reader marks a range
 */
export function draw(canvas, { rows, scale, originMs, fromMs, toMs, width, height, scrollTop, drag }) {
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.setProperty("inline-size", `${width}px`);
  canvas.style.setProperty("block-size", `${height}px`);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  const colour = colourReader(canvas);
  const left = namePx(width);
  const x = (/** @type {number} */ ms) => left + scale.at(ms) * (width - left - 1);
  context.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  context.textBaseline = "middle";
  const hatch = hatched(context, colour("--quiet"));
  const ticks = ticksOf(scale, { fromMs, toMs, originMs, countMax: (width - left) / TICK_PX });
  context.fillStyle = colour("--line");
  for (const ms of ticks) context.fillRect(Math.round(x(ms)), HEAD_PX, 1, height - HEAD_PX);

  const first = Math.max(0, Math.floor(scrollTop / ROW_PX) - 1);
  const last = Math.min(rows.length, Math.ceil((scrollTop + height - HEAD_PX) / ROW_PX) + 1);
  for (let index = first; index < last; index++) {
    const row = /** @type {Row} */ (rows[index]);
    const middle = HEAD_PX + index * ROW_PX - scrollTop + ROW_PX / 2;
    context.fillStyle = colour(row.isCritical ? "--accent" : "--text");
    context.textAlign = "left";
    const sign = row.isGroup ? (row.isOpen ? "▾ " : "▸ ") : "";
    context.fillText(ends(sign + clean(row.name), Math.floor(left / 7.5)), 0, middle);
    for (const span of row.spans) {
      const endMs = span.toMs ?? toMs;
      if (endMs < fromMs || span.fromMs > toMs) continue;
      bar(context, span.kind, x(span.fromMs), Math.max(2, x(endMs) - x(span.fromMs)), middle, colour, hatch);
    }
    if (row.isCritical && row.spans.length > 0) {
      const [begin, end] = [
        row.spans[0],
        row.spans.reduce((most, { toMs: at }) => Math.max(most, at ?? toMs), 0),
      ];
      context.fillStyle = colour("--accent");
      context.fillRect(
        x(begin?.fromMs ?? fromMs),
        middle + BAR_PX / 2 + 1,
        Math.max(2, x(end) - x(begin?.fromMs ?? fromMs)),
        2,
      );
    }
  }
  head(context, { scale, ticks, originMs, x, width, height, colour });
  if (drag !== null) {
    context.globalAlpha = 0.2;
    context.fillStyle = colour("--accent");
    context.fillRect(Math.min(...drag), HEAD_PX, Math.abs(drag[1] - drag[0]), height - HEAD_PX);
    context.globalAlpha = 1;
  }
}

/**
 * Waiting is thin, work is thick, and what waits for a slot is hatched: told by shape as well as by colour.
 *
 * @param {CanvasRenderingContext2D} context @param {import("./spans.js").SpanKind} kind @param {number} start @param {number} length
 * @param {number} middle @param {(name: string) => string} colour @param {CanvasPattern | null} hatch
 */
function bar(context, kind, start, length, middle, colour, hatch) {
  const isThin = kind === "backoff" || kind === "waiting";
  const size = isThin ? BAR_PX / 3 : BAR_PX;
  context.fillStyle = kind === "queued" && hatch !== null ? hatch : colour(colours[kind]);
  context.globalAlpha = isThin ? 0.6 : 1;
  context.beginPath();
  context.roundRect(start, middle - size / 2, length, size, 2);
  context.fill();
  context.globalAlpha = 1;
  if (kind === "failed") cross(context, start + length, middle, colour("--failed"));
}

/** Above the rows: moments, and the folded times. @param {CanvasRenderingContext2D} context @param {any} view */
function head(context, { scale, ticks, originMs, x, width, height, colour }) {
  context.fillStyle = colour("--card");
  context.fillRect(0, 0, width, HEAD_PX);
  context.textAlign = "center";
  context.fillStyle = colour("--muted");
  const middles = scale.folds.map((/** @type {any} */ fold) => (x(fold.fromMs) + x(fold.toMs)) / 2);
  let lastPx = Number.NEGATIVE_INFINITY;
  for (const ms of ticks) {
    const px = Math.min(width - 24, x(ms));
    const isFree = (/** @type {number} */ other) => Math.abs(px - other) >= TICK_PX / 2;
    if (!isFree(lastPx) || !middles.every(isFree)) continue;
    context.fillText(ms === originMs ? "0" : `+${duration(ms - originMs)}`, px, HEAD_PX / 2);
    lastPx = px;
  }
  for (const { fromMs, toMs } of scale.folds) {
    context.fillStyle = colour("--line");
    context.globalAlpha = 0.6;
    context.fillRect(x(fromMs), HEAD_PX, x(toMs) - x(fromMs), height - HEAD_PX);
    context.globalAlpha = 1;
    context.fillStyle = colour("--muted");
    context.textAlign = "center";
    context.fillText(duration(toMs - fromMs), Math.min(width - 24, (x(fromMs) + x(toMs)) / 2), HEAD_PX / 2);
  }
}

/** @param {CanvasRenderingContext2D} context @param {string} colour */
function hatched(context, colour) {
  const tile = new OffscreenCanvas(HATCH_PX, HATCH_PX);
  const drawing = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
  drawing.strokeStyle = colour;
  for (const shift of [-HATCH_PX, 0, HATCH_PX]) {
    drawing.moveTo(shift, HATCH_PX);
    drawing.lineTo(shift + HATCH_PX, 0);
  }
  drawing.stroke();
  return context.createPattern(tile, "repeat");
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
