// The summary of a run (svc.observability_summary.v1) as a few lines for people. Servers may be older or newer than this
// program: what is missing is left out.

import type { ObservabilitySummary } from "../../sdk/src/index.ts";
import { type Field, fieldLines } from "./record-text.ts";
import { bytes, cleanText, duration, plural } from "./text.ts";

/** A record that a server may send in part. */
type Loose<T> = T extends object ? { readonly [Name in keyof T]?: Loose<T[Name]> } : T;

/**
 * What a summary adds to a record that has its own duration and trace.
 *
 * @param found `observability_summary` of a run or job, as it came
 * @param place makes an address of a link
 */
export function summaryFields(found: unknown, place: (url: string) => string): readonly Field[] {
  const summary = looseOf(found);
  const { warnings = [], tokens } = summary;
  return [
    ...warnings.map((warning): Field => ["warning", warning?.message ?? null]),
    ["recorded", countsText(summary.counts)],
    ["retries", summary.retry_count ? String(summary.retry_count) : null],
    ["tokens", tokens?.total ? `${tokens.total}: ${tokens.input ?? 0} in, ${tokens.output ?? 0} out` : null],
    ["used", usedText(summary.resource_peaks)],
    ["failed at", summary.failed_step_id ?? summary.failed_agent_id ?? null],
    ["evidence", linksText(summary.artifact_links, place)],
  ];
}

/** The whole of a summary. */
export function summaryLines(found: unknown, place: (url: string) => string): readonly string[] {
  const { duration_ms: tookMs, trace_id: trace } = looseOf(found);
  return fieldLines([
    ["took", tookMs == null ? null : duration(tookMs)],
    ...summaryFields(found, place),
    ["trace", trace ?? null],
  ]);
}

const looseOf = (found: unknown) => (found ?? {}) as Loose<ObservabilitySummary>;

/** Zero counts are left out. */
function countsText(counts: Loose<ObservabilitySummary["counts"]> | undefined): string | null {
  const nouns = [
    [counts?.events, "event"],
    [counts?.logs, "log record"],
    [counts?.warnings, "warning"],
    [counts?.errors, "error"],
    [counts?.timeline_records, "timeline record"],
    [counts?.artifacts, "file"],
  ] as const;
  return joined(nouns.map(([count, noun]) => (count ? plural(count, noun) : null)));
}

function usedText(peaks: Loose<ObservabilitySummary["resource_peaks"]> | undefined): string | null {
  const { cpu_seconds: cpu, max_rss_bytes: memory, disk_bytes: disk } = peaks ?? {};
  return joined([
    cpu ? `${duration(cpu * 1_000)} of CPU` : null,
    memory ? `${bytes(memory)} of memory at most` : null,
    disk ? `${bytes(disk)} of files` : null,
  ]);
}

function joined(parts: readonly (string | null)[]): string | null {
  return parts.filter((part) => part !== null).join(", ") || null;
}

/** Where the views of the history are as files: the part that their addresses share, and their names. */
function linksText(
  links: Loose<ObservabilitySummary["artifact_links"]> = [],
  place: (url: string) => string,
): string | null {
  const named = links.flatMap((link) => {
    const { artifact_id: id = "", url = "" } = link ?? {};
    return url.endsWith(`/${id}`) && /_jsonl?$/.test(id) ? [{ id, url }] : [];
  });
  const [first] = named;
  if (first === undefined) return null;
  const folder = place(first.url.slice(0, -first.id.length));
  return `${named.map(({ id }) => id).join(", ")} in ${cleanText(folder)}`;
}
