// @ts-check
// Times for people: local, in one 24-hour format, with UTC on hover; and lengths of time that go on.

import { duration } from "../../dashboard/format.js";
import { html, signal, useEffect } from "../html.js";

const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const year = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", year: "numeric" });
const time = new Intl.DateTimeFormat("en", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const zone = new Intl.DateTimeFormat("en", { timeZoneName: "longOffset" });

/** @param {Date} date @param {Date} now */
function written(date, now) {
  const clock = time.format(date);
  if (date.toDateString() === now.toDateString()) return clock;
  return `${(date.getFullYear() === now.getFullYear() ? day : year).format(date)}, ${clock}`;
}

/** The reader's zone, such as GMT+01:00. */
export const zoneName = () => zone.formatToParts().find(({ type }) => type === "timeZoneName")?.value ?? "";

/** @param {{ at: string | null | undefined, none?: string }} properties an ISO time */
export function Time({ at, none = "–" }) {
  const date = at ? new Date(at) : null;
  if (date === null || Number.isNaN(date.getTime())) return html`<span class="muted">${none}</span>`;
  return html`<time class="number" datetime=${at} title=${`${at} (UTC); shown in ${zoneName()}`}>${written(date, new Date())}</time>`;
}

const nowMs = signal(Date.now());
let tickers = 0;
/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;

/**
 * From a time to another one, or to now; a length that goes on is drawn anew each second.
 *
 * @param {{ from: string | null | undefined, to?: string | null | undefined }} properties
 */
export function Elapsed({ from, to }) {
  const isGoingOn = Boolean(from) && !to;
  useEffect(() => {
    if (!isGoingOn) return;
    nowMs.value = Date.now();
    if (tickers++ === 0) {
      timer = setInterval(() => {
        nowMs.value = Date.now();
      }, 1_000);
    }
    return () => {
      if (--tickers === 0) clearInterval(timer);
    };
  }, [isGoingOn]);
  if (!from) return html`<span class="muted">–</span>`;
  const end = to ? Date.parse(to) : nowMs.value;
  return html`<span class="number">${duration(Math.max(0, end - Date.parse(from)))}</span>`;
}
