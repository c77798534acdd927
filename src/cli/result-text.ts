// How a run ended, as lines for people: the result, the failure with what to do next, the files. Pure.

import type { Failure } from "../engine/failure.ts";
import type { JsonValue } from "../engine/json.ts";
import type { RunFile } from "./run-files.ts";
import type { Paint, Style } from "./terminal.ts";
import { bytes, cleanLines, cleanText, columns, plural } from "./text.ts";

const RESULT_LINES_MAX = 40;
const STDERR_LINES_MAX = 12;
const FILES_MAX = 20;

/** A run as it stands, of either API; most often it has ended. */
export interface EndedRun {
  /** What `troupe job` shows it by. */
  readonly id: string;
  readonly status: string;
  readonly result: JsonValue | undefined;
  readonly failure: Failure | null;
  readonly files: readonly RunFile[];
  /** Where a file can be got: an address or a path. */
  place(file: RunFile): string;
  /** The address of a path of the server. */
  address(path: string): string;
}

const statusStyles: Readonly<Record<string, Style>> = {
  completed: "green",
  failed: "red",
  cancelled: "yellow",
};

/** The closing lines of a command that watched a run. */
export function endLines(run: EndedRun, paint: Paint): readonly string[] {
  const lines = [`${cleanText(run.id)} ${statusWord(run.status, paint)}`];
  if (run.failure !== null) lines.push(...failureLines(run.failure, paint, run.address));
  const result = resultLines(run.result, run.id);
  if (result.length > 0) lines.push(paint("bold", "Result"), ...result.map((line) => `  ${line}`));
  return [...lines, ...fileLines(run, paint)];
}

/** A status in its colour. */
export function statusWord(status: string, paint: Paint): string {
  return paint(statusStyles[status] ?? "bold", cleanText(status));
}

/**
 * What went wrong, what to do about it, and where to read on.
 *
 * @param address the address of a path of the server
 */
export function failureLines(
  failure: Failure,
  paint: Paint,
  address: (path: string) => string,
): readonly string[] {
  const { details } = failure;
  const where = [
    details.agent_id === undefined ? null : `agent ${cleanText(details.agent_id)}`,
    details.attempt === undefined
      ? null
      : `attempt ${details.attempt} of ${details.max_attempts ?? details.attempt}`,
    details.exit_code === undefined ? null : `exit code ${details.exit_code}`,
  ].filter((part) => part !== null);
  // The description is the message's first line, perhaps cut.
  const [first = "", ...more] = cleanLines(details.message || failure.desc);
  const lines = [paint("red", `${cleanText(failure.code)}: ${first}`)];
  if (where.length > 0) lines.push(`  ${where.join(", ")}`);
  lines.push(...more.map((line) => `  ${line}`));
  if (details.stderr_tail) {
    const tail = cleanLines(details.stderr_tail.trimEnd()).slice(-STDERR_LINES_MAX);
    lines.push("  stderr:", ...tail.map((line) => `  | ${line}`));
  }
  return [...lines, `  What to do: ${cleanText(failure.remediation)}`, ...linkLines(failure, address)];
}

/** The failure's links, each on a line of its own, to be opened. One of an older server has none, or no list. */
function linkLines({ links }: Partial<Failure>, address: (path: string) => string): readonly string[] {
  const known = Array.isArray(links) ? (links as Failure["links"]) : [];
  const found = known.map(({ url }) => `    ${cleanText(address(url))}`);
  return found.length === 0 ? [] : ["  Read on:", ...found];
}

function resultLines(result: JsonValue | undefined, id: string): readonly string[] {
  if (result === undefined || result === null) return [];
  if (typeof result === "object" && !Array.isArray(result) && Object.keys(result).length === 0) return [];
  const all = (JSON.stringify(result, null, 2) ?? "").split("\n");
  const shown = all.slice(0, RESULT_LINES_MAX).map((line) => cleanText(line.slice(0, 500)));
  const more = all.length - shown.length;
  return more > 0 ? [...shown, `… ${plural(more, "more line")}: troupe job ${cleanText(id)} --json`] : shown;
}

/** Outputs, or the other files where a run has no outputs; the primary one first. */
function fileLines(run: EndedRun, paint: Paint): readonly string[] {
  const outputs = run.files.filter((file) => file.kind === "output");
  const files = outputs.length > 0 ? outputs : run.files;
  if (files.length === 0) return [];
  const ordered = files.toSorted((a, b) => Number(b.primary === true) - Number(a.primary === true));
  const rows = ordered
    .slice(0, FILES_MAX)
    .map((file) => [cleanText(file.title ?? file.name), bytes(file.size), cleanText(run.place(file))]);
  const hidden = run.files.length - Math.min(files.length, FILES_MAX);
  return [
    paint("bold", outputs.length > 0 ? "Outputs" : "Files"),
    ...columns(rows).map((line) => `  ${line}`),
    ...(hidden > 0 ? [`  … and ${plural(hidden, "more file")}`] : []),
  ];
}
