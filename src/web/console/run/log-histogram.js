// @ts-check
// How much was logged when, and how urgent it was: counted by the server in parts, which come one after the other. A press on
// a bar leads to its first line, and dragging chooses a part of the time. The table below says the same.

import { count, duration, plural, timeOfDay } from "../../dashboard/format.js";
import { get } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Problem } from "../parts/pieces.js";
import { setRange } from "./range.js";

const BUCKETS = 80;
const AGAIN_MS = 3_000;
const HEIGHT = 100;
/** What is there at all can be seen. */
const LEAST = 4;
/** A click that trembles marks no range. */
const DRAG_PX = 6;

/** From the most urgent on, which is at the bottom. @type {readonly { kind: string, name: string, levels: readonly string[] }[]} */
const kinds = [
  { kind: "error", name: "Errors", levels: ["fatal", "error"] },
  { kind: "warn", name: "Warnings", levels: ["warn"] },
  { kind: "info", name: "Info", levels: ["info"] },
  { kind: "debug", name: "Debug", levels: ["debug", "trace"] },
];

/** @typedef {{ startMs: number, numbers: number[], total: number }} Bar numbers: in the order of `kinds` */

/** What was counted so far. */
class Sum {
  bucketMs = 1;
  fromMs = Number.POSITIVE_INFINITY;
  toMs = Number.NEGATIVE_INFINITY;
  seenId = 0;
  /** @type {Map<number, Record<string, number>>} */
  buckets = new Map();

  /** Wider buckets are whole multiples of narrower ones. @param {any} page */
  add(page) {
    this.seenId = page.last_event_id;
    if (page.from === null) return;
    this.fromMs = Math.min(this.fromMs, Date.parse(page.from));
    this.toMs = Math.max(this.toMs, Date.parse(page.to));
    const before = this.buckets;
    this.bucketMs = Math.max(this.bucketMs, page.bucket_ms);
    this.buckets = new Map();
    for (const [startMs, counts] of before) this.#put(startMs, counts);
    for (const { start, counts } of page.buckets) this.#put(Date.parse(start), counts);
  }

  /** @param {number} startMs @param {Record<string, number>} counts */
  #put(startMs, counts) {
    const at = startMs - (startMs % this.bucketMs);
    const sum = { ...this.buckets.get(at) };
    for (const [level, number] of Object.entries(counts)) sum[level] = (sum[level] ?? 0) + number;
    this.buckets.set(at, sum);
  }

  /** @returns {Bar[]} in order, those without a line left out */
  bars() {
    return [...this.buckets]
      .sort(([a], [b]) => a - b)
      .map(([startMs, counts]) => {
        const numbers = kinds.map(({ levels }) =>
          levels.reduce((sum, level) => sum + (counts[level] ?? 0), 0),
        );
        return { startMs, numbers, total: numbers.reduce((sum, number) => sum + number, 0) };
      });
  }
}

/**
 * @param {{ source: import("./run-source.js").RunSource, filter: Record<string, string>, onJump: (since: string) => void }} properties
 *   onJump: shows the first line of a time or later
 */
export function Histogram({ source, filter, onJump }) {
  const [, setTimes] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const sum = useRef(new Sum()).current;
  useEffect(() => {
    const ending = new AbortController();
    const path = `/runs/${encodeURIComponent(source.id)}/logs/histogram`;
    const readOn = async () => {
      const since = sum.seenId === 0 ? {} : { since_id: sum.seenId + 1 };
      let token = null;
      do {
        const query = { ...filter, ...since, buckets: BUCKETS, page_token: token };
        const page = await get(path, query, ending.signal);
        sum.add(page);
        setError(null);
        setTimes((times) => times + 1);
        token = page.next_page_token;
      } while (token !== null);
    };
    const read = async () => {
      while (!ending.signal.aborted) {
        try {
          if (!document.hidden) await readOn();
        } catch (problem) {
          if (ending.signal.aborted) return;
          setError(problem);
          // A gateway that is gone may come back; what it refuses it refuses again.
          const { status } = /** @type {any} */ (problem);
          if (status >= 400 && status < 500) return;
        }
        if (source.connection === "ended" && sum.seenId >= source.model.lastId) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    };
    void read();
    return () => ending.abort();
  }, []);
  const bars = sum.bars();
  if (bars.length === 0) return error === null ? null : html`<${Problem} error=${error} />`;
  const { bucketMs } = sum;
  const jump = (/** @type {number} */ ms) => onJump(new Date(Math.max(ms, sum.fromMs)).toISOString());
  const shown = kinds.filter((_, index) => bars.some(({ numbers }) => numbers[index] !== 0));
  return html`<figure class="histogram">
    <${Picture} bars=${bars} fromMs=${sum.fromMs - (sum.fromMs % bucketMs)} toMs=${sum.toMs - (sum.toMs % bucketMs) + bucketMs} bucketMs=${bucketMs} onJump=${jump} />
    <div class="histogram-foot muted number"><span>${timeOf(sum.fromMs)}</span>
      <ul class="plain legend">${shown.map(({ kind, name }) => html`<li key=${kind} data-level=${kind}>${name}</li>`)}</ul>
      <span>${timeOf(sum.toMs)}</span></div>
    <details><summary>Lines over time as a table</summary>
      <div class="over-time" tabindex="0" role="group" aria-label="Lines over time"><table>
        <caption class="visually-hidden">Each row is ${duration(bucketMs)} long</caption>
        <thead><tr><th scope="col">From</th><th scope="col">Lines</th>${shown.map(({ kind, name }) => html`<th key=${kind} scope="col">${name}</th>`)}</tr></thead>
        <tbody>${bars.map(
          ({ startMs, numbers, total }) => html`<tr key=${startMs}>
          <th scope="row"><button type="button" class="link" onClick=${() => jump(startMs)}>${timeOf(startMs)}</button></th>
          <td class="number">${count(total)}</td>
          ${kinds.map((one, index) => shown.includes(one) && html`<td key=${one.kind} class="number">${count(numbers[index] ?? 0)}</td>`)}</tr>`,
        )}</tbody></table></div></details>
  </figure>`;
}

/** @param {number} ms */
const timeOf = (ms) => timeOfDay(new Date(ms).toISOString());

/** @param {{ bars: Bar[], fromMs: number, toMs: number, bucketMs: number, onJump: (ms: number) => void }} properties */
function Picture({ bars, fromMs, toMs, bucketMs, onJump }) {
  const picture = useRef(/** @type {SVGElement | null} */ (null));
  const [drag, setDrag] = useState(/** @type {readonly [number, number] | null} */ (null));
  const columns = Math.round((toMs - fromMs) / bucketMs);
  const most = bars.reduce((sum, { total }) => Math.max(sum, total), 0);
  /** From 0 to 1. @param {PointerEvent} event */
  const place = ({ clientX }) => {
    const { left, width } = /** @type {SVGElement} */ (picture.current).getBoundingClientRect();
    return Math.min(1, Math.max(0, (clientX - left) / width));
  };
  const msAt = (/** @type {number} */ at) => fromMs + at * (toMs - fromMs);
  const pressed = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    picture.current?.setPointerCapture(event.pointerId);
    setDrag([place(event), place(event)]);
  };
  const moved = (/** @type {PointerEvent} */ event) => drag !== null && setDrag([drag[0], place(event)]);
  const released = (/** @type {PointerEvent} */ event) => {
    if (drag === null) return;
    const [from, to] = [drag[0], place(event)].sort((a, b) => a - b);
    setDrag(null);
    const { width } = /** @type {SVGElement} */ (picture.current).getBoundingClientRect();
    if (((to ?? 0) - (from ?? 0)) * width >= DRAG_PX) return setRange(msAt(from ?? 0), msAt(to ?? 0));
    const ms = msAt(to ?? 0);
    onJump(ms - ((ms - fromMs) % bucketMs));
  };
  return html`<svg ref=${picture} viewBox=${`0 0 ${columns} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" onPointerDown=${pressed} onPointerMove=${moved} onPointerUp=${released} onPointerCancel=${() => setDrag(null)}>
    ${bars.map(({ startMs, numbers, total }) => {
      const x = (startMs - fromMs) / bucketMs;
      let top = HEIGHT;
      return html`<g key=${startMs}><title>${`${timeOf(startMs)}, ${duration(bucketMs)}: ${plural(total, "line")}${wordsOf(numbers)}`}</title>
        <rect class="hit" x=${x} y="0" width="1" height=${HEIGHT} />
        ${kinds.map(({ kind }, index) => {
          const number = numbers[index] ?? 0;
          if (number === 0) return null;
          const height = Math.max(LEAST, (number / most) * (HEIGHT - LEAST * kinds.length));
          top -= height;
          return html`<rect key=${kind} data-level=${kind} x=${x + 0.08} y=${top} width="0.84" height=${height} />`;
        })}</g>`;
    })}
    ${drag !== null && html`<rect class="chosen" x=${Math.min(...drag) * columns} y="0" width=${Math.abs(drag[1] - drag[0]) * columns} height=${HEIGHT} />`}
  </svg>`;
}

/** @param {number[]} numbers */
const wordsOf = ([errors = 0, warnings = 0]) =>
  `${errors === 0 ? "" : `, ${plural(errors, "error")}`}${warnings === 0 ? "" : `, ${plural(warnings, "warning")}`}`;
