// @ts-check
// The lines of the log that are in sight, of a window that reads further where the reader comes to its edge.
//
// - Only lines in sight, and some around them, are in the page. They have heights of their own, which are measured; what was
//   not in sight yet is taken to be of one row.
// - What the reader looks at stays where it is, whatever is read, let go or measured above it: the first line in sight is
//   what is kept, and the scroll position follows from it. At the end, the end is kept.
// - It is one stop of the Tab key: arrow keys move from line to line.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { Line } from "./log-line.js";

/** How far around what is in sight lines are in the page, and how near to an edge more is read. */
const BEYOND_PX = 400;
const EDGE_PX = 1_500;
const ROW_PX = 22;
/** So near the end counts as at the end. */
const NEAR_PX = 24;

/**
 * @typedef {{ id: number, fromTopPx: number } | null} Kept the line that stays in its place, and how far its top is below
 *   the top of what is in sight; null: the end
 */

/**
 * @param {{
 *   log: import("./log-window.js").LogWindow, marked: number | null, isWrapped: boolean,
 *   onStart: () => void, onEnd: () => void, onOpen: (id: number) => void, hrefOf: (id: number) => string,
 * }} properties marked: the line that is linked to
 */
export function Rows({ log, marked, isWrapped, onStart, onEnd, onOpen, hrefOf }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const heights = useRef(/** @type {Map<number, number>} */ (new Map()));
  const kept = useRef(/** @type {Kept} */ (null));
  const unfolded = useRef(/** @type {Set<number>} */ (new Set()));
  const placed = useRef({ opened: -1, marked: /** @type {number | null} */ (null), scrollTop: 0 });
  const focused = useRef(/** @type {number | null} */ (null));
  const wanted = useRef(/** @type {number | null} */ (null));
  const [, setTimes] = useState(0);
  const again = () => setTimes((times) => times + 1);

  const drawn = useRef({ lines: log.lines, tops: [0] });

  // Also before the event that tells of it: what was read meanwhile must not undo it.
  if (box.current !== null && Math.abs(box.current.scrollTop - placed.current.scrollTop) >= 1) {
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    const isAtEnd = log.newer === null && scrollTop + clientHeight >= scrollHeight - NEAR_PX;
    kept.current = isAtEnd ? null : (firstInSight(box.current) ?? nearest(drawn.current, scrollTop));
    placed.current.scrollTop = scrollTop;
  }

  const { lines } = log;
  const viewPx = box.current?.clientHeight ?? 600;
  const tops = topsOf(lines, heights.current);
  const totalPx = tops[lines.length] ?? 0;
  /** @param {number} id */
  const placeOf = (id) => firstFrom(lines, id);
  /** @param {number} place */
  const heightAt = (place) => (tops[place + 1] ?? 0) - (tops[place] ?? 0);

  if (placed.current.opened !== log.opened || placed.current.marked !== marked) {
    const isOpened = placed.current.opened !== log.opened;
    placed.current.opened = log.opened;
    placed.current.marked = marked;
    if (marked === null) kept.current = null;
    else if (isOpened || !isInSight(marked)) kept.current = { id: marked, fromTopPx: viewPx / 3 };
    // Who came by keys goes on from there.
    if (marked !== null && box.current?.contains(document.activeElement)) wanted.current = marked;
  }
  const topPx = topOf();
  const from = firstPlace(tops, topPx - BEYOND_PX);
  const to = Math.min(lines.length, firstPlace(tops, topPx + viewPx + BEYOND_PX) + 1);
  drawn.current = { lines, tops };
  log.isAtEnd = kept.current === null && log.newer === null;

  function topOf() {
    const endPx = Math.max(0, totalPx - viewPx);
    if (kept.current === null) return endPx;
    const { id, fromTopPx } = kept.current;
    return Math.min(endPx, Math.max(0, (tops[placeOf(id)] ?? 0) - fromTopPx));
  }

  /** @param {number} id */
  function isInSight(id) {
    const place = placeOf(id);
    const top = topOf();
    return lines[place]?.id === id && (tops[place] ?? 0) >= top && (tops[place + 1] ?? 0) <= top + viewPx;
  }

  useLayoutEffect(() => {
    const list = /** @type {HTMLElement} */ (box.current);
    let isOther = list.clientHeight !== viewPx;
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(".log-line"))) {
      const id = Number(row.dataset.id);
      const { height } = row.getBoundingClientRect();
      if (Math.abs((heights.current.get(id) ?? ROW_PX) - height) < 0.5) continue;
      heights.current.set(id, height);
      isOther = true;
    }
    if (Math.abs(list.scrollTop - topPx) >= 1) list.scrollTop = topPx;
    placed.current.scrollTop = list.scrollTop;
    if (isOther) again();
    const row = list.querySelector(`[data-id="${wanted.current}"]`);
    if (row instanceof HTMLElement) {
      wanted.current = null;
      row.focus({ preventScroll: true });
    } else if (focused.current !== null && document.activeElement === document.body) {
      // The line that had the focus is out of sight.
      list.focus({ preventScroll: true });
    }
  });
  useEffect(() => {
    if (topPx < EDGE_PX && log.older !== null) void log.readOlder();
    else if (totalPx - topPx - viewPx < EDGE_PX && log.newer !== null) void log.readNewer();
    for (const id of heights.current.size > 4 * lines.length ? heights.current.keys() : [])
      if (!log.has(id)) heights.current.delete(id);
  });
  useEffect(() => {
    const list = /** @type {HTMLElement} */ (box.current);
    let width = list.clientWidth;
    const watching = new ResizeObserver(() => {
      if (list.clientWidth !== width) heights.current.clear();
      width = list.clientWidth;
      again();
    });
    watching.observe(list);
    return () => watching.disconnect();
  }, []);
  useEffect(() => {
    heights.current.clear();
    again();
  }, [isWrapped]);

  /** @param {number | null} place @param {number} [top] */
  const keep = (place, top = topPx) => {
    const line = place === null ? undefined : lines[place];
    kept.current = line === undefined ? null : { id: line.id, fromTopPx: (tops[place ?? 0] ?? 0) - top };
    again();
  };
  /** @param {number} place */
  const focus = (place) => {
    const line = lines[place];
    if (line === undefined) return;
    const [top = 0, bottom = 0] = [tops[place], tops[place + 1]];
    if (top < topPx) keep(place, top);
    else if (bottom > topPx + viewPx) keep(place, Math.min(top, bottom - viewPx));
    else if (kept.current === null && place < lines.length - 1) keep(firstPlace(tops, topPx));
    wanted.current = line.id;
    again();
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const row = event.target instanceof Element ? event.target.closest(".log-line") : null;
    const at = row instanceof HTMLElement ? placeOf(Number(row.dataset.id)) : null;
    const isRow = row !== null && row === event.target;
    const last = Math.max(0, firstPlace(tops, topPx + viewPx - ROW_PX));
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowDown: () => focus(at === null ? firstPlace(tops, topPx + heightAt(0) / 2) : at + 1),
      ArrowUp: () => focus(at === null ? Math.min(last, lines.length - 1) : at - 1),
      Home: onStart,
      End: onEnd,
      ...(isRow && at !== null && { Enter: () => onOpen(lines[at]?.id ?? 0) }),
      ...(at !== null && { Escape: () => box.current?.focus({ preventScroll: true }) }),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(moves, event.key)) return;
    if (event.target instanceof Element && event.target.closest("pre") !== null && event.key !== "Escape")
      return;
    event.preventDefault();
    moves[event.key]?.();
  };
  const moved = (/** @type {FocusEvent} */ event) => {
    const row = event.target instanceof Element ? event.target.closest(".log-line") : null;
    focused.current = row instanceof HTMLElement ? Number(row.dataset.id) : null;
  };
  const fold = (/** @type {number} */ id, /** @type {boolean} */ isOpen) => {
    if (isOpen === unfolded.current.has(id)) return;
    if (isOpen) unfolded.current.add(id);
    else unfolded.current.delete(id);
    if (kept.current === null) keep(firstPlace(tops, topPx));
    again();
  };
  return html`<div class="log" data-wrap=${String(isWrapped)} ref=${box} onScroll=${again} onKeyDown=${pressed} onFocusIn=${moved} tabindex="0" role="feed" aria-busy=${String(log.isReading)} aria-label="Log of the run" aria-describedby="log-help">
    <${Room} px=${tops[from] ?? 0} />
    ${lines.slice(from, to).map((line) => html`<${Line} key=${line.id} line=${line} isMarked=${line.id === marked} isUnfolded=${unfolded.current.has(line.id)} onOpen=${onOpen} onFold=${fold} href=${hrefOf(line.id)} />`)}
    <${Room} px=${totalPx - (tops[to] ?? totalPx)} />
  </div>`;
}

/** The room of lines that are not in the page. @param {{ px: number }} properties */
const Room = ({ px }) => html`<div aria-hidden="true" style=${{ blockSize: `${px}px` }}></div>`;

/**
 * Where each line begins, and behind the last one where all of them end.
 *
 * @param {readonly { id: number }[]} lines @param {ReadonlyMap<number, number>} heights
 */
function topsOf(lines, heights) {
  const tops = [0];
  let top = 0;
  for (const { id } of lines) {
    top += heights.get(id) ?? ROW_PX;
    tops.push(top);
  }
  return tops;
}

/** The last place that begins at this height or above it. @param {readonly number[]} tops @param {number} px */
function firstPlace(tops, px) {
  let low = 0;
  let high = Math.max(0, tops.length - 2);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((tops[middle] ?? 0) <= px) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** As the page has it now, heights that are not measured yet included. @param {HTMLElement} list @returns {Kept} */
function firstInSight(list) {
  const { top } = list.getBoundingClientRect();
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(".log-line"))) {
    const { top: from, bottom } = row.getBoundingClientRect();
    if (bottom > top) return { id: Number(row.dataset.id), fromTopPx: from - top };
  }
  return null;
}

/** Where no line of the page is in sight. @param {{ lines: readonly { id: number }[], tops: readonly number[] }} drawn @param {number} px @returns {Kept} */
function nearest({ lines, tops }, px) {
  const place = firstPlace(tops, px);
  const line = lines[place];
  return line === undefined ? null : { id: line.id, fromTopPx: (tops[place] ?? 0) - px };
}

/** The first line of an id or behind it; else the last one. @param {readonly { id: number }[]} lines @param {number} id */
function firstFrom(lines, id) {
  const place = lines.findIndex((line) => line.id >= id);
  return place < 0 ? Math.max(0, lines.length - 1) : place;
}
