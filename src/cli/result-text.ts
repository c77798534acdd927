// How a run ended, as lines for people: the result, the failure with what to do next, the files. Pure.

import type { Failure } from "../engine/failure.ts";
import { isObject, type JsonObject } from "../engine/json.ts";
import type { NamedRun, Outcome, PlacedFile } from "./named-run.ts";
import type { Paint, Style } from "./terminal.ts";
import { bytes, cleanLines, cleanText, columns, plural } from "./text.ts";

const RESULT_LINES_MAX = 40;
const STDERR_LINES_MAX = 12;
const FILES_MAX = 20;

const statusStyles: Readonly<Record<string, Style>> = {
  completed: "green",
  failed: "red",
  cancelled: "yellow",
};

/** The state of a run: status, failure, result, files. */
export function endLines(
  { id, address }: Pick<NamedRun, "id" | "address">,
  { status, result, failure }: Pick<Outcome, "status" | "result" | "failure">,
  files: readonly PlacedFile[],
  paint: Paint,
): readonly string[] {
  const lines = [`${cleanText(id)} ${statusWord(status, paint)}`];
  const known = failureOf(failure);
  if (known !== null) lines.push(...failureLines(known, paint, address));
  // A failure of an unknown form is shown as it is.
  const shown = resultLines(known === null && failure !== null ? failure : result, id);
  if (shown.length > 0) lines.push(paint("bold", "Result"), ...shown.map((line) => `  ${line}`));
  return [...lines, ...fileLines(files, paint)];
}

/** A failure as the API describes it; null when it is something else. */
export function failureOf(failure: Outcome["failure"]): Failure | null {
  if (failure === null) return null;
  const { code, desc, details, remediation } = failure as JsonObject;
  const isWhole = [code, desc, remediation].every((text) => typeof text === "string") && isObject(details);
  return isWhole ? (failure as unknown as Failure) : null;
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

/** The failure's links, one per line. A failure of an older server may have none. */
function linkLines({ links }: Partial<Failure>, address: (path: string) => string): readonly string[] {
  const known = Array.isArray(links) ? (links as Failure["links"]) : [];
  const found = known.map(({ url }) => `    ${cleanText(address(url))}`);
  return found.length === 0 ? [] : ["  Read on:", ...found];
}

function resultLines(result: unknown, id: string): readonly string[] {
  if (result === undefined || result === null) return [];
  if (typeof result === "object" && !Array.isArray(result) && Object.keys(result).length === 0) return [];
  const all = (JSON.stringify(result, null, 2) ?? "").split("\n");
  const shown = all.slice(0, RESULT_LINES_MAX).map((line) => cleanText(line.slice(0, 500)));
  const more = all.length - shown.length;
  return more > 0 ? [...shown, `… ${plural(more, "more line")}: troupe job ${cleanText(id)} --json`] : shown;
}

/** Outputs, or the other files where a run has no outputs; the primary one first. */
function fileLines(all: readonly PlacedFile[], paint: Paint): readonly string[] {
  const outputs = all.filter((file) => file.kind === "output");
  const files = outputs.length > 0 ? outputs : all;
  if (files.length === 0) return [];
  const ordered = files.toSorted((a, b) => Number(b.primary === true) - Number(a.primary === true));
  const rows = ordered
    .slice(0, FILES_MAX)
    .map((file) => [file.title ?? file.name, bytes(file.size), file.place]);
  const hidden = all.length - Math.min(files.length, FILES_MAX);
  return [
    paint("bold", outputs.length > 0 ? "Outputs" : "Files"),
    ...columns(rows).map((line) => `  ${line}`),
    ...(hidden > 0 ? [`  … and ${plural(hidden, "more file")}`] : []),
  ];
}
