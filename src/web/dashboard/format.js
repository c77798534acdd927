// How values are written for people. Pure.
//
// - Text from workers is hostile: signs that a terminal or a browser would obey are taken out or made visible.

const counts = new Intl.NumberFormat("en");

/** 12345 as 12,345. */
export const count = (number) => counts.format(number);

/** One thing, several things. */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A length of time, such as 0.4 s, 42 s, 3:07, 1:02:09. @param ms milliseconds */
export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  const days = Math.floor(minutes / 1_440);
  const clock = `${Math.floor((minutes % 1_440) / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
  return days === 0 ? clock : `${plural(days, "day")} ${clock}`;
}

/** 1536 as 1.5 KiB. */
export function size(bytes) {
  if (!Number.isFinite(bytes)) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** The time of day of an ISO time, in the reader's zone. */
export function timeOfDay(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  const two = (value) => String(value).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** Day and time of an ISO time, in the reader's zone and language. */
export function dayAndTime(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime())
    ? ""
    : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const TERMINAL_SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const CONTROLS = /(?![\n\t])\p{Cc}/gu;
/** Marks that turn the direction of the text behind them, beyond their own element's end if they could. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text as it may be shown: terminal sequences gone, other controls as a sign that is seen. */
export function clean(text) {
  return String(text)
    .replace(TERMINAL_SEQUENCES, "")
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, "\ufffd")
    .replace(TURNS, "\ufffd");
}

/** Both ends of a name, with an ellipsis between: names of one kind often differ only at the end. */
export function ends(text, charsMax) {
  if (text.length <= charsMax) return text;
  const tail = Math.floor((charsMax - 1) / 2);
  return `${start(text, charsMax - tail)}${text.slice(-tail).replace(/^[\udc00-\udfff]/, "")}`;
}

/** The beginning of a text, with an ellipsis for the rest; a character is never cut in two. */
export function start(text, charsMax) {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
