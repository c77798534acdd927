// @ts-check
// A list of any length of which only the rows in sight are in the page. Rows are of one height, on narrow screens too.

import { html, useState } from "../html.js";

const BEYOND = 12;
/** Of a row, in console.css: it grows with the text. */
const ROW_REM = 2.125;

/**
 * Which rows are in the page now.
 *
 * @param {number} length
 * @returns {{ from: number, to: number, beforePx: number, afterPx: number, onScroll: (event: Event) => void }}
 */
export function useRows(length) {
  const rowPx = ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const [{ top, height }, set] = useState({ top: 0, height: 800 });
  const onScroll = (/** @type {any} */ { currentTarget: { scrollTop, clientHeight } }) =>
    set({ top: scrollTop, height: clientHeight });
  const from = Math.max(0, Math.min(Math.floor(top / rowPx), length) - BEYOND);
  const to = Math.min(length, Math.ceil((top + height) / rowPx) + BEYOND);
  return { from, to, beforePx: from * rowPx, afterPx: (length - to) * rowPx, onScroll };
}

/** The room of rows that are not in the page. @param {{ px: number }} properties */
export const Room = ({ px }) =>
  px === 0
    ? null
    : html`<tr aria-hidden="true" class="room"><td colspan="20" style=${{ blockSize: `${px}px` }}></td></tr>`;
