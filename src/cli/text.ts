// Text for people: cleaned, measured, cut, aligned. Pure functions.
//
// - What comes from workers or the network passes cleanText before it is shown: no control or escape
//   characters, nothing that reorders or hides text, no line breaks.
// - Widths are columns of a terminal, not characters: a wide character counts two, a combining one none.

import { stripVTControlCharacters } from "node:util";

const ELLIPSIS = "…";
const CLEANED_CHARS_MAX = 20_000;
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]/u;
const PLAIN = /^[\x20-\x7e]*$/;

/** One line of harmless text, of the first 20,000 characters. */
export function cleanText(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  if (PLAIN.test(text)) return text;
  return stripVTControlCharacters(text.slice(0, CLEANED_CHARS_MAX))
    .toWellFormed()
    .replace(/[\t\n\r\v\f\u0085\u2028\u2029]+/g, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Co}]/gu, "")
    .trimEnd();
}

/**
 * A line of output with visible escapes (\\uXXXX) for C1 control characters and for what hides or reorders text. JSON stays
 * the same JSON, and cleaned text has none of them.
 */
export function withoutHidden(line: string): string {
  return line.replace(/[\x7f-\x9f\u2028\u2029]|\p{Cf}/gu, (hidden) =>
    Array.from({ length: hidden.length }, (_, i) => unitEscape(hidden.charCodeAt(i))).join(""),
  );
}

const unitEscape = (unit: number) => `\\u${unit.toString(16).padStart(4, "0")}`;

/** Like cleanText, but keeps line breaks: the lines of a longer text. */
export function cleanLines(text: string): readonly string[] {
  return text.slice(0, CLEANED_CHARS_MAX).split(/\r?\n/).map(cleanText);
}

/** A text as one word for a shell, safe to paste: a worker chooses its ids. */
export function shellWord(value: unknown): string {
  const word = cleanText(value);
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** How many columns a cleaned text takes. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

function characterWidth(character: string): number {
  if (INVISIBLE.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Cuts a cleaned text so that it fits into `columns`, marking the cut. */
export function fit(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  if (columns < 1) return "";
  return start(text, columns - 1) + ELLIPSIS;
}

/** A cleaned text in lines of at most `columns`, which are at least 3: nothing is lost. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let rest = text;
  while (displayWidth(rest) > columns) {
    const line = start(rest, columns);
    lines.push(line);
    rest = rest.slice(line.length);
  }
  return [...lines, rest];
}

/**
 * A cleaned command without quotes in lines of at most `columns`, which are at least 3; all but the last end with a
 * backslash: pasted into a shell, they are the command.
 */
export function wrapCommand(command: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let rest = command;
  while (displayWidth(rest) > columns) {
    const line = start(rest, columns - 1);
    const space = line.lastIndexOf(" ") + 1;
    const whole = line.slice(0, space).trim() === "" ? line : line.slice(0, space);
    lines.push(`${whole}\\`);
    rest = rest.slice(whole.length);
  }
  return [...lines, rest];
}

/** As much of a text's beginning as fits. */
function start(text: string, columns: number): string {
  let width = 0;
  let kept = "";
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns) break;
    kept += character;
  }
  return kept;
}

/** Pads a text to `columns` with spaces. */
export function pad(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - displayWidth(text)));
}

const CELL_COLUMNS_MAX = 60;

/**
 * Rows as aligned columns, two spaces apart; the last column is not padded and not cut.
 *
 * @param head column titles
 * @param rows cells, which are cleaned here; null is an empty one, and what is no text is shown as JSON
 */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): readonly string[] {
  const all = [head, ...rows].map((row) => row.map((cell) => cleanText(cell ?? "")));
  const widths = head.map((_, i) =>
    Math.min(CELL_COLUMNS_MAX, Math.max(...all.map((row) => displayWidth(row[i] ?? "")))),
  );
  return all.map((row) => {
    const cells = head.map((_, i) => {
      const cell = row[i] ?? "";
      const width = widths[i] ?? 0;
      return i === head.length - 1 ? cell : pad(fit(cell, width), width);
    });
    return cells.join("  ").trimEnd();
  });
}

/** The same without titles. */
export function columns(rows: readonly (readonly unknown[])[]): readonly string[] {
  return table(
    (rows[0] ?? []).map(() => ""),
    rows,
  ).slice(1);
}

/** A duration as people say it: 12 ms, 1.3 s, 2 min 05 s, 3 h 04 min, 2 d 03 h. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "0 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${two((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${two((seconds % 86_400) / 3_600)} h`;
}

/** A size in binary units: 512 B, 1.5 KiB, 12 MiB. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  let value = count;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    value /= 1024;
    if (value < 1023.95 || unit === "TiB")
      return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
  }
  return `${count} B`;
}

/** 1 job, 2 jobs. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** The time of day of an ISO timestamp, in the machine's zone; the text itself when it is none. */
export function timeOfDay(timestamp: string): string {
  const time = new Date(timestamp);
  if (Number.isNaN(time.getTime())) return cleanText(timestamp);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

const localTimes = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

/** An ISO timestamp in the machine's zone: Thu, 26 Nov 2026, 07:30:00 CET. */
export const localTime = (timestamp: string): string => localTimes.format(new Date(timestamp));

/** Why a file or folder could not be written. */
const writeFailures: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full. Free some space, or choose a place on another disk",
  EDQUOT: "this user's share of the disk is used up. Free some space, or choose a place on another disk",
  EACCES: "this user may not write there. Choose another place",
  EPERM: "this user may not write there. Choose another place",
  EROFS: "that disk can only be read. Choose another place",
  ENOENT: "its folder does not exist. Make it, or choose another place",
  ENOTDIR: "a file stands where a folder is needed. Choose another place",
  EEXIST: "something of that name is there already. Choose another place",
};

/**
 * Why a file or folder could not be written, and what to do.
 *
 * @returns without a full stop at the end; the system's own message when the code is unknown
 */
export function writeFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = code === undefined ? undefined : writeFailures[code];
  return reason === undefined ? message : `${reason} (${code})`;
}
