// How many records a log has over time, by their levels: counted as they are read, a bounded amount of reading at a time.

import { type LogLevel, logLevels } from "../engine/event-types.ts";
import { timeOf } from "./history/line.ts";
import { logView } from "./history/log-filter.ts";
import { type LogRange, type LogSource, placeOf } from "./log-page.ts";
import { readHistory } from "./run-history.ts";

/** Each is a multiple of the one before: what was counted in buckets of one fits into those of every wider one. */
const WIDTHS_MS: readonly number[] = [
  ...[1, 5, 10, 50, 100, 500],
  ...[1, 5, 10, 30, 60, 300, 600, 1_800].map((seconds) => seconds * 1_000),
  ...[1, 3, 6, 12, 24, 7 * 24, 28 * 24].map((hours) => hours * 3_600_000),
];
const WIDEST_MS = WIDTHS_MS.at(-1) as number;
export const bucketsMax = 200;
export const bucketsMin = 10;

export type Counts = Record<LogLevel, number>;

/** Where a count goes on; everything but `seq` stays the same for all of it. */
export interface CountPosition {
  /** The last event that was looked at. */
  readonly seq: number;
  readonly bucketMs: number;
  /** Times of the first and the last event that belong to it; a time that is outside counts as the nearer one. */
  readonly fromMs: number;
  readonly toMs: number;
}

export interface CountRequest extends LogRange {
  /** Most buckets that the whole count has; `bucketsMin` to `bucketsMax`. */
  readonly buckets: number;
  /** Null: from the start. */
  readonly position: CountPosition | null;
}

export interface LogCounts {
  /** Null where the history has no event that belongs to it. */
  readonly span: Omit<CountPosition, "seq"> | null;
  /** By the beginning of each bucket, a whole multiple of `bucketMs`; those without a record are left out. */
  readonly buckets: ReadonlyMap<number, Counts>;
  /** Null when nothing is left at this moment. */
  readonly next: CountPosition | null;
  /** The event up to which the log was looked at. */
  readonly seenSeq: number;
}

/** Counts the records of a part of a log; a bounded amount of work, whatever the filter (run-history.ts). */
export async function countLogs(source: LogSource, request: CountRequest): Promise<LogCounts> {
  const { filter, position } = request;
  const { fromSeq, endSeq } = await placeOf(source, request);
  const afterSeq = position?.seq ?? fromSeq - 1;
  const span = position ?? (await spanOf(source, request));
  const buckets = new Map<number, Counts>();
  if (span === null) return { span, buckets, next: null, seenSeq: afterSeq };
  const { bucketMs, fromMs, toMs } = span;
  const shown = logView(source.run, filter);
  const { nextAfterSeq, seenSeq } = await readHistory(source.after, {
    afterSeq,
    endSeq,
    limit: 1,
    // Nothing is an item: so a page ends where its work is bounded.
    view(seq, line) {
      const record = shown(seq, line);
      if (record === null) return null;
      const atMs = Math.min(toMs, Math.max(fromMs, Date.parse(record.ts)));
      const startMs = atMs - (atMs % bucketMs);
      const counts = buckets.get(startMs) ?? noneOfAny();
      counts[record.level]++;
      buckets.set(startMs, counts);
      return null;
    },
  });
  const next = nextAfterSeq === null ? null : { seq: nextAfterSeq, bucketMs, fromMs, toMs };
  return { span: { bucketMs, fromMs, toMs }, buckets, next, seenSeq };
}

const noneOfAny = () => Object.fromEntries(logLevels.map((level) => [level, 0])) as Counts;

/**
 * The times that the count is about, and the narrowest buckets of which there are few enough for them. Where it begins in the
 * history changes neither: who counts on behind what was counted gets buckets that fit.
 */
async function spanOf(source: LogSource, request: CountRequest): Promise<Omit<CountPosition, "seq"> | null> {
  const { filter, buckets } = request;
  const { sinceMs, untilMs } = filter;
  const { fromSeq, endSeq } = await placeOf(source, { filter });
  const [first] = (await source.after(fromSeq - 1)).lines;
  const last = (await source.before(endSeq)).lines.at(-1);
  if (first === undefined || last === undefined) return null;
  const fromMs = Math.max(Date.parse(timeOf(first)), sinceMs ?? 0);
  const toMs = Math.max(
    fromMs,
    Math.min(Date.parse(timeOf(last)), (untilMs ?? Number.POSITIVE_INFINITY) - 1),
  );
  const needed = (bucketMs: number) => Math.floor(toMs / bucketMs) - Math.floor(fromMs / bucketMs) + 1;
  const bucketMs = WIDTHS_MS.find((width) => needed(width) <= buckets) ?? WIDEST_MS * needed(WIDEST_MS);
  return { bucketMs, fromMs, toMs };
}
