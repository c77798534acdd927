// The summary of a run (svc.observability_summary.v1) as a few lines for people. Servers may be older or newer than this
// program: what is not there, or not as expected, is left out.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { type Field, fieldLines } from "./record-text.ts";
import { bytes, cleanText, duration, plural } from "./text.ts";

/**
 * What a summary adds to a record that tells its duration and its trace itself.
 *
 * @param found `observability_summary` of a run or job; whatever came
 * @param place makes an address of a link
 */
export function summaryFields(found: unknown, place: (url: string) => string): readonly Field[] {
  if (!isObject(found as JsonValue)) return [];
  const summary = found as JsonObject;
  const retries = numberIn(summary, "retry_count");
  return [
    ...warningFields(summary.warnings),
    ["recorded", countsText(objectIn(summary, "counts"))],
    ["retries", retries === null || retries === 0 ? null : String(retries)],
    ["tokens", tokensText(objectIn(summary, "tokens"))],
    ["used", usedText(objectIn(summary, "resource_peaks"))],
    ["failed at", textIn(summary, "failed_step_id") ?? textIn(summary, "failed_agent_id")],
    ["evidence", linksText(summary.artifact_links, place)],
  ];
}

/** The whole of a summary. */
export function summaryLines(found: unknown, place: (url: string) => string): readonly string[] {
  const summary = isObject(found as JsonValue) ? (found as JsonObject) : {};
  return fieldLines([
    ["took", withNumber(summary.duration_ms, duration)],
    ...summaryFields(found, place),
    ["trace", textIn(summary, "trace_id")],
  ]);
}

/** What a completed run lacks. */
function warningFields(warnings: JsonValue | undefined): readonly Field[] {
  if (!Array.isArray(warnings)) return [];
  return warnings.filter(isObject).map((warning) => ["warning", textIn(warning, "message")]);
}

/** What there is none of is not worth a word. */
function countsText(counts: JsonObject): string | null {
  const parts = [
    counted(counts, "events", "event"),
    counted(counts, "logs", "log record"),
    counted(counts, "warnings", "warning"),
    counted(counts, "errors", "error"),
    counted(counts, "timeline_records", "timeline record"),
    counted(counts, "artifacts", "file"),
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(", ");
}

function counted(counts: JsonObject, name: string, noun: string): string | null {
  const count = numberIn(counts, name);
  return count === null || count === 0 ? null : plural(count, noun);
}

function tokensText(tokens: JsonObject): string | null {
  const total = numberIn(tokens, "total");
  if (total === null || total === 0) return null;
  return `${total}: ${numberIn(tokens, "input") ?? 0} in, ${numberIn(tokens, "output") ?? 0} out`;
}

function usedText(peaks: JsonObject): string | null {
  const disk = numberIn(peaks, "disk_bytes");
  const parts = [
    withNumber(peaks.cpu_seconds, (seconds) =>
      seconds === 0 ? null : `${duration(seconds * 1_000)} of CPU`,
    ),
    withNumber(peaks.max_rss_bytes, (count) => `${bytes(count)} of memory at most`),
    disk === null || disk === 0 ? null : `${bytes(disk)} of files`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(", ");
}

/** Where the views of the history are as files: the part that their addresses share, and their names. */
function linksText(links: JsonValue | undefined, place: (url: string) => string): string | null {
  if (!Array.isArray(links)) return null;
  const named = links.filter(isObject).flatMap((link) => {
    const id = textIn(link, "artifact_id");
    const url = textIn(link, "url");
    return id === null || url === null || !url.endsWith(`/${id}`) || !/_jsonl?$/.test(id)
      ? []
      : [{ id, url }];
  });
  const [first] = named;
  if (first === undefined) return null;
  const folder = place(first.url.slice(0, -first.id.length));
  return `${named.map(({ id }) => id).join(", ")} in ${cleanText(folder)}`;
}

function objectIn(fields: JsonObject, name: string): JsonObject {
  const value = fields[name];
  return value !== undefined && isObject(value) ? value : {};
}

function textIn(fields: JsonObject, name: string): string | null {
  const value = fields[name];
  return typeof value === "string" ? value : null;
}

function numberIn(fields: JsonObject, name: string): number | null {
  return withNumber(fields[name], (value) => value);
}

function withNumber<Value>(value: JsonValue | undefined, use: (value: number) => Value): Value | null {
  return typeof value === "number" ? use(value) : null;
}
